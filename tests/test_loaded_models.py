"""Does every function take every kind of model, and give what it gives for the model's folder?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
import xarray as xr

import headscope as hs
from experiments.circuits.made import WORDS, saved, small, tokenizer
from experiments.probes.made import treebank
from experiments.replay.made import STOCK
from headscope.errors import InputError, ModelError
from headscope.model.checkpoint import quietly
from tasks.made import MOOD, checkpoint, data

TEXTS = [" ".join(WORDS[at : at + 12]) for at in range(1, 25, 2)]
PROMPTS = [
    (f"The secret code of {place} is", " cat", " dog", f"The secret code of {other} is")
    for place, other in (("Lisbon", "Cairo"), ("Oslo", "Lima"), ("Kyoto", "Accra"))
]
PLACES = {"senders": [(0, 1)], "receivers": [(1, 0)]}
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "direct_logits": lambda model: hs.prompts.direct_logits(model, PROMPTS),
    "patch_heads": lambda model: hs.prompts.patch_heads(model, PROMPTS),
    "path_patch": lambda model: hs.prompts.path_patch(model, PROMPTS, **PLACES),
    "knockouts": lambda model: hs.prompts.knockouts(model, PROMPTS),
    "score_parts": lambda model: hs.prompts.score_parts(model, TEXTS[0], (1, 0), 5, 2),
    "mean_score_parts": lambda model: hs.prompts.mean_score_parts(
        model, (1, 0), sequences=10, length=8
    ),
    "switch_off": lambda model: hs.prompts.switch_off(
        model, {"mine": [(0, 1)]}, sequences=10, length=8
    ),
    "circuits": lambda model: hs.circuits(
        model, sequences=10, length=8, needles=1, execution=STOCK
    ).tree["circuits"],
    "importance": lambda model: hs.importance(
        model, corpus=TEXTS, execution=STOCK
    ).tree["importance"],
    "replay": lambda model: hs.replay(
        model, corpus=TEXTS, inputs=6, choosing=6, shares=[1.0], draws=0, execution=STOCK
    ).tree["replay"],
    "flow": lambda model: hs.flow(model, "The secret code of Lisbon is"),
    "atlas": lambda model: hs.atlas(
        model, TEXTS, analyses=["entropy"], execution=STOCK
    ).tree["entropy"],
}  # fmt: skip


class Wrapper:
    """What has the network in a public attribute, as a pipeline or a bridge does."""

    def __init__(self, network: Any) -> None:
        self.original_model, self.tokenizer = network, tokenizer()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("decoder")
    with quietly():
        return saved(place, small("Llama"))


def kinds(folder: Path) -> dict[str, Callable[[], Any]]:
    with quietly():
        made = transformers.AutoModelForCausalLM.from_pretrained(folder)
    return {
        "loaded by name": lambda: hs.load(folder),
        "a network": lambda: hs.load(made, tokenizer=tokenizer()),
        "a pipeline": lambda: transformers.pipeline("text-generation", made, tokenizer=tokenizer()),
        "a wrapper": lambda: Wrapper(made),
    }


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_model_is_the_same_however_it_is_given(name: str, folder: Path) -> None:
    wanted = values(FUNCTIONS[name](str(folder)))
    for kind, make in kinds(folder).items():
        with quietly():
            model = make()
        xr.testing.assert_allclose(values(FUNCTIONS[name](model)), wanted, atol=1e-6), kind


def values(result: Any) -> xr.Dataset:
    dataset = result.to_dataset() if isinstance(result, xr.DataTree) else result
    return dataset.drop_attrs()


def test_a_network_without_its_head_is_refused_with_what_to_do(folder: Path) -> None:
    with quietly():
        bare = transformers.AutoModel.from_pretrained(folder)
    with pytest.raises(ModelError, match="as a loaded LlamaModel; wanted the network with"):
        hs.prompts.direct_logits(hs.load(bare, tokenizer=tokenizer()), PROMPTS)


def test_a_loaded_model_takes_no_options_of_loading(folder: Path) -> None:
    with pytest.raises(InputError, match="loaded already"):
        hs.circuits(hs.load(folder), dtype="float64")


def test_a_network_without_its_tokenizer_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="without its tokenizer"):
        hs.prompts.direct_logits(small("Llama"), PROMPTS)


@pytest.mark.parametrize("prompt", ["a text", ("one",), {"text": "a", "said": "b"}, 3])
def test_what_is_no_prompt_is_refused(prompt: Any, folder: Path) -> None:
    with pytest.raises(InputError, match=r"as a prompt; wanted \(text, answer, wrong\)"):
        hs.prompts.direct_logits(folder, [prompt])


# --- functions of more than one model, or with files of their own --------------------------------


def compared(model: Any, base: Path, place: Path) -> xr.Dataset:
    run = hs.compare(str(base), model, TEXTS, analyses=["entropy"], execution=STOCK)
    return values(run.tree["similarity"])


def zoo(model: Any, base: Path, place: Path) -> xr.Dataset:
    made = hs.zoo([model, str(base)], TEXTS, analyses=["entropy"], output=place, execution=STOCK)
    return values(next(iter(made.runs.values())).tree["entropy"])


def probed(model: Any, base: Path, place: Path) -> xr.Dataset:
    train, test = (
        treebank(place.with_suffix(f".{name}.conllu"), 24, seed=seed)
        for seed, name in enumerate(("train", "test"))
    )
    run = hs.probe(model, train, test, probes=["attention"], epochs=1, execution=STOCK)
    return values(run.tree["probes"])


def viewed(model: Any, base: Path, place: Path) -> xr.Dataset:
    shown = hs.view(model, "the cat , a b").shown
    return xr.Dataset({"attention": (tuple("lhqk"), np.stack(shown.stacks[0].attention))})


SEVERAL = {"compare": compared, "zoo": zoo, "probe": probed, "view": viewed}


@pytest.mark.parametrize("name", SEVERAL)
def test_a_model_among_others_is_the_same_however_it_is_given(
    name: str, mood: Path, tmp_path: Path
) -> None:
    base = checkpoint(tmp_path / "base", seed=3)
    with quietly():
        made = transformers.AutoModel.from_pretrained(mood)
    own = transformers.AutoTokenizer.from_pretrained(mood)
    wanted = SEVERAL[name](str(mood), base, tmp_path / "named")
    for at, model in enumerate((hs.load(mood), hs.load(made, tokenizer=own))):
        found = SEVERAL[name](model, base, tmp_path / str(at))
        xr.testing.assert_allclose(found, wanted, atol=1e-6)


# --- models with a head for a task --------------------------------------------------------------


@pytest.fixture(scope="module")
def mood(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("mood") / "model", head=MOOD)


TASKS: dict[str, Callable[[Any], Any]] = {
    "ablate": lambda model: hs.ablate(model, data(24), replicates=20, execution=STOCK),
    "importance": lambda model: hs.importance(model, data(24), replicates=20, execution=STOCK),
}


@pytest.mark.parametrize("name", TASKS)
def test_a_model_with_a_head_is_the_same_however_it_is_given(name: str, mood: Path) -> None:
    wanted = values(TASKS[name](str(mood)).tree[GROUPS[name]])
    with quietly():
        made = transformers.AutoModelForSequenceClassification.from_pretrained(mood)
    own = transformers.AutoTokenizer.from_pretrained(mood)
    for model in (hs.load(mood), hs.load(made, tokenizer=own)):
        xr.testing.assert_allclose(values(TASKS[name](model).tree[GROUPS[name]]), wanted, atol=1e-6)


GROUPS = {"ablate": "ablation", "importance": "importance"}


def test_a_network_without_a_head_for_the_task_is_refused(mood: Path) -> None:
    with quietly():
        bare = transformers.AutoModel.from_pretrained(mood)
    model = hs.load(bare, tokenizer=transformers.AutoTokenizer.from_pretrained(mood))
    with pytest.raises(ModelError, match="no classification head"):
        hs.ablate(model, data(24))


def test_what_starts_from_a_checkpoint_wants_its_place(mood: Path, tmp_path: Path) -> None:
    more = {"task": MOOD, "output": tmp_path / "made"}
    with quietly():
        made = transformers.AutoModel.from_pretrained(mood)
    network = hs.load(made, tokenizer=transformers.AutoTokenizer.from_pretrained(mood))
    for function in (hs.prune, hs.finetune):
        with pytest.raises(InputError, match="wanted the folder or hub id of a checkpoint"):
            function(network, **{**more, "task": data(24)} if function is hs.prune else more)
