"""Are copies of a document found, near ones told, and neither counted as further evidence?"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import headscope as hs
from headscope.core.accumulators import groups_of
from headscope.core.results import estimate
from headscope.corpus import equal_documents
from headscope.corpus.document import Example, MemoryCorpus
from headscope.corpus.equal_documents import EqualDocuments, content_name, unit_names
from headscope.report.run_facts import facts
from headscope.run.plan import make_plan
from headscope.run.settings import Settings
from headscope.run.shared_plan import part_of_state, state_of_part

DOCUMENTS = 6
RNG = np.random.default_rng(0)


def document(ids, name: str, frame: int = 2) -> list[Example]:
    """One input with special tokens around what it says."""
    tokens = np.concatenate([[1] * (frame - 1), ids, [2]]).astype(np.int64)
    special = np.isin(np.arange(len(tokens)), [*range(frame - 1), len(tokens) - 1])
    one = Example(name, name, tokens, np.zeros_like(tokens), special)
    return [replace(one, content=content_name([one]))]


def changed(ids, share: float):
    """The same with so many of its tokens, one beside the other, exchanged."""
    other = ids.copy()
    other[: round(share * len(ids))] = RNG.integers(10, 30_000, round(share * len(ids)))
    return other


def told(documents) -> dict:
    found = EqualDocuments()
    for one in documents:
        found.consider(one)
    return found.counted(len(documents))


def words(*, count: int = 400):
    return RNG.integers(10, 30_000, count)


def test_what_stands_there_twice_is_told_whatever_its_id_and_its_frame() -> None:
    ids = words()
    assert told([document(ids, "a"), document(words(), "b")]) == {}
    found = told([document(ids, "a"), document(ids, "b", frame=3), document(words(), "c")])
    assert found == {"copies": 1, "nearly_equal": 0}


@pytest.mark.parametrize(("share", "near"), [(0.03, 2), (0.5, 0), (1, 0)])
def test_documents_that_share_four_fifths_are_told(share: float, near: int) -> None:
    ids = words()
    found = told([document(ids, "a"), document(changed(ids, share), "b"), document(words(), "c")])
    assert found.get("nearly_equal", 0) == near


def test_one_document_read_in_two_ways_is_no_copy() -> None:
    ids = words()
    assert told([document(ids, "a"), document(ids, "a"), document(changed(ids, 0.03), "a")]) == {}


def test_short_documents_are_found_too() -> None:
    found = told([document([5, 6], "a"), document([5, 6], "b"), document([6, 5], "c")])
    assert found == {"copies": 1, "nearly_equal": 0}


def test_it_does_not_depend_on_how_a_corpus_is_divided(monkeypatch) -> None:
    """Nor on having been kept in a file; of a large corpus a sample is held."""
    monkeypatch.setattr(equal_documents, "MOST_HELD", 40)
    some = [words(count=30) for _ in range(150)]
    every = [document(some[at % 150], f"{at}") for at in range(600)]
    whole = EqualDocuments()
    for one in every:
        whole.consider(one)
    parts = []
    for start in (0, 10, 200, 350):
        parts.append(EqualDocuments())
        for one in every[start : {0: 10, 10: 200, 200: 350, 350: 600}[start]]:
            parts[-1].consider(one)
    first, *others = (EqualDocuments.of_state(json.loads(json.dumps(p.state()))) for p in parts)
    for part in others:
        first.merge(part)
    assert (
        first.counted(600)
        == whole.counted(600)
        == {
            "copies": 450,
            "nearly_equal": 0,
            "estimated": True,
        }
    )
    assert first.held.keys() == whole.held.keys()
    assert len(whole.held) == 40


# --- runs ---------------------------------------------------------------------------------------


def copied(times: int) -> MemoryCorpus:
    every = list(hs.demo_corpus())[:DOCUMENTS]
    return MemoryCorpus(
        [replace(one, id=f"{one.id} {copy}") for copy in range(times) for one in every]
    )


def test_copies_narrow_no_interval(demo) -> None:
    """Each document eight times narrowed one from .277 to .079 without a word."""
    once, many = (
        hs.atlas(
            demo,
            copied(times),
            analyses=["surface"],
            control="none",
            execution=hs.Execution(linears="stock", threads=1),
        )
        for times in (1, 3)
    )
    one, other = (estimate(run["surface"], "attention") for run in (once, many))
    np.testing.assert_allclose(other.value, one.value, atol=1e-6)
    np.testing.assert_allclose(other.high - other.low, one.high - one.low, atol=1e-6)
    assert many.tree.attrs["documents"] == once.tree.attrs["documents"] == DOCUMENTS
    assert many.manifest["counts"]["copies"] == 2 * DOCUMENTS
    read = next(fact.value for fact in facts(many.tree, many.manifest) if fact.label == "Read")
    assert read.startswith(f"{DOCUMENTS} documents")
    assert read.endswith(f"{2 * DOCUMENTS} more are copies, and count with these")


@pytest.mark.parametrize("replicates", [200, 5])
def test_copies_share_a_group_and_a_half(demo, replicates: int) -> None:
    """On a list, where they are few, and by their content, where they are many."""
    plan = make_plan(demo, copied(2), Settings(replicates=replicates))
    assert len(set(plan.listed.values())) == (DOCUMENTS if plan.listed else 0)
    assert bool(plan.listed) == (replicates == 200)
    ids, listed = words(), {"a": 0, "b": 0, "c": 1} if plan.listed else {}
    some = [*document(ids, "a"), *document(ids, "b"), *document(words(), "c")]
    names = unit_names(some, listed)
    assert names[0] == names[1] != names[2]
    groups = groups_of(names, replicates=replicates, listed=listed)
    assert groups[0] == groups[1]


def test_a_plan_that_is_kept_in_a_file_lists_the_same_documents(demo) -> None:
    from headscope.run.plan import encoder_for, plan_partition

    settings = Settings(replicates=200)
    part = plan_partition(encoder_for(demo, settings), copied(2), settings)
    kept = part_of_state(state_of_part(part), settings)
    assert kept.places() == part.places()
    for kind, reading in part.readings.items():
        assert kept.readings[kind].counted() == reading.counted()
