"""Does the callback follow a training without changing it, and survive what may happen to it?"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from experiments.evolution.made import EVERY, FEW, STEPS, taught
from headscope.errors import InputError, ModelError, RunFolderError
from headscope.experiments.evolution import trainer_callback
from headscope.experiments.evolution.evolve import evolve
from headscope.experiments.evolution.spells import spells
from headscope.experiments.evolution.trainer_callback import Progress, as_it_is
from headscope.model.checkpoint import quietly
from headscope.run.folder_check import BAD, check_folder

INDUCTION = "circuits.score.induction"


def weights(teacher: Any) -> list[torch.Tensor]:
    return [part.detach().clone() for part in teacher.model.parameters()]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("callback")


@pytest.fixture(scope="module")
def teacher(place: Path) -> Any:
    """A training that was not interrupted, followed and saved at step 12 and at its end."""
    with quietly():
        one = taught(
            place / "whole",
            callback={"output": place / "run", "control": "random"},
            save_strategy="steps",
            save_steps=STEPS // 2,
            logging_strategy="steps",
            logging_steps=EVERY,
        )
        one.train()
    return one


def test_every_due_step_is_in_the_run_folder_which_is_whole(teacher: Any, place: Path) -> None:
    run = hs.open_run(place / "run")
    assert run["evolution"]["step"].values.tolist() == list(range(0, STEPS + 1, EVERY))
    assert [line for line in check_folder(place / "run") if line[0] == BAD] == []
    assert run["evolution"]["own_control"].values.tolist() == [1, 0, 0, 0, 0, 0, 1]
    assert np.isfinite(run["evolution"]["control_most"].sel(measure=INDUCTION)).all()


def test_what_is_measured_in_training_is_what_its_checkpoint_shows(
    teacher: Any, place: Path, tmp_path: Path
) -> None:
    run = hs.open_run(place / "run")
    how: dict[str, Any] = {**FEW, "control": "random"}
    again = evolve([place / "whole"], output=tmp_path / "run", execution=STOCK, **how)
    both = [one["evolution"].sel(step=STEPS) for one in (run, again)]
    for name in ("value", "value_ci_low", "control_most"):
        np.testing.assert_allclose(both[0][name].values, both[1][name].values, rtol=1e-5)
    np.testing.assert_array_equal(both[0]["labelled"].values, both[1]["labelled"].values)


STOCK = hs.Execution(linears="stock")


def test_the_numbers_are_logged_at_their_steps_and_logs_of_the_trainer_stay(teacher: Any) -> None:
    history = teacher.state.log_history
    name = f"headscope/{INDUCTION}/largest"
    logged = {one["step"]: one[name] for one in history if name in one}
    run = hs.open_run(teacher.callback_handler.callbacks[-1].job.folder)
    of_heads = run["evolution"]["value"].sel(measure=INDUCTION).max(("layer", "head"))
    assert logged == {int(step): float(of_heads.sel(step=step)) for step in of_heads["step"]}
    assert [one["step"] for one in history if "loss" in one] == list(range(EVERY, STEPS + 1, EVERY))
    assert any(key.startswith("headscope/heads with a label/") for one in history for key in one)


def test_the_training_is_the_same_to_the_bit_without_the_callback(
    teacher: Any, tmp_path: Path
) -> None:
    with quietly():
        alone = taught(tmp_path / "alone")
        alone.train()
    for one, other in zip(weights(teacher), weights(alone), strict=True):
        assert torch.equal(one, other)


def test_births_of_a_resumed_training_are_those_of_an_uninterrupted_one(
    teacher: Any, place: Path, tmp_path: Path
) -> None:
    """Stopped at step 14, two steps after it was saved, and begun again from step 12."""
    callback = {"output": tmp_path / "run", "control": "random"}
    saved = {"save_strategy": "steps", "save_steps": STEPS // 2}
    with quietly():
        stopped = taught(tmp_path / "parts", callback=callback, **saved)

        class Stop(trainer_callback.TrainerCallback):  # type: ignore[misc]
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.global_step == STEPS // 2 + 2:
                    raise KeyboardInterrupt

        stopped.add_callback(Stop())
        with pytest.raises(KeyboardInterrupt):
            stopped.train()
        assert not (tmp_path / "run" / "atlas.nc").exists()
        part = evolve([tmp_path / "run"], output="unused")
        assert part["evolution"]["step"].values.tolist() == [0, 4, 8, 12]
        resumed = taught(tmp_path / "parts", callback=callback, **saved)
        resumed.train(resume_from_checkpoint=True)
    whole, parts = (hs.open_run(one)["evolution"] for one in (place / "run", tmp_path / "run"))
    np.testing.assert_array_equal(whole["value"].values, parts["value"].values)
    assert spells(whole) == spells(parts)
    assert spells(whole), "a label is born that can be dated"


def test_a_measurement_that_fails_is_noted_and_the_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with quietly():
        one = taught(tmp_path / "out", callback={"output": tmp_path / "run"}, steps=8)
    measure = trainer_callback.EvolveJob.measurement

    def failing(job: Any, model: Any) -> Any:
        if one.state.global_step == EVERY:
            raise RuntimeError("CUDA out of memory")
        return measure(job, model)

    monkeypatch.setattr(trainer_callback.EvolveJob, "measurement", failing)
    with quietly(), caplog.at_level(logging.WARNING, "headscope"):
        one.train()
    assert one.state.global_step == 8
    run = hs.open_run(tmp_path / "run")
    assert run["evolution"]["step"].values.tolist() == [0, 8]
    assert any(
        "step 4 was not measured: " in note and "out of memory" in note for note in run.notes
    )
    assert "the training goes on" in caplog.text


def test_another_training_in_the_folder_is_refused_before_it_begins(
    teacher: Any, place: Path, tmp_path: Path
) -> None:
    with quietly():
        other = taught(tmp_path / "out", callback={"output": place / "run", "control": "random"})
        with torch.no_grad():
            next(iter(other.model.parameters())).add_(0.01)
        with pytest.raises(RunFolderError, match="holds step 0 of another training"):
            other.train()
    assert other.state.global_step == 0


def test_mixed_precision_is_measured_in_full_and_comes_back(tmp_path: Path) -> None:
    saved = {"save_strategy": "steps", "save_steps": 4}
    with quietly():
        one = taught(
            tmp_path / "out", callback={"output": tmp_path / "run"}, steps=4, bf16=True, **saved
        )
        one.train()
    assert "forward" in vars(one.model), "accelerate has wrapped it"
    how: dict[str, Any] = {**FEW, "control": "none", "execution": STOCK}
    again = evolve([tmp_path / "out"], output=tmp_path / "again", **how)["evolution"]
    run = hs.open_run(tmp_path / "run")["evolution"]
    both = [each["value"].sel(step=4).values for each in (run, again)]
    np.testing.assert_allclose(*both, rtol=1e-5)  # bfloat16 would move them by a thousandth


def test_what_wraps_forward_is_off_inside_and_on_again_after() -> None:
    network: Any = torch.nn.Linear(2, 2)
    network.forward = lambda inputs: 7
    with as_it_is(network) as bare:
        assert bare(torch.zeros(1, 2)).shape == (1, 2)
    assert network(torch.zeros(1, 2)) == 7


def test_wrong_options_and_models_that_cannot_be_followed_are_refused_at_once(
    tmp_path: Path,
) -> None:
    with quietly():
        one = taught(tmp_path)
    for how, says in (
        ({"every": 0}, "every is 0; wanted 1 step or more"),
        ({"log": "all"}, "log is 'all'; wanted"),
        ({"control": "folder"}, "control is 'folder'; wanted"),
    ):
        with pytest.raises(InputError, match=says):
            hs.HeadscopeCallback(one, output=tmp_path / "run", **how)
    one.is_fsdp_enabled = True
    with pytest.raises(InputError, match="found a training with FSDP"):
        hs.HeadscopeCallback(one, output=tmp_path / "run")
    one.is_fsdp_enabled, one.processing_class = False, None
    with pytest.raises(ModelError, match="without its tokenizer"):
        hs.HeadscopeCallback(one, output=tmp_path / "run")


@pytest.mark.parametrize(
    ("costs", "every"),
    [([2.0, 0.1], 25), ([2.0, 1.0], 50), ([2.0, 2.0], 100), ([30.0, 1.0], 1600)],
)
def test_the_interval_is_as_short_as_the_cost_allows(costs: list[float], every: int) -> None:
    """1,000 steps of a second each; 4 % of them are 40 seconds."""
    begun = Progress(begun=0.0, began_at=0, base=25, costs=costs)
    chosen = begun.interval(25, 1000, now=25.0 + sum(costs))
    assert chosen == every
    left = 40 - sum(costs) - max(costs)
    assert every >= 1000 or 975 / every * costs[-1] <= left


def test_an_interval_that_was_chosen_is_kept_by_a_resumed_training(tmp_path: Path) -> None:
    callback = {"output": tmp_path / "run", "every": None}
    saved = {"save_strategy": "steps", "save_steps": 8, "steps": 16}
    with quietly():
        first = taught(tmp_path / "out", callback=callback, **saved)
        first.train()
        chosen = first.callback_handler.callbacks[-1].progress.every
        assert chosen is not None
        second = taught(tmp_path / "out", callback=callback, **saved)
        second.train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-8"))
    assert second.callback_handler.callbacks[-1].progress.every == chosen
