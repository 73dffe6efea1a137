"""Does a checkpoint remember what it learned, and do options overrule it?"""

import json
from dataclasses import replace

import pytest

from headscope.core.whole_file import file_sha256
from headscope.errors import InputError
from headscope.experiments.ablation.ablate import AblateRequest
from headscope.experiments.ablation.prune import PruneRequest
from headscope.tasks.remembered_task import remembered_task, with_remembered_task
from headscope.tasks.task_data import read_task


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    """A checkpoint beside the files that it learned, as `headscope finetune` records them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moods").mkdir()
    for name in ("train", "dev", "test"):
        (tmp_path / f"moods/{name}.tsv").write_text(f"said\tfelt\n{name} fine\tgood\nbad\tsad\n")
    (tmp_path / "bert-mood").mkdir()
    columns = {"text_a": "said", "label": "felt"}
    data = {
        split: {
            "source": f"moods/{split}.tsv",
            "sha256": file_sha256(tmp_path / f"moods/{split}.tsv"),
            "columns": columns,
        }
        for split in ("train", "dev")
    }
    record = {"task": {"name": "mood"}, "data": data}
    (tmp_path / "bert-mood/finetuned.json").write_text(json.dumps(record))
    return tmp_path / "bert-mood"


def test_a_request_without_a_task_has_that_of_its_checkpoint_and_says_so(tuned):
    request, notes = with_remembered_task(AblateRequest(tuned), tuned)
    assert (request.task, request.data) == ("mood", "moods/dev.tsv")
    assert request.columns == {"text_a": "said", "label": "felt"}
    assert notes == [f"task mood, examples of moods/dev.tsv: what {tuned} learned (finetuned.json)"]
    data = read_task(request.task, request.data, columns=request.columns)
    assert data.columns == (("text_a", "said"), ("label", "felt"))
    pruned, _ = with_remembered_task(PruneRequest(tuned), tuned)
    assert pruned.choose_file == "moods/train.tsv"


def test_options_overrule_what_a_checkpoint_remembers(tuned):
    typed = AblateRequest(tuned, "rte")
    assert with_remembered_task(typed, tuned) == (typed, [])
    other, notes = with_remembered_task(AblateRequest(tuned, data="others.tsv"), tuned)
    assert (other.task, other.data, other.columns) == ("mood", "others.tsv", None)
    assert "examples of others.tsv" in notes[0]
    split, _ = with_remembered_task(AblateRequest(tuned, split="test"), tuned)
    assert split.data == "moods"


def test_what_is_not_there_any_more_is_said(tuned):
    dev = tuned.parent / "moods/dev.tsv"
    dev.write_text(dev.read_text() + "great\tgood\n")
    assert with_remembered_task(AblateRequest(tuned), tuned)[1][0].endswith(
        "the file has changed since"
    )
    dev.unlink()
    with pytest.raises(InputError, match=r"was scored on moods/dev\.tsv, which is not here; give"):
        with_remembered_task(AblateRequest(tuned), tuned)
    (tuned / "finetuned.json").write_text("{}")
    assert remembered_task(tuned) is None
    with pytest.raises(
        InputError, match=r"found no task, and no finetuned\.json beside the weights"
    ):
        with_remembered_task(AblateRequest(tuned), tuned)


def test_a_task_of_the_hub_is_read_from_there_again(tuned):
    record = json.loads((tuned / "finetuned.json").read_text())
    record["task"]["name"] = "rte"
    record["data"]["dev"] |= {"source": "nyu-mll/glue rte, validation at 0123"}
    (tuned / "finetuned.json").write_text(json.dumps(record))
    request, notes = with_remembered_task(AblateRequest(tuned), tuned)
    assert (request.task, request.data) == ("rte", None)
    assert request == replace(AblateRequest(tuned), task="rte")
    assert notes[0].startswith("task rte, examples of nyu-mll/glue rte, validation at 0123: what ")
