"""Is a model, and a device, known by the names that people paste and type?"""

import pytest

from headscope.errors import ModelError
from headscope.model.placement import Placement
from headscope.model.request import id_and_revision, model_place, refuse_device
from headscope.tasks.task_request import Loading

PAGE = "https://huggingface.co/owner/name.v1"


@pytest.mark.parametrize(
    ("page", "place"),
    [
        (PAGE, "owner/name.v1"),
        (f"{PAGE}/", "owner/name.v1"),
        (f"{PAGE}?library=transformers#use", "owner/name.v1"),
        ("http://www.huggingface.co/gpt2", "gpt2"),
        ("hf.co/owner/name", "owner/name"),
        (f"{PAGE}/tree/v2", "owner/name.v1@v2"),
        (f"{PAGE}/tree/refs%2Fpr%2F3", "owner/name.v1@refs/pr/3"),
        (f"{PAGE}/blob/main/config.json", "owner/name.v1@main"),
        (f"{PAGE}/commit/0123abc", "owner/name.v1@0123abc"),
        ("owner/name", "owner/name"),
        ("demo", "demo"),
    ],
)
def test_the_page_of_a_model_is_its_id_and_revision(page, place):
    assert model_place(page) == place
    name, at, revision = place.partition("@")
    assert id_and_revision(page, None) == (name, revision if at else None)


@pytest.mark.parametrize(
    "page",
    ["https://huggingface.co/datasets/owner/name", "https://example.org/owner/name", "a/b/c"],
)
def test_another_page_is_no_model(page):
    with pytest.raises(ModelError, match="no id of the hub"):
        model_place(page)


def test_two_revisions_are_refused_and_one_may_be_named_twice():
    assert id_and_revision(f"{PAGE}/tree/v2", "v2") == ("owner/name.v1", "v2")
    with pytest.raises(ModelError, match=r"revisions v2 and v3 of owner/name\.v1; wanted one"):
        id_and_revision(f"{PAGE}/tree/v2", "v3")


def test_a_folder_whose_name_has_a_sign_stays_a_folder(tmp_path):
    folder = tmp_path / "bert@home"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    assert id_and_revision(str(folder), "main") == (str(folder), "main")


def test_gpu_means_cuda(monkeypatch):
    monkeypatch.setattr("headscope.model.placement.device_of", lambda name: None)
    monkeypatch.setattr("headscope.tasks.task_request.refuse_device", lambda name: None)
    for name, known in (("gpu", "cuda"), ("gpu:1", "cuda:1"), ("cuda:1", "cuda:1"), ("cpu", "cpu")):
        assert Loading(device=name).device == Placement(name).device == known
    with pytest.raises(ModelError, match="no device 'gpus' here"):
        refuse_device("gpus")
