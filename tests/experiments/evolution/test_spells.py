"""Are births and ends of labels dated by the steps between which they lie?"""

from __future__ import annotations

import numpy as np
import xarray as xr

from headscope.experiments.evolution.spells import Spell, is_behind, lasting_spells, spells

STEPS = [0, 10, 20, 40, 80]


def of(*held: tuple[int, ...]) -> xr.Dataset:
    """One label of the heads of one layer, held at these places of the steps."""
    array = np.zeros((len(STEPS), 1, 1, len(held)))
    for head, places in enumerate(held):
        array[list(places), 0, 0, head] = 1
    return xr.Dataset(
        {"labelled": (("step", "label", "layer", "head"), array)},
        coords={"step": STEPS, "label": ["induction"], "kind": ("label", ["induction"])},
    )


def test_a_birth_lies_between_the_last_step_without_and_the_first_with_the_label() -> None:
    (one,) = spells(of((2, 3, 4)))
    assert one == Spell("induction", "induction", 0, 0, 10, 20, 80, None, 3)
    assert (one.born, one.gone) == ("between steps 10 and 20", "")


def test_a_label_that_is_there_at_first_has_no_birth_and_one_that_goes_has_an_end() -> None:
    (one,) = spells(of((0, 1, 2)))
    assert (one.born_after, one.born_by, one.last, one.gone_by) == (None, 0, 20, 40)
    assert one.born == "by step 0, the first that was measured"
    assert one.gone == "between steps 20 and 40"


def test_a_label_that_comes_again_has_two_spells_and_a_single_step_is_a_flicker() -> None:
    data = of((1, 3, 4))
    assert [(one.born_by, one.lasts) for one in spells(data)] == [(10, False), (40, True)]
    assert [one.born_by for one in lasting_spells(data)] == [40]


def test_a_label_at_the_last_step_alone_lasts_as_nobody_saw_it_go() -> None:
    assert [one.lasts for one in spells(of((4,)))] == [True]


def test_spells_are_in_the_order_of_births() -> None:
    assert [(one.head, one.born_by) for one in spells(of((3, 4), (1, 2)))] == [(1, 10), (0, 40)]


def test_a_run_without_labels_has_no_spells() -> None:
    assert spells(of((1,)).drop_vars("labelled")) == []


def test_a_number_is_behind_labels_of_its_kind_or_of_its_variable() -> None:
    assert is_behind("circuits.score.induction", "induction")
    assert is_behind("circuits.copied_attention", "copying")
    assert not is_behind("circuits.score.induction", "copying")
