"""Does `dependency` count what a head finds, by the rules of the paper?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from analyses.running import run
from headscope.analyses.dependency.measure import ALL, CLEAN, DIRECTIONS
from headscope.analyses.language.held_out import best
from headscope.core.accumulators import halves
from headscope.corpus import Example, Word
from headscope.errors import InputError
from headscope.model.batch import Batch
from headscope.run.analysis import Scope
from headscope.run.check_analysis import check_analysis
from headscope.run.contract_bench import CLS, SEP, tiny_examples, tiny_network
from headscope.run.known_analyses import known_analyses
from reference import dependency
from reference.extraction import Blocks

OPTIONS = [
    {"pieces": pieces, "measure": measure}
    for pieces in ("mean", "first", "max")
    for measure in ("attention", "weighted_norm")
]


def sentence(*rows: tuple[str, int, str], name: str = "s", erased: tuple[int, ...] = ()) -> Example:
    """One token per word (form, head, relation) between [CLS] and [SEP]."""
    words = tuple(Word(form, head=head, relation=relation) for form, head, relation in rows)
    kept = [w for w in range(len(words)) if w not in erased]
    index = np.array([-1, *kept, -1])
    ids = np.array([CLS, *range(6, 6 + len(kept)), SEP])
    return Example(name, name, ids, ids * 0, index < 0, index, words)


def pointing(examples: list[Example], targets: list[dict[int, int]]):
    """Planted attention: every head lets a word look at its target word, or else at [CLS]."""

    def plant(batch: Batch, layer: int) -> torch.Tensor:
        tokens = batch.input_ids.shape[1]
        maps = torch.zeros(len(batch.examples), 3, tokens, tokens, dtype=torch.float64)
        for row, example in enumerate(batch.examples):
            goals = targets[[e.id for e in examples].index(example.id)]
            for token, word in enumerate(example.word_index):
                goal = goals.get(int(word))
                to = 0 if goal is None else int(np.flatnonzero(example.word_index == goal)[0])
                maps[row, :, token, to] = 1
        return maps

    return plant


def scored(examples: list[Example], targets: list[dict[int, int]], **options: object) -> xr.Dataset:
    found = run({"dependency": options}, examples=examples, plant=pointing(examples, targets))
    return found["dependency"]


CAT = sentence(("the", 1, "det"), ("cat", 2, "nsubj"), ("sleeps", -1, "root"), (".", 2, "punct"))


def test_a_head_that_points_at_the_syntactic_head_finds_all_but_the_root():
    found = scored([CAT], [{0: 1, 1: 2, 3: 2}])
    one = found.accuracy.sel(direction="dependent_to_head").isel(layer=0, head=1)
    assert one.sel(relation="det") == one.sel(relation="nsubj") == one.sel(relation="punct") == 1
    assert one.sel(relation="root") == 0
    assert one.sel(relation=ALL) == 3 / 4
    assert one.sel(relation=CLEAN) == 1
    assert found["count"].sel(relation=[ALL, CLEAN]).values.tolist() == [4, 2]


def test_the_other_direction_asks_who_attends_to_the_word():
    found = scored([CAT], [{1: 0, 2: 1}])
    one = found.accuracy.sel(direction="head_to_dependent").isel(layer=0, head=0)
    assert one.sel(relation="det") == one.sel(relation="nsubj") == 1
    assert one.sel(relation="punct") == 0
    assert found.accuracy.sel(direction="dependent_to_head", relation="det").max() == 0


def test_offsets_stop_at_the_ends_of_the_sentence():
    found = scored([CAT], [{}])
    one = found.offset_accuracy
    assert one.sel(offset=1, relation="det") == 1
    assert one.sel(offset=-3, relation="root") == 1  # clamped to 0, which is the root
    assert one.sel(offset=-2, relation="root") == 0
    assert one.sel(offset=5, relation="det") == 0  # clamped to the last word
    assert one.sel(offset=-1, relation="punct") == 1
    assert found.best_offset.sel(relation="nsubj") == 1
    assert found.baseline.sel(relation="nsubj") == 1


JOHN = (("John", 2, "poss"), ("'s", 0, "possessive"), ("dog", -1, "root"))


@pytest.mark.parametrize(
    ("relation", "possessive", "expected"),
    [
        ("poss", "stanford", 1),
        ("poss", "universal", 1),
        ("poss", "off", 0),
        ("nmod:poss", "stanford", 0),
        ("nmod:poss", "universal", 1),
    ],
)
def test_the_clitic_answers_for_the_possessor(relation, possessive, expected):
    example = sentence(("John", 2, relation), *JOHN[1:])
    found = scored([example], [{1: 2, 0: 1}], possessive=possessive)
    one = found.accuracy.isel(layer=0, head=0, direction=0)
    assert one.sel(relation=relation) == expected
    assert one.sel(relation="possessive") == 0


def test_a_possessor_at_the_end_of_the_sentence_answers_for_itself():
    example = sentence(("dog", -1, "root"), ("John", 0, "poss"))
    assert scored([example], [{1: 0}]).accuracy.sel(relation="poss").max() == 1


def test_subtypes_fold_and_relations_are_chosen():
    example = sentence(
        ("it", 2, "nsubj:pass"), ("was", 2, "aux"), ("seen", -1, "root"), ("he", 2, "nsubj")
    )
    kept = scored([example], [{0: 2}])
    assert set(kept.relation.values) == {ALL, CLEAN, "nsubj:pass", "aux", "root", "nsubj"}
    folded = scored([example], [{0: 2}], subtypes="fold", relations="nsubj, aux")
    assert folded.relation.values.tolist() == [ALL, CLEAN, "aux", "nsubj"]
    assert folded.accuracy.sel(relation="nsubj", direction="dependent_to_head").max() == 1 / 2
    assert folded["count"].sel(relation=ALL) == 4


def test_an_unknown_relation_is_refused_with_those_there_are():
    scope = Scope(1, 1, relations=("nsubj", "obj"))
    says = r"no relation 'dobj' in this corpus; did you mean 'obj'\? there are nsubj, obj"
    with pytest.raises(InputError, match=says):
        known_analyses()["dependency"](scope, relations="nsubj,dobj")


def test_words_whose_head_is_elsewhere_are_left_out_and_counted():
    windowed = sentence(("the", 1, "det"), ("cat", 2, "nsubj"), name="window")
    windowed = replace(windowed, words=CAT.words)
    found = scored([windowed], [{0: 1}])
    assert found["count"].sel(relation=ALL) == 1
    assert found.accuracy.sel(relation="det", direction="dependent_to_head").max() == 1
    assert found.left_out.values.tolist() == [1, 0]


def test_words_without_a_token_are_left_out_and_counted():
    erased = sentence(
        ("a", 1, "det"), ("\u200b", 2, "obj"), ("b", -1, "root"), ("c", 2, "obj"), erased=(1,)
    )
    found = scored([erased], [{3: 2}])
    assert found["count"].sel(relation=ALL) == 2
    assert found.left_out.values.tolist() == [0, 2]  # the word itself, and the one that hangs on it
    assert found.accuracy.sel(relation="obj", direction="dependent_to_head").max() == 1


def test_a_head_without_any_weight_gives_no_answer():
    found = scored([sentence(("a", 1, "det"), ("b", -1, "root"))], [{}])
    assert float(found.accuracy.max()) == 0
    assert np.isnan(found.best_layer.sel(relation="det"))
    assert found.best_accuracy.sel(relation="det") == 0


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_it_agrees_with_the_reference(reference: list[Blocks], options, dtype) -> None:
    examples = tiny_examples()
    options = {**options, "possessive": "universal"}
    found = run({"dependency": options}, network=tiny_network(dtype), examples=examples)
    asked, hits = {}, {}
    for example, block in zip(examples, reference, strict=True):
        if not example.words:
            continue
        heads = [w.head for w in example.words]
        labels = ["root" if w.head < 0 else w.relation for w in example.words]
        forms = [w.form for w in example.words]
        maps = block["attention"]
        if options["measure"] == "weighted_norm":
            maps = maps * np.linalg.norm(block["f"], axis=-1)[:, :, None, :]
        for layer, head in np.ndindex(maps.shape[:2]):
            words = dependency.word_map(maps[layer, head], example.word_index, options["pieces"])
            for direction, answers in zip(DIRECTIONS, dependency.predictions(words), strict=True):
                ok = dependency.right(answers, heads, labels, forms, ("poss", "nmod:poss"))
                for label, hit in zip(labels, ok, strict=True):
                    for column in (ALL, label):
                        key = (layer, head, direction, column)
                        asked[key] = asked.get(key, 0) + 1
                        hits[key] = hits.get(key, 0) + hit
    assert len(asked) > 20
    for (layer, head, direction, column), n in asked.items():
        cell = found["dependency"].accuracy.sel(
            layer=layer, head=head, direction=direction, relation=column
        )
        assert float(cell) == pytest.approx(hits[layer, head, direction, column] / n, abs=1e-12)


@pytest.mark.parametrize("options", [*OPTIONS, {"subtypes": "fold"}, {"relations": "det"}])
def test_it_keeps_the_contract(options):
    check_analysis(known_analyses()["dependency"], **options)


@pytest.mark.parametrize(
    ("option", "value"),
    [("subtypes", "no"), ("possessive", "x"), ("pieces", "last"), ("measure", "norm")],
)
def test_options_that_are_not_there_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} is {value!r}; wanted one of"):
        known_analyses()["dependency"](Scope(1, 1), **{option: value})


# --- the best head --------------------------------------------------------------------------


def test_a_head_is_chosen_on_one_half_and_scored_on_the_other():
    """Unit 0 is best on half 0, unit 1 on half 1: held out, each is scored where it is worse."""
    correct = np.array([[[[9.0], [1.0]], [[2.0], [5.0]]]])  # [replicate, half, unit, column]
    count = np.array([[[10.0], [10.0]]])
    found = best(correct, count)
    assert found.unit.tolist() == [0]
    assert found.chosen.tolist() == [[11 / 20]]
    assert found.held_out.tolist() == [[(1 + 2) / 20]]


def test_choices_are_those_of_the_data_in_every_replicate():
    correct = np.array([[[[9.0], [1.0]], [[9.0], [5.0]]], [[[0.0], [8.0]], [[0.0], [8.0]]]])
    count = np.full((2, 2, 1), 10.0)
    assert best(correct, count).chosen.tolist() == [[18 / 20], [0.0]]


def test_where_none_is_ever_right_none_is_best():
    found = best(np.zeros((1, 2, 3, 1)), np.full((1, 2, 1), 4.0))
    assert found.unit.tolist() == [-1]
    assert found.chosen.tolist() == [[0.0]]
    assert np.isnan(found.held_out).all()


def test_halves_depend_on_the_document_and_the_seed_alone():
    names = [f"d{i}" for i in range(400)]
    first = halves(names, seed=0)
    assert halves(names[::-1], seed=0).tolist() == first[::-1].tolist()
    assert 150 < first.sum() < 250
    assert (halves(names, seed=1) != first).any()
