"""Does a study count the heads that each kind of training needs, and none of one at chance?"""

from __future__ import annotations

import numpy as np

from headscope.experiments.study import features
from headscope.experiments.study.result import MEASURES, StudyParts, study_result
from headscope.experiments.study.terms import TOGETHER
from headscope.experiments.study.trainings import StudyTraining
from headscope.tasks.task import Task

TASK = Task("mood", ("no", "yes"), ("accuracy",))
EXAMPLES, LAYERS, HEADS = 200, 2, 4
RIGHT = 160  # of the whole model


def state(*, needed=(), harmful=(), learned=True):
    """A training whose answers fall by 40 without each needed head, and rise by 20 without each
    harmful one."""
    labels, units = np.arange(EXAMPLES) % 2, LAYERS * HEADS
    right = np.full(units + 1, RIGHT)
    right[np.array(needed, int) + 1] -= 40
    right[np.array(harmful, int) + 1] += 20
    said = np.where(np.arange(EXAMPLES) < right[:, None], labels, 1 - labels)
    answers = 4 * np.eye(2, dtype=np.float32)[said]
    nothing = np.zeros((3, LAYERS))
    return {
        "scores": np.zeros((2, 3)),
        "chance": np.array([0.5]),
        "map_change": np.zeros((3, LAYERS, HEADS)),
        "layer_map_change": nothing,
        **dict.fromkeys(MEASURES, nothing[0]),
        **{name: np.zeros(1) for name in TOGETHER},
        "features": np.zeros((len(features.SIDES), 3, 1)),
        "feature_names": np.frombuffer(b'[["a"], ["A"], ["1"]]', np.uint8),
        **({"answers": answers, "others": answers[1:3]} if learned else {"answers": answers[:1]}),
    }


def test_needed_and_harmful_heads_are_counted_in_every_kind_of_training_but_at_chance():
    every = {
        ("plain", 0): state(needed=(0,), harmful=(7,)),
        ("plain", 1): state(needed=(0, 5), harmful=(6,)),
        ("frozen", 0): state(needed=(1, 2, 3)),
        ("frozen", 1): state(needed=(4,), learned=False),
    }
    parts = StudyParts(
        {StudyTraining(variant, "mood", seed): one for (variant, seed), one in every.items()},
        {"mood": TASK},
        {"mood": np.arange(EXAMPLES) % 2},
        LAYERS,
        HEADS,
    )
    data = study_result(parts, replicates=50, replacement="uniform", seed=0).sel(task="mood")
    np.testing.assert_array_equal(data.heads_needed, [[1, 2], [3, np.nan]])
    np.testing.assert_array_equal(data.heads_needed_by_loss, [[1, 2], [3, np.nan]])
    np.testing.assert_array_equal(data.heads_harmful, [[1, 1], [0, np.nan]])
    assert data.mean_heads_harmful[0] == 1
    assert data.mean_heads_harmful_ci_low.isnull().all()  # two equal counts have no spread
    np.testing.assert_allclose(data.mean_heads_needed, [1.5, 3])
    np.testing.assert_allclose(data.mean_heads_needed_ci_high, [7.853, np.nan], atol=1e-3)
    np.testing.assert_allclose(data.gain, [[0.1, 0.1], [0, np.nan]], atol=1e-12)
    np.testing.assert_allclose(data.effect[..., 0, 0], [[-0.2, -0.2], [0, np.nan]], atol=1e-12)
    np.testing.assert_allclose(data.needed_share[0, 0], 1)  # of plain trainings
    np.testing.assert_allclose(data.needed_share[0, 1:], 0)
