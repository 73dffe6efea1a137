"""Do experiments take names and files as the commands do, and give what the parts give?"""

from pathlib import Path

import pytest

import headscope as hs
from experiments.importance.made import language_model
from headscope.errors import InputError
from headscope.run.execution import Execution
from headscope.tasks.task_data import read_task
from headscope.tasks.task_model import load_for_task
from tasks.made import MOOD, checkpoint

ROWS = [f"the {'cat' if n % 2 else 'a'} b .\t{'cat' if n % 2 else 'no'}" for n in range(12)]
FEW = {"replicates": 3, "execution": Execution(linears="stock")}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("named")
    checkpoint(folder / "ckpt", head=MOOD)
    checkpoint(folder / "base")
    language_model(folder / "language")
    for name, rows in (("dev", ROWS), ("train", ROWS[::-1] + ROWS)):
        text = "\n".join(["text\tlabel", *rows])
        (folder / f"{name}.tsv").write_text(text + "\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def ablation(desk: Path) -> hs.Run:
    return hs.ablate(desk / "ckpt", "mood", data=desk, replacement="zero", **FEW)


def test_ablate_by_names_is_ablate_of_what_they_name(desk: Path, ablation: hs.Run) -> None:
    data = read_task(MOOD, desk)
    model = load_for_task(desk / "ckpt", MOOD)
    parts = hs.ablate(model, data, replacement="zero", **FEW)
    assert ablation["ablation"].equals(parts["ablation"])
    assert hs.ablate(model, "mood", data=desk, limit=4, **FEW)["ablation"].sizes["example"] == 4
    with pytest.raises(InputError, match="examples that are read already, and TaskRequest"):
        hs.ablate(model, data, limit=4)
    with pytest.raises(InputError, match="loaded already, and Loading"):
        hs.ablate(model, data, dtype="float64")
    with pytest.raises(InputError, match="no setting called 'replacment'; did you mean 'repl"):
        hs.ablate(desk / "ckpt", "mood", data=desk, replacment="zero")  # type: ignore[call-arg]


def test_importance_is_of_a_task_or_of_a_corpus(desk: Path, ablation: hs.Run) -> None:
    run = hs.importance(
        desk / "ckpt", "mood", data=desk, methods=("michel",), ablation=ablation, **FEW
    )
    assert run["importance"].head_importance.dims == ("layer", "head", "variant")
    assert "rho" in run["importance"]
    texts = ["the cat b .", "a b the cat ."]
    assert "importance" in hs.importance(desk / "language", corpus=texts, **FEW)
    with pytest.raises(InputError, match=r"no task and no corpus, and no finetuned\.json beside"):
        hs.importance(desk / "ckpt")
    with pytest.raises(InputError, match="wanted importance"):
        hs.importance(desk / "ckpt", "mood", corpus=texts)
    with pytest.raises(InputError, match="found a corpus and data, which a task has"):
        hs.importance(desk / "language", corpus=texts, data=desk)


def test_a_model_is_finetuned_compared_and_pruned_by_names(desk: Path, tmp_path: Path) -> None:
    record = hs.finetune(desk / "base", "mood", tmp_path / "tuned", data=desk, epochs=1, batch=8)
    assert record["data"]["train"]["examples"] == 2 * len(ROWS)
    assert (
        hs.finetune(desk / "base", "mood", tmp_path / "tuned", data=desk, epochs=1, batch=8)
        == record
    )
    run = hs.compare(
        desk / "base",
        tmp_path / "tuned",
        task="mood",
        data=desk,
        limit=5,
        analyses=["surface"],
        **FEW,
    )
    assert run.manifest["counts"]["examples"] == 5
    recalled = hs.compare(desk / "base", tmp_path / "tuned", limit=5, analyses=["surface"], **FEW)
    assert recalled["surface"].equals(run["surface"])  # the checkpoint knows its task
    with pytest.raises(InputError, match="wanted a corpus, or task=NAME"):
        hs.compare(desk / "base", desk / "base")
    pruned = hs.prune(
        desk / "ckpt", "mood", tmp_path / "pruned", data=desk, remove=2, orders=("alone",), **FEW
    )
    assert len(pruned.heads) == 2
    assert (tmp_path / "pruned/pruned.json").is_file()
    assert repr(pruned).endswith(": 2 of 6 heads are gone, in the order alone>")


def test_a_paper_is_asked_by_its_name_and_kinds_of_data(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no paper called 'clark'"):
        hs.reproduce("clark", tmp_path)
    with pytest.raises(InputError, match="no KEY 'texts'"):
        hs.reproduce("clark2019", tmp_path, data={"texts": "wiki.txt"})
    assert not list(tmp_path.iterdir())
