"""Are the sentences of a small model's report true, and does the check find one that is not?"""

import pytest
from benchmarks.sentences import named_numbers, patterns
from benchmarks.sentences.__main__ import demo_sentences, said_by
from benchmarks.sentences.checking import check, check_one
from benchmarks.sentences.page import Said
from benchmarks.sentences.runs import Folder
from benchmarks.sentences.world import World

import headscope as hs
from made_models import small_bert

DOCUMENTS = 5
OF_ATLAS = (*patterns.PATTERNS, *named_numbers.PATTERNS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return small_bert(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def world(folder):
    sentences = demo_sentences()
    few = list(dict.fromkeys(one.document for one in sentences))[:DOCUMENTS]
    return World(folder, [one for one in sentences if one.document in few])


@pytest.fixture(scope="module")
def said(folder, tmp_path_factory):
    output = tmp_path_factory.mktemp("run")
    asked = ("surface", "entropy", "distance", "dependency")
    run = hs.atlas(
        folder, "demo", limit=DOCUMENTS, analyses=asked, control=None, output=output / "run"
    )
    run.report(output / "report.html")
    return said_by(Folder(output))


def test_every_sentence_of_a_small_model_is_true(said, world):
    of_numbers = [one for one in OF_ATLAS if one not in patterns.COUNTS]  # labels are in tables
    results = check(said, world, of_numbers)
    checked = [one for one in results if one.pattern]
    assert len(checked) > 80
    assert {"inputs", "mean head, entropy", "row of a relation"} <= {r.pattern for r in checked}
    assert [(one.text, one.faults) for one in checked if one.faults] == []


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("L1·H2 attends to the previous token, {by_one} % [{low}, {high}]", "is"),
        ("L1·H2 attends to the previous token, {right} % [{above}, {far}]", "lies outside"),
        ("L1·H2 attends to the previous token, {right} % [0, 101]", "leaves what is possible"),
        ("The entropy of a mean head is 9.99 of 2.82 nats.", "is"),
        ("n = 5 documents, 1 tokens", "is"),
    ],
)
def test_a_false_sentence_is_found(world, sentence, fault):
    share = 100 * float(world.of("to previous", (0, 1)).value)
    error = 100 * float(world.of("to previous", (0, 1)).error)
    text = sentence.format(
        right=f"{share:.0f}",
        by_one=f"{share + 1:.0f}",
        low=f"{share - 2 * error:.0f}",
        high=f"{share + 2 * error + 1:.0f}",
        above=f"{share + 5:.0f}",
        far=f"{share + 9:.0f}",
    )
    (found,) = check_one(Said("answer", text), text, world, OF_ATLAS)
    assert found.pattern
    assert any(fault in one for one in found.faults)


def test_the_true_sentence_passes(world):
    share = world.of("to previous", (0, 1))
    value, error = 100 * float(share.value), 100 * float(share.error)
    text = (
        f"L1·H2 attends to the previous token, {value:.2f} % "
        f"[{value - 2 * error:.2f}, {value + 2 * error:.2f}]"
    )
    (found,) = check_one(Said("answer", text), text, world, OF_ATLAS)
    assert (found.pattern, found.faults) == ("target", ())


def test_heads_that_a_list_names_have_the_label(world):
    labels = [("L1·H1", "nearby tokens", "…"), ("L1·H2", "nearby tokens", "…")]
    text = "L1·H1 3 heads have this label: L1·H1, L1·H2 and 1 more"
    world.labels = labels
    (found,) = check_one(Said("telling", text), text, world, OF_ATLAS)
    assert "says 3 heads" in found.faults[0]
    world.labels = [*labels, ("L2·H1", "nearby tokens", "…")]
    (found,) = check_one(Said("telling", text), text, world, OF_ATLAS)
    assert found.faults == ()
