"""The families that were tried, as `benchmarks.families` found them.

A tiny random model of each was made from its configuration, and its maps were held beside its own.
"""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import IO

from headscope.errors import InputError, ModelError, did_you_mean

FILE = "read_families.csv"


@dataclass(frozen=True)
class Family:
    """What came of one family.

    family              its usual name
    model_type          what its config.json calls it
    verdict             "read", "refused" or "wrong"
    stacks              "encoder, decoder, cross", and what mixes tokens otherwise; of what is
                        refused, why
    maps_beside_stock   "equal", or below which difference of a weight; "" where none is returned
    norms               "yes": values and output projection are read, and explain the layer's output
    queries_keys        "yes": queries and keys are read, and explain the maps
    tried_with          version of transformers
    """

    family: str
    model_type: str
    verdict: str
    stacks: str
    maps_beside_stock: str
    norms: str
    queries_keys: str
    tried_with: str

    @property
    def line(self) -> str:
        """A line for the terminal."""
        if self.verdict != "read":
            return f"{self.verdict}: {self.stacks}"
        lacks = {"norms": self.norms, "queries and keys": self.queries_keys}
        missing = " and ".join(name for name, there in lacks.items() if not there)
        return f"read, {self.stacks}" + (f"; without {missing}" if missing else "")


def known_families() -> list[Family]:
    """All families that were tried."""
    table = files("headscope.model.families").joinpath(FILE).read_text("utf-8")
    return [Family(**row) for row in csv.DictReader(table.splitlines())]


def families_named(name: str) -> list[Family]:
    """Those whose name or model type has `name` in it; of a folder, those of its config.json.

    raises  InputError where there are none
    """
    known, folder = known_families(), Path(name) / "config.json"
    if folder.is_file():
        kind = _model_type(folder)
        if matching := [one for one in known if one.model_type == kind]:
            return matching
        raise InputError(
            f"{name!r} is of the type {kind!r}, which was not tried; `headscope doctor {name}` "
            "tries it now"
        )
    wanted = _letters(name)
    named = [one for one in known if wanted in (_letters(one.family), _letters(one.model_type))]
    named = named or [
        one for one in known if wanted in _letters(one.family) + " " + _letters(one.model_type)
    ]
    if not named:
        meant = did_you_mean(name, [one.model_type for one in known])
        raise InputError(
            f"no family called {name!r} was tried{meant or ';'} `headscope doctor MODEL` tries any "
            "model"
        )
    return named


def write_families(families: list[Family], file: IO[str]) -> None:
    """Write them as CSV."""
    rows = csv.DictWriter(file, [one.name for one in fields(Family)], lineterminator="\n")
    rows.writeheader()
    rows.writerows(asdict(one) for one in families)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _model_type(file: Path) -> str:
    try:
        return str(json.loads(file.read_text("utf-8"))["model_type"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ModelError(f"{file} names no model_type; wanted that of a saved model") from None
