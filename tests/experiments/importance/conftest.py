"""What do the tests of importance share? A tiny checkpoint, its ablation, and a finished run."""

from __future__ import annotations

import pytest

from headscope.experiments.ablation.ablate import ablate
from headscope.experiments.ablation.settings import AblationSettings
from headscope.experiments.importance.importance import importance
from headscope.experiments.importance.settings import ImportanceSettings
from headscope.run.execution import Execution
from headscope.tasks.task_model import load_for_task
from tasks.made import MOOD, checkpoint, data

STOCK = Execution(linears="stock")


@pytest.fixture(scope="session")
def mood(tmp_path_factory):
    """A checkpoint for a task of two classes."""
    return checkpoint(tmp_path_factory.mktemp("mood") / "model", head=MOOD)


@pytest.fixture(scope="session")
def ablated(mood, tmp_path_factory):
    """Its heads switched off."""
    return ablate(
        load_for_task(mood, MOOD),
        data(40),
        execution=STOCK,
        settings=AblationSettings(replicates=20, replacement="zero"),
        output=tmp_path_factory.mktemp("ablated") / "run",
    )


@pytest.fixture(scope="session")
def found(mood, ablated, tmp_path_factory):
    """A finished run with all methods, held against the ablation, and its report."""
    run = importance(
        load_for_task(mood, MOOD),
        data(40),
        settings=ImportanceSettings(replicates=50, steps=4),
        ablation=ablated,
        execution=STOCK,
        output=tmp_path_factory.mktemp("importance") / "run",
    )
    run.report()
    return run
