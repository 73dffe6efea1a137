"""Do the numbers of heads reach TensorBoard, Weights & Biases and MLflow, and can they be read?

The trackers are no part of our installation: each test is skipped where its own is not there.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headscope as hs
from experiments.evolution.made import taught
from headscope.model.checkpoint import quietly

NAME = "headscope/circuits.score.induction/largest"
WHY = "{} is not installed (pip install {})"
pytestmark = pytest.mark.filterwarnings("ignore")  # of the trackers' own code


def measured(folder: Path, tracker: str, monkeypatch: pytest.MonkeyPatch) -> dict[int, float]:
    """Step -> the largest induction score, of a training that reports to a tracker."""
    monkeypatch.chdir(folder)
    with quietly():
        one = taught(
            folder / "out",
            callback={"output": folder / "run", "log": "heads"},
            steps=8,
            report_to=tracker,
            logging_strategy="steps",
            logging_steps=4,
        )
        one.train()
    value = hs.open_run(folder / "run")["evolution"]["value"]
    largest = value.sel(measure="circuits.score.induction").max(("layer", "head"))
    return {int(step): float(largest.sel(step=step)) for step in largest["step"].values}


def test_tensorboard_has_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard", reason=WHY.format("tensorboard", "tensorboard"))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "logs"))
    run = measured(tmp_path, "tensorboard", monkeypatch)
    files = list(tmp_path.rglob("events.out.tfevents.*"))
    assert len(files) == 1
    events = EventAccumulator(str(files[0])).Reload()
    read = {one.step: one.value for one in events.Scalars(f"train/{NAME}")}
    assert read.keys() == run.keys()
    np.testing.assert_allclose([read[s] for s in run], list(run.values()), rtol=1e-6)
    assert "train/headscope/circuits.score.induction/L1H1" in events.Tags()["scalars"]
    assert len(events.Scalars("train/loss")) == 2


def test_weights_and_biases_has_them_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb", reason=WHY.format("wandb", "wandb"))
    for name, value in {"MODE": "offline", "DIR": str(tmp_path), "SILENT": "true"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    run = measured(tmp_path, "wandb", monkeypatch)
    try:
        assert wandb.run.summary[f"train/{NAME}"] == pytest.approx(run[8])
        assert wandb.run.summary["train/global_step"] == 8
    finally:
        wandb.finish()
    (file,) = tmp_path.rglob("run-*.wandb")
    assert NAME.encode() in file.read_bytes()


def test_mlflow_has_every_step_in_a_local_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason=WHY.format("mlflow", "mlflow-skinny"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    run = measured(tmp_path, "mlflow", monkeypatch)
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlruns").as_uri())
    (one,) = client.search_runs(["0"])
    read = {each.step: each.value for each in client.get_metric_history(one.info.run_id, NAME)}
    assert read == pytest.approx(run)
