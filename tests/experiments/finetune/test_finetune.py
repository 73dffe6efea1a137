"""Does a model learn, is the record true, and does a training survive what may happen to it?"""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as T
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy
from transformers import AutoModelForSequenceClassification, AutoTokenizer

import headscope
from forked import forked
from headscope.core.whole_file import put_folder, replaceable
from headscope.errors import HeadscopeError, InputError, RunFolderError, RunStopped
from headscope.experiments.finetune import training
from headscope.experiments.finetune.optimization import WEIGHT_DECAY, Batches, optimizer, parts_of
from headscope.experiments.finetune.teaching import STATES, teach, working_folder
from headscope.tasks.metrics import score
from headscope.tasks.predict import encode, outputs
from headscope.tasks.remembered_task import TRAINING_RECORD
from headscope.tasks.task_model import load_for_task
from model.families.tokenizers_made import bytes_bpe
from tasks.made import AMOUNT, MOOD, checkpoint, config, data, tokenizer

ROOT = Path(__file__).resolve().parents[2]
FAST = {"epochs": 2, "batch": 8, "rate": 1e-3}
TRAIN, DEV = data(40), data(30, seed=1)
SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 40,
}
GPT2_TOKENS = partial(bytes_bpe, eos_token="<|end|>")
ROBERTA_TOKENS = partial(
    bytes_bpe,
    template=("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
    bos_token="<s>",
    eos_token="</s>",
    cls_token="<s>",
    sep_token="</s>",
    pad_token="<pad>",
)
MARKS = (TRAINING_RECORD,)
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("base") / "model")


def started(base: Path, **options):
    return load_for_task(base, MOOD, **({"new_head": True} | options))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


# --- what is learned, and what is written ---------------------------------------------------


def test_a_task_is_learned_and_the_checkpoint_says_what_the_record_says(base, tmp_path):
    record = teach(started(base), data(200), DEV, tmp_path / "ckpt", epochs=6, batch=8, rate=5e-3)
    assert record["metrics"]["after"]["accuracy"] > 0.9
    assert record["metrics"]["before"]["accuracy"] < 0.75
    assert record["loss"][-1] < 0.3 < record["loss"][0]
    assert len(record["loss"]) == 6
    again = load_for_task(tmp_path / "ckpt", MOOD)
    assert again.notes == ()
    found = score(MOOD, DEV.labels, outputs(again, encode(again, DEV)))
    after = record["metrics"]["after"]
    assert {name: after[name] for name in MOOD.metrics} == pytest.approx(found)
    assert after["ci_low"] <= after["accuracy"] <= after["ci_high"]


