"""Does `examples` keep the maps of its inputs, by word and by token, as they are?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from analyses.running import observe
from headscope.analyses.examples import measure
from headscope.analyses.examples.measure import Examples
from headscope.corpus import Example
from headscope.corpus.document import Frame, FrameElement
from headscope.corpus.stored_inputs import folded, places
from headscope.model.batch import Batch
from headscope.run.analysis import Scope
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import CLS, SEP, VOCABULARY, tiny_examples, tiny_network
from reference import dependency, extraction
from reference.extraction import Blocks

NETWORK = tiny_network(torch.float64)


def kept(
    examples: list[Example],
    *,
    stored_inputs: list[Example] | None = None,
    times: int = 1,
    **options,
) -> xr.Dataset:
    """The result over the examples, `times` over, two a batch; all are shown by default."""
    shown = tuple(examples if stored_inputs is None else stored_inputs)
    names = tuple(tuple(f"t{token}" for token in e.input_ids) for e in shown)
    scope = Scope(2, 3, 1, stored_inputs=shown, stored_tokens=names, replicates=3)
    analysis = Examples(scope, **options)
    for start in range(0, len(examples) * times, 2):
        rows = [examples[at % len(examples)] for at in range(start, start + 2)]
        batch = Batch.of(rows, VOCABULARY, replicates=3)
        for view in observe(NETWORK, batch):
            analysis.observe(view, batch)
        analysis.finish(batch)
    return analysis.result()


def long(tokens: int, *, second: int) -> Example:
    """[CLS] … [SEP] … [SEP] in two segments."""
    ids = 6 + np.arange(tokens) % 30
    ids[[0, tokens - second - 1, -1]] = CLS, SEP, SEP
    segments = (np.arange(tokens) >= tokens - second).astype(np.int64)
    return Example("long", "long", ids, segments, np.isin(ids, (CLS, SEP)))


def test_the_maps_by_token_are_those_of_the_model_special_tokens_included(
    reference: list[Blocks],
) -> None:
    examples = tiny_examples()
    found = kept(examples)
    assert found.sizes["input"] == len(examples)
    for example, block in zip(examples, reference, strict=True):
        one = found.sel(input=example.id)
        n = len(example)
        assert one.token_attention.values[..., :n, :n] == pytest.approx(
            block["attention"], abs=1e-6
        )
        norms = np.linalg.norm(block["f"], axis=-1)
        assert one.value_norm.values[..., :n] == pytest.approx(norms, rel=1e-5)
        assert np.isnan(one.token_attention.values[..., n:, :]).all()
        assert np.isnan(one.token_attention.values[..., n:]).all()
        assert one.special.values[:n].tolist() == example.special.astype(int).tolist()
        assert one.segment.values[:n].tolist() == example.segment_ids.tolist()
        assert one.token_text.values.tolist()[:n] == [f"t{t}" for t in example.input_ids]
        assert one.token_count.values.tolist() == [1] * n + [0] * (12 - n)


def test_the_maps_by_word_leave_special_tokens_out(reference: list[Blocks]) -> None:
    examples = tiny_examples()
    for options in ({}, {"pieces": "max"}, {"measure": "weighted_norm"}):
        found = kept(examples, **options)
        for example, block in zip(examples, reference, strict=True):
            if not example.words:
                continue
            maps = block["attention"]
            if "measure" in options:
                maps = maps * np.linalg.norm(block["f"], axis=-1)[:, :, None, :]
            pieces = options.get("pieces", "mean")
            n = len(example.words)
            one = found.attention.sel(example=example.id).values
            for place in np.ndindex(2, 3):
                words = dependency.word_map(maps[place], example.word_index, pieces)
                assert one[place][:n, :n] == pytest.approx(words, abs=1e-6)
            assert np.isnan(one[..., n:]).all()


def test_sentences_are_the_first_of_the_inputs_and_their_words_are_told():
    examples = [e for e in tiny_examples() if len(e) > 2]
    bare = replace(tiny_examples()[1], id="bare")
    found = kept([bare, *examples])
    assert found.input.values.tolist() == [*(e.id for e in examples), "bare"]
    assert found.example.values.tolist() == [e.id for e in examples]
    one = found.isel(input=0)
    assert one.token_word.values.tolist() == examples[0].word_index.tolist()
    forms = [f"{w.form} " for w in examples[0].words]
    wanted = ["" if at < 0 else forms[at] for at in examples[0].word_index]
    assert one.word_text.values.tolist() == wanted


def test_the_middle_of_a_long_input_is_attended_to_by_the_sum_and_attends_by_the_mean():
    example = long(90, second=40)
    rng = np.random.default_rng(0)
    maps = rng.dirichlet(np.ones(90), (3, 90))  # [head, query, key]
    found = folded(maps, places(example))
    first = places(example).tolist()
    groups = [range(a, b) for a, b in zip(first, [*first[1:], 90], strict=True)]
    for head in range(3):
        for row, of in enumerate(groups):
            for column, to in enumerate(groups):
                sums = [sum(maps[head, i, j] for j in to) for i in of]
                assert found[head, row, column] == pytest.approx(sum(sums) / len(of))
    assert found.sum(-1) == pytest.approx(1)


def test_a_folded_place_says_how_many_tokens_it_holds_and_has_no_norm(monkeypatch):
    monkeypatch.setattr("headscope.corpus.stored_inputs.TOKENS", range(4, 9))
    example = tiny_examples()[0]  # 12 tokens
    found = kept([example, tiny_examples()[2]], stored_inputs=[example]).isel(input=0)
    held = found.token_count.values
    assert held.sum() == 12
    assert len(held) == 8
    at = int(held.argmax())
    assert found.token_text.values[at] == f"… {held[at]} tokens …"
    assert np.isnan(found.value_norm.values[..., held > 1]).all()
    assert np.isfinite(found.value_norm.values[..., held == 1]).all()
    assert found.token_attention.values.sum(-1) == pytest.approx(1, abs=1e-6)
    assert not found.special.values[at]
    assert found.token_word.values[at] == -1
    double = extraction.bert_blocks(NETWORK, example.input_ids, example.segment_ids)
    first = np.cumsum([0, *held[:-1]])
    inside = double["attention"][:, :, first[at] : first[at] + held[at]].mean(2)
    assert found.token_attention.values[:, :, at, 0] == pytest.approx(inside[..., 0], abs=1e-6)


def test_an_input_seen_again_is_averaged_and_one_never_seen_is_missing():
    examples = [e for e in tiny_examples() if len(e) > 2]
    never = replace(examples[0], id="never", document="never")
    once, thrice = kept(examples[:2]), kept(examples[:2], times=3)
    xr.testing.assert_allclose(once, thrice)
    found = kept(examples[:2], stored_inputs=[never, examples[0]])
    assert np.isnan(found.token_attention.sel(input="never")).all()
    assert np.isnan(found.attention.sel(example="never")).all()
    assert np.isfinite(found.token_attention.sel(input=examples[0].id)).all()


def test_inputs_beyond_the_room_for_maps_are_not_kept(monkeypatch):
    examples = [e for e in tiny_examples() if len(e) > 2]
    two = sum(6 * len(e) ** 2 for e in examples[:2])
    monkeypatch.setattr(measure, "MOST_WEIGHTS", two)
    found = kept(examples)
    assert found.input.values.tolist() == [e.id for e in examples[:2]]
    assert found.sizes["example"] == len(examples)


def test_norms_are_missing_where_a_family_does_not_give_them():
    example = tiny_examples()[0]
    scope = Scope(2, 3, 1, stored_inputs=(example,), replicates=3)
    analysis = Examples(scope)
    batch = Batch.of([example], VOCABULARY, replicates=3)
    for view in observe(NETWORK, batch):
        analysis.observe(replace(view, values=None), batch)
    found = analysis.result()
    assert np.isnan(found.value_norm).all()
    assert np.isfinite(found.token_attention).all()


@pytest.mark.parametrize("options", [{}, {"measure": "weighted_norm", "pieces": "max"}])
def test_it_keeps_the_contract(options):
    check_analysis(Examples, **options)


@pytest.mark.parametrize(("option", "value"), [("pieces", "last"), ("measure", "norm")])
def test_options_that_are_not_there_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} is {value!r}; wanted one of"):
        Examples(Scope(1, 1), **{option: value})


def test_ids_that_no_file_can_hold_are_made_fit_for_one() -> None:
    """Half of a surrogate pair and NUL in an id of a corpus once ended the run as it was saved."""
    odd = [replace(e, id=f"\ud800\0 {e.id}") for e in tiny_examples()[:2]]
    found = kept(odd)
    assert found["input"].values.tolist() == [f"\ufffd\ufffd {e.id}" for e in tiny_examples()[:2]]
    assert found.to_netcdf(engine="h5netcdf")


def test_tokens_of_core_elements_and_of_what_evokes_a_frame_are_marked() -> None:
    example = next(e for e in tiny_examples() if len(e.words or ()) >= 4)
    parts = (FrameElement("Agent", 0, 0), FrameElement("Time", 3, 3, core=False))
    framed = replace(example, frames=(Frame("Moving", 1, 2, parts),))
    ends = kept([framed])["token_frame"].values[0, : len(framed)]
    assert framed.word_index is not None
    assert [{0: 1, 1: 2, 2: 2}.get(word, 0) for word in framed.word_index.tolist()] == ends.tolist()
    assert set(ends.tolist()) == {0, 1, 2}
