"""What do the tests of ablation share? Tiny fine-tuned-looking checkpoints and a finished run."""

from __future__ import annotations

import pytest

from headscope.experiments.ablation.ablate import ablate
from headscope.experiments.ablation.settings import AblationSettings
from headscope.run.execution import Execution
from headscope.tasks.task_model import load_for_task
from tasks.made import AMOUNT, MOOD, checkpoint, data

STOCK = Execution(linears="stock")


@pytest.fixture(scope="session")
def mood(tmp_path_factory):
    """A checkpoint for a task of two classes."""
    return checkpoint(tmp_path_factory.mktemp("mood") / "model", head=MOOD)


@pytest.fixture(scope="session")
def amount(tmp_path_factory):
    """A checkpoint for a regression."""
    return checkpoint(tmp_path_factory.mktemp("amount") / "model", head=AMOUNT)


@pytest.fixture(scope="session")
def ablated(mood, tmp_path_factory):
    """A finished run with a group and pairs, and its report."""
    settings = AblationSettings(
        groups=(((0, 1), (1, 2)),), pairs=2, replicates=50, batch_tokens=200
    )
    run = ablate(
        load_for_task(mood, MOOD),
        data(40),
        settings=settings,
        execution=STOCK,
        output=tmp_path_factory.mktemp("ablated") / "run",
    )
    run.report()
    return run
