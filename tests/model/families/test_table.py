"""Is every family of the registry read or refused as it says there, and none read wrongly?"""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
import transformers
from benchmarks.families import READ, REFUSED, read
from benchmarks.family_models import FAMILIES

from headscope.errors import InputError
from headscope.model.families.registry import families_named, known_families, write_families

LEAST = 125  # of 140
KNOWN = {one.family: one for one in known_families()}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_read_exactly_or_refused_with_a_reason(name: str) -> None:
    found = read(name)
    assert found.verdict in (READ, REFUSED), found
    assert found.stacks
    if found.verdict == READ:
        assert found.maps_beside_stock
    if transformers.__version__ == KNOWN[name].tried_with:
        assert found == KNOWN[name]


def test_the_registry_has_every_family() -> None:
    assert list(KNOWN) == list(FAMILIES)
    assert sum(one.verdict == READ for one in KNOWN.values()) >= LEAST


def test_a_name_finds_its_families(tmp_path) -> None:
    def names(wanted: str) -> list[str]:
        return [one.family for one in families_named(wanted)]

    assert names("gpt2") == names("GPT-2") == ["GPT-2"]
    assert names("qwen") == ["Qwen2 (2.5)", "Qwen3", "Qwen2-MoE", "Qwen3-MoE", "Qwen3-Next"]
    (tmp_path / "config.json").write_text('{"model_type": "gemma3_text"}')
    assert names(str(tmp_path)) == ["Gemma 3"]
    (tmp_path / "config.json").write_text('{"model_type": "mine"}')
    with pytest.raises(InputError, match="of the type 'mine', which was not tried; `headscope do"):
        families_named(str(tmp_path))
    with pytest.raises(InputError, match=r"'bret' was tried; did you mean 'bert'\?"):
        families_named("bret")


def test_what_is_written_is_read() -> None:
    file = io.StringIO()
    write_families([replace(KNOWN["BERT"], family='a, "b"')], file)
    assert file.getvalue().splitlines()[1].startswith('"a, ""b""",bert,read')
