"""Which trainings does a study have, and what does each change?"""

from __future__ import annotations

import numpy as np
import pytest

from headscope.errors import InputError
from headscope.experiments.finetune.settings import TrainingSchedule
from headscope.experiments.study.trainings import (
    VARIANTS,
    StudyTraining,
    check_variants,
    trainings_of,
)
from tasks.made import data


def test_every_task_is_trained_once_before_there_are_more_seeds():
    some = trainings_of(("plain", "frozen"), ["rte", "a/b"], range(2))
    assert [one.name for one in some[:4]] == ["rte-seed0", "a-b-seed0", "rte-seed1", "a-b-seed1"]
    assert some[4].name == "rte-seed0-frozen"
    assert len(set(some)) == 8


def test_only_its_variant_decays_or_freezes():
    usual = TrainingSchedule(layer_decay=0.5, freeze=3)
    for variant in VARIANTS:
        own = StudyTraining(variant, "rte", 7).schedule(usual)
        assert own.seed == 7
        assert own.layer_decay == (0.5 if variant == "layer-decay" else 1.0)
        assert own.freeze == (3 if variant == "frozen" else 0)


def test_shuffled_labels_are_the_same_labels_elsewhere_and_follow_the_seed():
    train = data(40)
    first, again, other = (
        StudyTraining("random-labels", "mood", seed).examples(train) for seed in (0, 0, 1)
    )
    assert first.rows == again.rows != other.rows
    assert sorted(first.labels) == sorted(train.labels)
    assert not np.array_equal(first.labels, train.labels)
    assert [row.text_a for row in first.rows] == [row.text_a for row in train.rows]
    assert StudyTraining("plain", "mood", 0).examples(train) is train


@pytest.mark.parametrize(
    ("variants", "says"),
    [
        ((), "wanted plain first"),
        (("frozen",), "wanted plain first"),
        (("plain", "plain"), "each once"),
        (("plain", "frozn"), "no variant called 'frozn'"),
    ],
)
def test_variants_that_cannot_be_are_refused(variants, says):
    with pytest.raises(InputError, match=says):
        check_variants(variants)