def test_the_checkpoint_is_safetensors_with_its_classes_and_its_record(base, tmp_path):
    record = teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    assert {path.name for path in (tmp_path / "ckpt").iterdir()} == {
        "config.json",
        "finetuned.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["ckpt"]  # nothing is left beside it
    assert json.loads((tmp_path / "ckpt/finetuned.json").read_text()) == record
    network = AutoModelForSequenceClassification.from_pretrained(tmp_path / "ckpt")
    assert network.config.id2label == {0: "no", 1: "cat"}
    assert network.dtype == torch.float32
    text = "the cat"
    assert AutoTokenizer.from_pretrained(tmp_path / "ckpt")(text) == AutoTokenizer.from_pretrained(
        base
    )(text)
    assert (tmp_path / "ckpt/model.safetensors").stat().st_mode & 0o777 == 0o644


def test_the_score_before_is_that_of_an_untrained_head(base, tmp_path):
    start = started(base, seed=4)
    wanted = score(MOOD, DEV.labels, outputs(start, encode(start, DEV)))
    record = teach(start, TRAIN, DEV, tmp_path / "ckpt", **FAST)
    before = record["metrics"]["before"]
    assert {name: before[name] for name in wanted} == pytest.approx(wanted)
    assert record["model"]["start"] == "new head"
    assert record["model"]["sha256"] == headscope.load(str(base)).sha256


def test_random_weights_are_trained_too(base, tmp_path):
    record = teach(started(base, random_init=True), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    assert record["model"]["start"] == "random"
    assert "model: all weights are random" in record["notes"]
    trained = weights(tmp_path / "ckpt")["bert.embeddings.word_embeddings.weight"]
    given = load_for_task(base, MOOD, new_head=True).model.network
    gap = trained - given.bert.embeddings.word_embeddings.weight.detach()
    assert float(gap.norm()) > 1  # it did not begin as the checkpoint


def test_a_regression_is_trained_on_its_numbers(tmp_path):
    folder = checkpoint(tmp_path / "base")
    start = load_for_task(folder, AMOUNT, new_head=True)
    train, dev = data(400, task=AMOUNT), data(40, seed=1, task=AMOUNT)
    record = teach(start, train, dev, tmp_path / "ckpt", epochs=6, batch=8, rate=5e-3)
    assert record["metrics"]["after"]["pearson"] > 0.75
    assert load_for_task(tmp_path / "ckpt", AMOUNT).model.network.config.num_labels == 1


FAMILIES: dict[str, tuple[dict[str, Any], Any]] = {
    "GPT2": ({"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 32}, GPT2_TOKENS),
    "Roberta": (SIZES | {"pad_token_id": 1, "type_vocab_size": 1}, ROBERTA_TOKENS),
    "Albert": (SIZES | {"embedding_size": 8}, tokenizer),
    "ModernBert": (SIZES | {"pad_token_id": 0}, tokenizer),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_other_families_are_trained_saved_and_loaded_again(family, tmp_path):
    options, tokens = FAMILIES[family]
    network = getattr(T, f"{family}Model")(getattr(T, f"{family}Config")(vocab_size=13, **options))
    network.save_pretrained(tmp_path / "base")
    tokens().save_pretrained(tmp_path / "base")
    record = teach(started(tmp_path / "base"), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    again = load_for_task(tmp_path / "ckpt", MOOD)
    found = score(MOOD, DEV.labels, outputs(again, encode(again, DEV)))
    assert {name: record["metrics"]["after"][name] for name in found} == pytest.approx(found)
    assert all(row["relative_change"] > 0 for row in record["layers"])


# --- what is recorded of the layers ---------------------------------------------------------


def by_hand(model, rows):
    """Mean loss over all rows, and the gradient of every parameter, one example at a time."""
    network = model.model.network
    network.zero_grad()
    losses = []
    for row in rows.rows:
        inputs = model.model.tokenizer(row.text_a, return_tensors="pt")
        loss = cross_entropy(network(**inputs).logits, torch.tensor([row.label]))
        (loss / len(rows)).backward()
        losses.append(float(loss.detach()))
    found = {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}
    network.zero_grad()
    return np.mean(losses), found


def test_gradient_norms_are_those_of_autograd_before_they_are_cut(tmp_path):
    base = checkpoint(tmp_path / "base", **STILL)
    start = started(base)
    start.model.network.classifier.weight.data *= 100  # a fresh head passes little on
    loss, gradients = by_hand(start, TRAIN)
    whole = float(torch.stack([g.norm() for g in gradients.values()]).norm())
    assert whole > 1  # the Trainer cuts it to 1
    record = teach(start, TRAIN, DEV, tmp_path / "ckpt", epochs=1, batch=40)
    assert record["loss"] == [pytest.approx(loss, rel=1e-5)]
    for row in record["layers"]:
        sign = {
            "embeddings": "bert.embeddings.",
            "layer": f"bert.encoder.layer.{row['layer']}.",
            "head": ("bert.pooler.", "classifier."),
        }[row["part"]]
        chosen = [g for name, g in gradients.items() if name.startswith(sign)]
        wanted = float(torch.stack([g.norm() for g in chosen]).norm())
        assert row["gradient_norm"] == pytest.approx(wanted, rel=1e-4)
        assert row["gradient_norm_by_epoch"] == [row["gradient_norm"]]


def test_relative_change_is_what_the_two_files_say(base, tmp_path):
    start = started(base)
    before = {name: p.detach().clone() for name, p in start.model.network.named_parameters()}
    record = teach(start, TRAIN, DEV, tmp_path / "ckpt", **FAST)
    after = weights(tmp_path / "ckpt")
    for row in record["layers"]:
        if row["part"] != "layer":
            continue
        names = [name for name in before if f"encoder.layer.{row['layer']}." in name]
        flat = [torch.cat([w[name].flatten() for name in names]).double() for w in (before, after)]
        assert row["relative_change"] == pytest.approx(
            float((flat[1] - flat[0]).norm() / flat[0].norm())
        )
        assert row["weight_norm"] == pytest.approx(float(flat[0].norm()))
        assert row["parameters"] == len(flat[0])
    assert [row["layer"] for row in record["layers"]] == [None, 0, 1, None]


def test_layer_decay_makes_each_layer_step_as_far_as_its_rate(tmp_path):
    """Adam's first step moves every weight by its rate, whatever its gradient."""
    base = checkpoint(tmp_path / "base", **STILL)
    start = started(base)
    before = {name: p.detach().clone() for name, p in start.model.network.named_parameters()}
    record = teach(
        start,
        TRAIN,
        DEV,
        tmp_path / "ckpt",
        epochs=1,
        batch=40,
        rate=8e-3,
        layer_decay=0.5,
        warm_up=0.0,
    )
    after = weights(tmp_path / "ckpt")
    rates = {"classifier.bias": 8e-3, "encoder.layer.1.output.dense.bias": 4e-3}
    rates |= {"encoder.layer.0.output.dense.bias": 2e-3, "bert.embeddings.LayerNorm.bias": 1e-3}
    for sign, rate in rates.items():
        (name,) = (name for name in before if name.endswith(sign))
        steps = (after[name] - before[name]).abs()
        np.testing.assert_allclose(steps, rate, rtol=1e-3)
    assert [row["rate"] for row in record["layers"]] == [1e-3, 2e-3, 4e-3, 8e-3]


def test_biases_and_norms_do_not_decay_and_matrices_do():
    parts = parts_of(AutoModelForSequenceClassification.from_config(config()))
    found = optimizer(parts, dict.fromkeys(parts, 1e-3))
    decays = {
        p.ndim: group["weight_decay"] for group in found.param_groups for p in group["params"]
    }
    assert decays == {1: 0.0, 2: WEIGHT_DECAY}
    assert sum(len(group["params"]) for group in found.param_groups) == sum(
        map(len, parts.values())
    )


# --- the same training is the same ----------------------------------------------------------


def test_a_seed_gives_the_same_weights_and_another_gives_others(base, tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        teach(started(base), TRAIN, DEV, tmp_path / name, seed=seed, **FAST)
    a, b, c = (weights(tmp_path / name) for name in "abc")
    assert same(a, b)
    assert not same(a, c)


def test_the_callers_randomness_is_left_alone(base, tmp_path):
    import random

    def drawn():
        return random.random(), float(np.random.rand()), float(torch.rand(()))  # noqa: NPY002

    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    wanted = drawn()
    random.seed(1), np.random.seed(1), torch.manual_seed(1)  # noqa: NPY002
    teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    assert drawn() == wanted


def test_every_epoch_has_every_example_once_in_another_order():
    lengths = list(np.random.default_rng(0).integers(3, 90, 131))
    done = [0]
    order = Batches(lengths, size=8, seed=0, steps_done=lambda: done[0])
    epochs = []
    for epoch in range(3):
        done[0] = epoch * len(order)
        batches = list(order)
        assert len(batches) == len(order) == 17
        assert sorted(at for batch in batches for at in batch) == list(range(131))
        epochs.append(batches)
    assert epochs[0] != epochs[1] != epochs[2]
    done[0] = 3  # in the middle of the first epoch
    assert list(order) == epochs[0]
    padded = sum(len(b) * max(lengths[at] for at in b) for b in epochs[0])
    assert padded < 1.1 * sum(lengths)


# --- interruptions --------------------------------------------------------------------------

KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from headscope.tasks.task_model import load_for_task
from headscope.experiments.finetune.teaching import teach
from tasks.made import MOOD, data
def stop(done, total):
    if done == 5:
        os.kill(os.getpid(), signal.SIGKILL)
teach(load_for_task({base!r}, MOOD, new_head=True), data(40), data(30, seed=1), {output!r},
         save_seconds=0, progress=stop, **{options!r})
"""


class Killed(BaseException):
    """Nobody catches it, so that a training ends as if its process had been killed."""


def killed(base: Path, output: Path, *, step: int, seconds: float = 0.0) -> None:
    """A training that ends after so many of its ten steps."""

    def stop(done: int, _total: int) -> None:
        if done == step:
            raise Killed

    with pytest.raises(Killed):
        teach(started(base), TRAIN, DEV, output, save_seconds=seconds, progress=stop, **FAST)
    assert not output.exists()


@pytest.fixture(scope="module")
def whole(base, tmp_path_factory):
    """The record and the weights of a training that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "ckpt"
    return teach(started(base), TRAIN, DEV, folder, **FAST), weights(folder)


def resumed(base: Path, output: Path, *, step: int, whole) -> None:
    """The same command again goes on from the state before that step, and ends as `whole`."""
    seen: list[tuple[int, int]] = []
    record = teach(
        started(base),
        TRAIN,
        DEV,
        output,
        progress=lambda done, total: seen.append((done, total)),
        **FAST,
    )
    assert seen[0] == (step, 10)
    assert same(weights(output), whole[1])
    for key in ("metrics", "layers", "loss", "settings", "fingerprint"):
        assert record[key] == whole[0][key]
    assert not working_folder(output).exists()


def test_a_killed_process_goes_on_to_the_very_same_weights(base, whole, tmp_path):
    output = tmp_path / "ckpt"
    code = KILLED.format(root=str(ROOT), base=str(base), output=str(output), options=FAST)
    with forked(cwd=tmp_path, code=code) as process:
        assert process.wait() == -signal.SIGKILL, process.communicate()
    assert not output.exists()
    resumed(base, output, step=5, whole=whole)


@pytest.mark.parametrize("step", [2, 6, 8])  # within an epoch, behind its end, in the second one
def test_a_training_goes_on_wherever_it_was_stopped(step, base, whole, tmp_path):
    killed(base, tmp_path / "ckpt", step=step)
    resumed(base, tmp_path / "ckpt", step=step, whole=whole)


def test_a_training_stopped_before_its_first_state_begins_again(base, whole, tmp_path):
    killed(base, tmp_path / "ckpt", step=3, seconds=1e9)
    assert training.last_state(working_folder(tmp_path / "ckpt") / STATES) is None
    resumed(base, tmp_path / "ckpt", step=1, whole=whole)


def test_a_state_that_a_kill_left_half_written_is_passed_over(base, tmp_path):
    killed(base, tmp_path / "ckpt", step=6)
    folder = working_folder(tmp_path / "ckpt") / STATES
    good = training.last_state(folder)
    half = folder / "checkpoint-9"
    shutil.copytree(good, half)
    (half / training.STATE).write_text('{"global_st')
    assert training.last_state(folder) == good
    assert not half.exists()


def test_an_unfinished_training_of_other_settings_is_not_mixed_in(base, tmp_path):
    killed(base, tmp_path / "ckpt", step=4)
    with pytest.raises(
        RunFolderError, match=r"settings.rate: 0.001, now 0.002\)\nit is an unfinished training"
    ) as e:
        teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST | {"rate": 2e-3})
    assert len(str(e.value).splitlines()) <= 3


def test_ctrl_c_keeps_what_was_learned(base, whole, tmp_path):
    def interrupt(done, _total):
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(RunStopped, match="so far is kept: the same command goes on"):
        teach(
            started(base), TRAIN, DEV, tmp_path / "ckpt", save_seconds=0, progress=interrupt, **FAST
        )
    resumed(base, tmp_path / "ckpt", step=6, whole=whole)


def test_a_training_that_is_done_is_not_made_again(base, tmp_path, monkeypatch):
    first = teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    monkeypatch.setattr("headscope.experiments.finetune.training.train", pytest.fail)
    assert teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST) == first


@pytest.mark.parametrize("removal", [1, 2])  # of the states, of the folder
def test_a_kill_as_the_states_are_removed_leaves_nothing(removal, base, tmp_path, monkeypatch):
    output, removed, gone = tmp_path / "ckpt", shutil.rmtree, []

    def rmtree(path, **options):
        if working_folder(output) in (path, path.parent):
            gone.append(path)
            if len(gone) == removal:
                raise Killed
        removed(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr("headscope.experiments.finetune.teaching.shutil.rmtree", rmtree)
        with pytest.raises(Killed):
            teach(started(base), TRAIN, DEV, output, **FAST)
    assert working_folder(output).exists()
    monkeypatch.setattr("headscope.experiments.finetune.training.train", pytest.fail)
    assert teach(started(base), TRAIN, DEV, output, **FAST)["fingerprint"]
    assert not working_folder(output).exists()


def test_a_finished_training_leaves_the_states_of_another_one(base, tmp_path):
    other = FAST | {"rate": 2e-3}
    first = teach(started(base), TRAIN, DEV, tmp_path / "other", **other)
    killed(base, tmp_path / "ckpt", step=4)
    shutil.copytree(tmp_path / "other", tmp_path / "ckpt")
    assert teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **other) == first
    assert training.last_state(working_folder(tmp_path / "ckpt") / STATES) is not None


def test_what_another_process_trained_meanwhile_is_not_made_again(base, tmp_path, monkeypatch):
    """It ended between our look at the folder and our hold of it."""
    first = teach(started(base), TRAIN, DEV, tmp_path / "other", **FAST)

    @contextmanager
    def held(place):
        shutil.copytree(tmp_path / "other", place)
        yield

    monkeypatch.setattr("headscope.experiments.finetune.teaching.held", held)
    monkeypatch.setattr("headscope.experiments.finetune.training.train", pytest.fail)
    assert teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST) == first


def test_a_record_without_weights_is_no_checkpoint(base, whole, tmp_path):
    teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    (tmp_path / "ckpt/model.safetensors").unlink()
    teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    assert same(weights(tmp_path / "ckpt"), whole[1])


def test_another_training_replaces_an_old_checkpoint_of_ours(base, tmp_path):
    teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    old = weights(tmp_path / "ckpt")
    teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST | {"rate": 2e-3})
    assert not same(old, weights(tmp_path / "ckpt"))
    assert [path.name for path in tmp_path.iterdir()] == ["ckpt"]


# --- a disk that is full --------------------------------------------------------------------


@contextmanager
def small_files_only() -> Iterator[None]:
    """Inside the context no file may grow beyond 8,000 bytes, as if the disk were full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("seconds", [1e9, 0.0], ids=["the checkpoint", "the state"])
def test_a_disk_without_room_leaves_the_old_checkpoint_intact(seconds, base, tmp_path):
    teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **FAST)
    before = {p.name: p.read_bytes() for p in (tmp_path / "ckpt").iterdir()}
    start, other = started(base), FAST | {"rate": 2e-3}
    with pytest.raises(HeadscopeError) as error, small_files_only():
        teach(start, TRAIN, DEV, tmp_path / "ckpt", save_seconds=seconds, **other)
    message = str(error.value)
    assert error.value.exit_code == 1
    assert message.startswith(f"cannot write {tmp_path / 'ckpt'}: ")
    assert "the old files are unchanged; free some space and run the same command" in message
    assert len(message.splitlines()) <= 3
    assert {p.name: p.read_bytes() for p in (tmp_path / "ckpt").iterdir()} == before
    assert not list(tmp_path.glob("*.part"))
    assert not list(working_folder(tmp_path / "ckpt").glob("states/*"))  # what it cut is deleted
    teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **other)
    assert [path.name for path in tmp_path.iterdir()] == ["ckpt"]


def test_a_full_disk_is_told_whichever_library_writes(base, tmp_path):
    tokenizer = started(base).model.tokenizer

    def write(draft: Path) -> None:
        with small_files_only():
            tokenizer.backend_tokenizer.save(str(draft / "tokenizer.json"))

    tokenizer.add_tokens([f"token{number}" for number in range(2000)])
    with pytest.raises(
        HeadscopeError, match=r"(?s)os error .*free some space and run the same command"
    ):
        put_folder(tmp_path / "ckpt", write, marks=("config.json",))
    assert not list(tmp_path.iterdir())


def full(*_args, **_options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_write_that_fails_leaves_no_draft(tmp_path):
    folder = tmp_path / "ckpt"
    put_folder(folder, lambda draft: (draft / "finetuned.json").write_text("old"), marks=MARKS)
    with pytest.raises(HeadscopeError, match=r"cannot write .*: No space left on device"):
        put_folder(folder, full, marks=MARKS)
    assert [path.name for path in tmp_path.iterdir()] == ["ckpt"]
    assert (folder / "finetuned.json").read_text() == "old"


def test_a_crash_between_the_two_renames_loses_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "ckpt"
    put_folder(folder, lambda draft: (draft / "finetuned.json").write_text("old"), marks=MARKS)
    rename, calls = os.replace, []

    def crash(a, b):
        calls.append(a)
        if len(calls) >= 2:
            raise KeyboardInterrupt
        rename(a, b)

    monkeypatch.setattr("headscope.core.whole_file.os.replace", crash)
    with pytest.raises(KeyboardInterrupt):
        put_folder(folder, lambda draft: (draft / "finetuned.json").write_text("new"), marks=MARKS)
    monkeypatch.undo()
    assert not folder.exists()
    replaceable(folder, marks=MARKS)  # what every training does first
    assert (folder / "finetuned.json").read_text() == "old"


# --- what is refused ------------------------------------------------------------------------


def test_a_folder_that_is_not_ours_is_never_replaced(base, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.txt").write_text("years of work")
    with pytest.raises(
        RunFolderError, match=r"is not empty and has no finetuned.json; it is not replaced"
    ):
        teach(started(base), TRAIN, DEV, tmp_path / "thesis", **FAST)
    with pytest.raises(RunFolderError, match="is a file"):
        teach(started(base), TRAIN, DEV, tmp_path / "thesis/chapter.txt", **FAST)
    assert (tmp_path / "thesis/chapter.txt").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    teach(started(base), TRAIN, DEV, tmp_path / "empty", **FAST)


def test_the_model_itself_is_never_replaced(tmp_path):
    base = checkpoint(tmp_path / "base")
    with pytest.raises(InputError, match="is the model to train; choose another folder"):
        teach(started(base), TRAIN, DEV, base, **FAST)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs is 0; wanted a whole number, at least 1"),
        ({"epochs": 2.0}, "epochs is 2.0; wanted a whole number, at least 1"),
        ({"batch": 0}, "batch is 0; wanted a whole number, at least 1"),
        ({"rate": 0.0}, "rate is 0.0; wanted more than 0"),
        ({"rate": float("nan")}, "rate is nan; wanted more than 0"),
        ({"layer_decay": 1.5}, "layer_decay is 1.5; wanted more than 0 and at most 1"),
        ({"warm_up": 1.0}, "warm_up is 1.0; wanted 0 or more and less than 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message, base, tmp_path):
    with pytest.raises(InputError, match=message):
        teach(started(base), TRAIN, DEV, tmp_path / "ckpt", **options)
    assert not list(tmp_path.iterdir())


def test_data_of_another_task_and_half_weights_are_refused(base, tmp_path):
    with pytest.raises(
        InputError, match=r"are of mood \(no, cat\), mood .* and amount \(\); wanted one"
    ):
        teach(started(base), TRAIN, data(9, task=AMOUNT), tmp_path / "ckpt", **FAST)
    half = load_for_task(base, MOOD, new_head=True, dtype="bfloat16")
    with pytest.raises(InputError, match=r"weights of type torch.bfloat16; wanted float32"):
        teach(half, TRAIN, DEV, tmp_path / "ckpt", **FAST)


def test_a_loss_that_is_no_number_ends_the_training_at_once(base, tmp_path):
    seen = []
    with pytest.raises(HeadscopeError, match=r"the loss is nan in step 2; wanted a number"):
        teach(
            started(base),
            TRAIN,
            DEV,
            tmp_path / "ckpt",
            progress=lambda done, total: seen.append(done),
            **FAST | {"rate": 1e30, "warm_up": 0.0},
        )
    assert len(seen) < 10


def test_products_are_in_half_precision_on_a_gpu_only(monkeypatch):
    assert training.precision(torch.device("cpu")) == "float32"
    for able, wanted in ((True, "bfloat16"), (False, "float16")):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda able=able: able)
        assert training.precision(torch.device("cuda")) == wanted
