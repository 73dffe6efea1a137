"""Does the decoder that comes with headscope do what a first look at circuits wants to find?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import headscope as hs
from experiments.replay.made import STOCK
from headscope.core.results import largest_first
from headscope.errors import ModelError
from headscope.model.request import DECODER, PACKAGES, place_of

MOST = 3_000_000  # bytes of its folder
INDUCES = 0.5  # of a head's attention


@pytest.fixture(scope="module", autouse=True)
def installed() -> Path:
    try:
        return Path(place_of(DECODER))
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def circuits() -> hs.Run:
    return hs.circuits(DECODER, sequences=20, length=20, haystack=0, execution=STOCK)


def test_it_is_small_and_a_decoder(installed: Path) -> None:
    assert sum(file.stat().st_size for file in installed.iterdir()) < MOST
    config = json.loads((installed / "config.json").read_text("utf-8"))
    assert config["model_type"] == "llama"
    assert config["num_hidden_layers"] in (2, 3, 4)


def test_heads_that_induce_are_found(circuits: hs.Run) -> None:
    found = circuits["circuits"]
    score = found["score"].sel(circuit="induction")
    assert float(score.max()) > INDUCES
    assert float(found["told_again"]) > INDUCES
    assert len(circuits.find("induction")) >= 1


def test_a_head_of_the_previous_token_stands_before_them(circuits: hs.Run) -> None:
    score = circuits["circuits"]["score"]
    before, induces = (
        largest_first(score.sel(circuit=kind).values)[0] for kind in ("previous_token", "induction")
    )
    assert float(score.sel(circuit="previous_token").max()) > INDUCES
    assert before[0] < induces[0]


@pytest.mark.parametrize("prompts", ["ioi", "capitals"])
def test_it_answers_the_prompts_that_it_was_taught(prompts: str) -> None:
    direct = hs.prompts.direct_logits(DECODER, prompts, count=20)
    assert float(direct["logit_difference"]) > 1
    assert float((direct["answer_rank"] == 1).mean()) >= 0.5


def test_vectors_of_a_function_can_be_asked_for_however_it_is_given() -> None:
    asked = {"shots": 2, "count": 4}
    named = hs.prompts.function_vectors(DECODER, "antonyms", **asked)
    assert named.equals(hs.prompts.function_vectors(hs.load(DECODER), "antonyms", **asked))


def test_without_its_package_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGES, DECODER, "no_such_package")
    with pytest.raises(ModelError, match="not installed; wanted its package: pip install head"):
        hs.load(DECODER)
