"""Does every public function take what a user has at hand, and say all that can be asked?"""

import inspect
import re
import sys
import warnings
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

import headscope as hs
from headscope.errors import InputError, ModelError
from headscope.experiments.ablation.settings import AblationSettings, PruningSettings
from headscope.experiments.circuits.settings import CircuitSettings
from headscope.experiments.finetune.settings import TrainingSchedule
from headscope.experiments.importance.settings import ImportanceSettings
from headscope.experiments.probes.settings import ProbeSettings
from headscope.experiments.replay.settings import ReplaySettings
from headscope.experiments.trial.settings import TrialSettings
from headscope.run.settings import CorpusSettings
from headscope.tasks.task_request import Loading, TaskRequest

QUICK = {"analyses": ["entropy"], "control": "none"}


def test_the_atlas_takes_names_and_texts_of_any_kind(tiny_place: Path, tiny) -> None:
    texts = ["The cat sat.", "A dog barked."]
    wanted = hs.atlas(tiny, hs.corpus.MemoryCorpus(texts), **QUICK)
    for model in (str(tiny_place), tiny_place):
        run = hs.atlas(model, pd.DataFrame({"text": texts})["text"], **QUICK)
        assert run["entropy"].identical(wanted["entropy"])
    assert hs.atlas(tiny, "The cat sat.", **QUICK).tree.attrs["documents"] == 1


def test_zoo_compare_view_and_flow_take_names_and_texts(tiny_place: Path, tmp_path: Path) -> None:
    zoo = hs.zoo([tiny_place], ["The cat sat."], output=tmp_path, reports=False, **QUICK)
    assert len(zoo.runs) == 1
    run = hs.compare(tiny_place, str(tiny_place), ["The cat sat."], analyses=["entropy"])
    assert float(abs(run["similarity"].cosine - 1).max()) < 1e-6
    assert hs.view(tiny_place, "The cat sat.").shown.stacks[0].attention.shape[:2] == (2, 4)
    assert hs.flow(tiny_place, "The cat sat.").sizes["layer"] == 2


def test_what_is_no_model_is_refused_by_its_kind(tiny) -> None:
    with pytest.raises(ModelError, match="found a list for a model; wanted 'demo', a hub id"):
        hs.atlas(["a", "b"], "The cat sat.")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="found a Model for a corpus"):
        hs.atlas("demo", tiny)
    assert hs.load(tiny) is tiny


def test_a_setting_that_is_misspelt_is_refused_with_the_near_one(tiny) -> None:
    with pytest.raises(InputError, match="no setting called 'limits'; did you mean 'limit'"):
        hs.atlas(tiny, "The cat sat.", limits=3)


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (hs.atlas, [CorpusSettings, Loading]),
        (hs.zoo, [CorpusSettings, Loading]),
        (hs.compare, [CorpusSettings, TaskRequest, Loading]),
        (hs.finetune, [TrainingSchedule, TaskRequest, Loading]),
        (hs.prune, [PruningSettings, TaskRequest, Loading]),
        (hs.reproduce, [Loading]),
        (hs.view, [Loading]),
        (hs.ablate, [AblationSettings, TaskRequest, Loading]),
        (hs.importance, [ImportanceSettings, TaskRequest, Loading]),
        (hs.probe, [ProbeSettings, Loading]),
        (hs.circuits, [CircuitSettings, Loading]),
        (hs.replay, [ReplaySettings, Loading]),
        (hs.trial, [TrialSettings, Loading]),
    ],
)
def test_every_option_is_in_signature_types_and_help(function, kinds) -> None:
    parameters = inspect.signature(function).parameters
    assert not [p for p in parameters.values() if p.kind is p.VAR_KEYWORD]
    names = {each.name for kind in kinds for each in fields(kind)}
    told = "\n".join(line[:22] for line in function.__doc__.splitlines())
    for name in names | parameters.keys():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY or name not in names
        assert re.search(rf"\b{name}\b", told), name


def test_a_notebook_without_widgets_is_not_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    names = []

    def imported(name: str) -> SimpleNamespace:
        names.append(name)
        warnings.warn("IProgress not found. Please update jupyter.", stacklevel=2)
        return SimpleNamespace(load=name)

    monkeypatch.setattr(hs, "import_module", imported)
    assert hs.__getattr__("load") == "headscope.model.model"
    assert names == ["headscope.model.model"]
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    assert hs.__getattr__("load") == "headscope.model.model"
    assert names[1:] == ["tqdm.auto", "headscope.model.model"]


def test_settings_show_what_is_not_as_usual_and_a_notebook_shows_all() -> None:
    settings = hs.Settings(limit=3, long="skip")
    assert repr(settings) == "Settings(long='skip', limit=3)"
    assert repr(hs.Settings()) == "Settings()"
    assert ">seed</th>" in settings._repr_html_()


@pytest.mark.parametrize("name", ["method", "tolerance", "drop"])
def test_no_axis_has_the_name_of_an_argument_of_sel(name: str) -> None:
    variable = hs.plugins.Variable([1.0, 2.0], (name,), "a number", "1", source="ours")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"found the axis '{name}', an argument of xarray's sel"):
        hs.plugins.labelled({"number": variable})
