"""Is exactly the model that was asked for loaded, safely, and is what does not fit refused?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest
import torch
import transformers as T
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

import headscope.model.checkpoint
from headscope.core.whole_file import sha256_of
from headscope.corpus.document import Example
from headscope.errors import InputError, ModelError
from headscope.model.batch import Batch
from headscope.model.model import DEMO_SHA256, Model, file_sha256, forward, load
from headscope.model.request import DEMO, PACKAGES, place_of
from headscope.model.weights import refuse_not_finite
from model.families.tiny import FAMILIES, UNLISTED, make, sharpened, tiny
from model.families.tokenizers_made import bytes_bpe, wordpiece


def saved(folder: Path, network: PreTrainedModel, tokenizer: Any = None) -> Path:
    network.save_pretrained(folder)
    (tokenizer or wordpiece()).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole, honest folder of a tiny BERT."""
    return saved(tmp_path_factory.mktemp("bert"), make("BERT")())


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


# --- loading ------------------------------------------------------------------------------------


def test_a_folder_is_loaded_as_it_is_and_recorded(folder: Path) -> None:
    model = load(folder)
    assert (model.name, model.revision) == (str(folder), "")
    assert model.sha256 == file_sha256(folder / "model.safetensors")
    assert (model.architecture, model.shape.layers, model.shape.heads) == ("BertModel", 2, 4)
    assert not model.network.training
    for name, parameter in tiny("BERT").named_parameters():
        assert torch.equal(parameter, model.network.get_parameter(name))
    assert "2 layers × 4 heads" in repr(model)


def test_the_first_line_of_use_loads_float32_from_a_half_precision_file(tmp_path: Path) -> None:
    saved(tmp_path, make("BERT")().half())
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "float16"
    assert load(tmp_path).network.dtype == torch.float32
    assert load(tmp_path, dtype="auto").network.dtype == torch.float16


def test_a_real_half_precision_checkpoint_loads_as_float32(shared: Path) -> None:
    model = load(shared / "models" / "e5-small")
    assert {p.dtype for p in model.network.parameters()} == {torch.float32}
    assert (model.shape.layers, model.shape.heads, model.limit) == (12, 12, 512)


def test_an_unknown_dtype_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match=r"no dtype 'float8'; there are auto"):
        load(folder, dtype="float8")


def unreachable(*_args: Any, **_options: Any) -> None:
    raise ConnectionError


@pytest.mark.parametrize("name", ["nobody/nothing-like-this", "no-such-model", "./not/a/folder"])
def test_an_unknown_model_is_refused_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the hub out of reach the loaders would retry for half a minute."""
    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    with pytest.raises(ModelError) as caught:
        load(name)
    message = str(caught.value)
    assert message.startswith(f"cannot load {name!r}")
    assert len(message.splitlines()) <= 3


@pytest.mark.parametrize("name", ["./not/a/folder", "models/a/b", "../up"])
def test_what_is_neither_a_folder_nor_an_id_is_told_so(name: str) -> None:
    with pytest.raises(ModelError) as caught:
        load(name)
    assert str(caught.value).startswith(
        f"cannot load {name!r}: no folder here, and no id of the hub"
    )


def test_the_hub_saying_no_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import RepositoryNotFoundError

    def refuse(*_args: Any, **_options: Any) -> None:
        raise RepositoryNotFoundError("no such name", response=Mock())

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", refuse)
    with pytest.raises(ModelError, match="cannot load 'x': no such name"):
        load("x")


def test_a_folder_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        load(tmp_path)


def test_a_file_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="is a file; wanted a folder"):
        load(folder / "config.json")


def test_pickled_weights_are_refused_unread(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    (copied / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'touch run'\ntR.")
    with pytest.raises(ModelError, match=r"pytorch_model\.bin.*pickled"):
        load(copied)


def test_broken_weights_are_a_clear_error(copied: Path) -> None:
    (copied / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0notjson!")
    with pytest.raises(ModelError, match="cannot load"):
        load(copied)


def test_a_folder_without_tokenizer_files_is_refused(tmp_path: Path) -> None:
    make("BERT")().save_pretrained(tmp_path)  # the commonest mistake
    with pytest.raises(ModelError, match=r"has no tokenizer files .*tokenizer\.save_pretrained"):
        load(tmp_path)


def test_a_tokenizer_that_knows_no_text_is_refused(tmp_path: Path) -> None:
    empty = T.BertTokenizer()  # what transformers makes where it finds no vocabulary
    with pytest.raises(ModelError, match=r"100% of a probe text is \[UNK\]"):
        load(saved(tmp_path, make("BERT")(), empty))


def sharded(folder: Path, *names: str) -> dict[str, Any]:
    """The folder's weights in two files behind an index; returns the index."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    half = len(tensors) // 2
    parts = dict(list(tensors.items())[:half]), dict(list(tensors.items())[half:])
    named = names or ("model-1.safetensors", "model-2.safetensors")
    for name, part in zip(named, parts, strict=True):
        save_file(part, folder / name, metadata={"format": "pt"})
    return {
        "metadata": {},
        "weight_map": {t: name for name, part in zip(named, parts, strict=True) for t in part},
    }


def write_index(folder: Path, index: Any) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_weights_in_several_files_are_hashed_as_they_are_read(copied: Path) -> None:
    write_index(copied, sharded(copied))
    assert len({load(copied).sha256, load(copied).sha256}) == 1
    both = sha256_of([file_sha256(copied / f"model-{n}.safetensors") for n in (1, 2)])
    save_file({"other": torch.zeros(1)}, copied / "beside.safetensors")  # no part of the model
    assert load(copied).sha256 == both


@pytest.mark.parametrize(
    "named",
    ["weights.bin", "../elsewhere.safetensors", "/elsewhere.safetensors", "..\\x.safetensors"],
)
def test_an_index_is_followed_to_safetensors_of_its_folder_only(copied: Path, named: str) -> None:
    index = sharded(copied)
    elsewhere = copied.parent / "elsewhere.safetensors"
    shutil.copy(copied / "model-2.safetensors", elsewhere)
    torch.save(load_file(elsewhere), copied / "weights.bin")
    index["weight_map"] = {
        tensor: named if name == "model-2.safetensors" else name
        for tensor, name in index["weight_map"].items()
    }
    write_index(copied, index)
    with (
        patch("torch.load", side_effect=AssertionError("a pickle was opened")),
        pytest.raises(ModelError, match=r"outside its folder|pickled weights can run code"),
    ):
        load(copied)


@pytest.mark.parametrize("index", [{}, [], {"weight_map": 3}, {"weight_map": {"a": 1}}, None])
def test_what_is_no_index_is_told(copied: Path, index: Any) -> None:
    sharded(copied)
    write_index(copied, index)
    with pytest.raises(ModelError, match=r"is no index of weights|names no files"):
        load(copied)


def test_a_config_cannot_name_weights_elsewhere(copied: Path) -> None:
    shutil.copy(copied / "model.safetensors", copied.parent / "other.safetensors")
    config = json.loads((copied / "config.json").read_text())
    config["transformers_weights"] = "../other.safetensors"
    (copied / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelError, match=r"config\.json of .* outside its folder"):
        load(copied)


def test_an_adapter_is_refused_and_told_from_one_beside_whole_weights(copied: Path) -> None:
    (copied / "adapter_config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"holds whole weights and beside them an adapter .* move"):
        load(copied)
    (copied / "model.safetensors").rename(copied / "adapter_model.safetensors")
    with pytest.raises(ModelError, match=r"holds only an adapter .* merge the adapter"):
        load(copied)


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(tmp_path: Path, odd: float) -> None:
    network = make("BERT")()
    network.encoder.layer[1].output.dense.weight.data[2, 3] = odd
    told = r"1 of [\d,]+ weights in encoder\.layer\.1\.output\.dense\.weight are NaN or infinite"
    with pytest.raises(ModelError, match=told):
        load(saved(tmp_path, network))
    with pytest.raises(ModelError, match=told):
        load(network, tokenizer=wordpiece())


def test_large_weights_whose_sum_overflows_are_finite() -> None:
    layer = torch.nn.Linear(2, 2, bias=False)
    layer.weight.data[:] = torch.finfo(torch.float32).max
    refuse_not_finite("large", layer)


def test_a_tokenizer_larger_than_the_embeddings_is_refused(tmp_path: Path) -> None:
    saved(tmp_path, make("BERT")(vocab_size=7))
    with pytest.raises(ModelError, match="has 13 tokens but the model embeds only 7"):
        load(tmp_path)


def test_weights_that_lack_a_layer_are_refused(copied: Path) -> None:
    """transformers would fill the layer at random, and say so only where nobody looks."""
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}))
    with pytest.raises(ModelError, match=r"lack 16 .*encoder\.layer\.2"):
        load(copied)


def test_weights_without_a_pooler_will_do(tmp_path: Path) -> None:
    bare = T.BertModel(make("BERT")().config, add_pooling_layer=False)
    assert load(saved(tmp_path, bare)).shape.layers == 2


@pytest.mark.parametrize("kind", ["known", "made up"])
def test_remote_code_is_never_run_by_itself(copied: Path, tmp_path: Path, kind: str) -> None:
    trace = tmp_path / "trace"
    (copied / "evil.py").write_text(
        f"open({str(trace)!r}, 'w').close()\n"
        "from transformers import BertConfig, BertModel\n"
        "class EvilConfig(BertConfig): pass\n"
        "class Evil(BertModel): pass\n"
        "class EvilTokenizer: pass\n"
    )
    places = {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.Evil"}
    file = copied / "config.json"
    config = json.loads(file.read_text()) | {"auto_map": places}
    if kind == "made up":
        config |= {"model_type": "evil", "architectures": ["Evil"]}
    file.write_text(json.dumps(config))
    file = copied / "tokenizer_config.json"
    own = {"auto_map": {"AutoTokenizer": ["evil.EvilTokenizer", None]}}
    file.write_text(json.dumps(json.loads(file.read_text()) | own))
    if kind == "made up":
        with pytest.raises(ModelError, match="cannot load"):
            load(copied)
    else:
        assert load(copied).architecture == "BertModel"
    assert not trace.exists()


def test_a_loaded_object_is_taken_as_it_is() -> None:
    network = make("BERT")().double().train()
    model = load(network, tokenizer=wordpiece())
    assert model.network is network
    assert network.training
    assert network.dtype == torch.float64
    assert len(model.sha256) == 64
    assert model.sha256 == load(make("BERT")().double(), tokenizer=wordpiece()).sha256
    assert model.sha256 != load(make("BERT")(seed=1).double(), tokenizer=wordpiece()).sha256


def test_a_loaded_object_needs_its_tokenizer() -> None:
    with pytest.raises(ModelError, match="without its tokenizer"):
        load(tiny("BERT"))


def test_a_family_without_whole_maps_is_refused_by_name(tmp_path: Path) -> None:
    from model.families.tiny import REFUSED

    saved(tmp_path, REFUSED["YOSO"].build())
    with pytest.raises(ModelError, match=r"'yoso'.*YosoSelfAttention hashes tokens"):
        load(tmp_path)


def test_a_model_of_something_else_than_text_is_refused() -> None:
    config = T.ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=8,
        patch_size=4,
    )
    with pytest.raises(ModelError, match="ViTModel"):
        load(T.ViTModel(config), tokenizer=wordpiece())


# --- the demo -----------------------------------------------------------------------------------


@pytest.fixture
def demo_folder() -> Path:
    place = Path(place_of("demo"))
    if not place.is_dir():
        pytest.skip(f"the package of the demo model, {PACKAGES[DEMO]}, is not installed")
    return place


def test_the_demo_is_the_pinned_one(demo_folder: Path) -> None:
    model = load("demo")
    assert model.sha256 == DEMO_SHA256 == file_sha256(demo_folder / "model.safetensors")
    assert (model.shape.layers, model.shape.heads, model.name) == (6, 12, "demo")


def test_a_demo_with_one_flipped_bit_is_refused(
    demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forged = Path(shutil.copytree(demo_folder, tmp_path / "demo"))
    with (forged / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)[0]
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    monkeypatch.setattr(headscope.model.checkpoint, "place_of", lambda _: str(forged))
    with pytest.raises(ModelError, match=f"wanted {DEMO_SHA256}: refusing"):
        load("demo")


# --- vocabulary and limits ----------------------------------------------------------------------


def model_of(tokenizer: Any, name: str = "BERT", **changes: Any) -> Model:
    network = make(name)(**changes) if changes else tiny(name)
    return Model(network, tokenizer, "test", "", "")


def tokens_of(model: Model) -> dict[str, Any]:
    words = model.tokenizer.convert_ids_to_tokens
    v = model.vocabulary
    return {
        "cls": None if v.cls is None else words(v.cls),
        "sep": None if v.sep is None else words(v.sep),
        "punctuation": set(words(list(v.punctuation))),
    }


def test_categories_of_a_wordpiece_tokenizer() -> None:
    found = tokens_of(model_of(wordpiece()))
    assert found == {"cls": "[CLS]", "sep": "[SEP]", "punctuation": {".", ","}}
    assert model_of(wordpiece()).special_tokens == {"cls": "[CLS]", "sep": "[SEP]"}


def test_categories_of_a_tokenizer_like_roberta() -> None:
    tokenizer = bytes_bpe(
        template=("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
    )
    model = model_of(tokenizer)
    assert tokens_of(model) == {
        "cls": "<s>",
        "sep": "</s>",
        "punctuation": {".", ",", "Ġ.", "Ġ,"},
    }
    assert model.vocabulary.pad == 1


def test_a_tokenizer_like_gpt2_has_neither_cls_nor_sep() -> None:
    tokenizer = bytes_bpe(bos_token="<|end|>", eos_token="<|end|>")
    found = tokens_of(model_of(tokenizer))
    assert found == {"cls": None, "sep": None, "punctuation": {".", ",", "Ġ.", "Ġ,"}}


def test_a_tokenizer_like_llama_has_an_opening_token_only() -> None:
    tokenizer = bytes_bpe(template=("<s> $A", "<s> $A <s> $B"), bos_token="<s>", eos_token="</s>")
    found = tokens_of(model_of(tokenizer))
    assert (found["cls"], found["sep"]) == ("<s>", None)


def test_where_one_token_opens_and_closes_only_the_first_opens() -> None:
    """OPT begins every text with </s>, its end of text."""
    tokenizer = bytes_bpe(
        template=("</s> $A", "</s> $A </s> $B"), bos_token="</s>", eos_token="</s>"
    )
    vocabulary = model_of(tokenizer).vocabulary
    assert vocabulary.cls == vocabulary.sep == 2
    ids = [np.array(tokenizer("a", "b")["input_ids"]), np.array([2, 2])]
    assert ids[0].tolist() == [2, 6, 2, 7]
    examples = [Example("x", "x", i, np.zeros_like(i), np.zeros(len(i), bool)) for i in ids]
    batch = Batch.of(examples, vocabulary, replicates=2)
    assert batch.is_cls.tolist() == [[True, False, False, False], [True, False, False, False]]
    assert batch.is_sep.tolist() == [[False, False, True, False], [False, True, False, False]]


def test_inputs_as_long_as_the_model_takes_run_whatever_their_length() -> None:
    """A limit that is no multiple of 8, to which batches are padded."""
    model = model_of(wordpiece(), max_position_embeddings=45)
    assert model.limit == 45

    def example(tokens: int) -> Example:
        ids = np.ones(tokens, np.int64)
        return Example("x", "x", ids, np.zeros_like(ids), np.zeros(tokens, bool))

    batch = model.batch([example(45), example(42)])
    assert forward(model.network, *batch.inputs)[0].shape[:2] == (2, 45)
    with pytest.raises(InputError, match="found an input of 46 tokens, and the model takes 45"):
        model.batch([example(46)])


@pytest.mark.parametrize(
    ("name", "limit", "expected"),
    [
        ("BERT", None, 64),
        ("BERT", 48, 48),
        ("BERT", 1000, 64),
        ("RoBERTa", None, 62),  # counts positions from padding_idx + 1
        ("RoBERTa", 62, 62),
        ("XLM-R", 48, 48),
        ("MPNet", None, 62),
        ("DistilBERT", None, 64),
        ("GPT-2", None, 64),
        ("OPT", None, 64),
        ("BART", None, 64),
        ("Llama", None, 64),
        ("T5", 48, 48),
        ("T5", None, 1 << 20),
    ],
)
def test_the_longest_input_is_what_network_and_tokenizer_allow(
    name: str, limit: int | None, expected: int
) -> None:
    tokenizer = wordpiece()
    tokenizer.model_max_length = int(1e30) if limit is None else limit
    assert model_of(tokenizer, name).limit == expected


@pytest.mark.parametrize("name", ["BERT", "RoBERTa", "MPNet", "DistilBERT", "GPT-2", "OPT", "BART"])
def test_the_longest_input_runs_and_one_more_token_does_not(name: str) -> None:
    tokenizer = wordpiece()
    tokenizer.model_max_length = int(1e30)
    limit = model_of(tokenizer, name).limit

    def run(tokens: int) -> None:
        ids = torch.full((1, tokens), 5)
        forward(tiny(name), ids, torch.ones_like(ids))

    run(limit)
    with pytest.raises((IndexError, RuntimeError)):
        run(limit + 1)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_says_its_size_and_what_it_allows(name: str) -> None:
    family = FAMILIES[name]
    model = model_of(wordpiece(), name)
    more = {"residual"} if family.residual else set()
    more |= {"queries_keys"} if family.on_registry else set()
    more |= {"whole_rows", "every_layer"}
    assert model.allows == {"attention", "values", "projection"} | more
    assert model.shape.neurons == (8 if family.on_registry else 0)
    wanted = family.stacks.get("encoder") or family.stacks["decoder"]
    assert (model.shape.layers, model.shape.heads) == (wanted, 4)
    assert model.shape.stack == ("encoder" if "encoder" in family.stacks else "decoder")


def test_a_family_that_changes_the_mixed_values_does_not_allow_norms() -> None:
    model = Model(UNLISTED["BitNet"].build(), wordpiece(), "test", "", "")
    assert model.allows == {"attention", "values", "queries_keys", "whole_rows", "every_layer"}
    assert model.identity_error() is None


def test_what_a_process_needs_to_load_the_same_again_is_kept(folder: Path) -> None:
    model = load(folder, dtype="float64")
    assert model.load_options is not None
    assert load(folder, **model.load_options).network.dtype == torch.float64


def test_segments_are_told_to_networks_that_have_them() -> None:
    assert model_of(wordpiece()).has_segments
    assert not model_of(wordpiece(), "DistilBERT").has_segments
    network = sharpened(T.BertModel(T.BertConfig(**FAMILIES["BERT"].options))).eval()
    ids = torch.tensor([[5, 6, 7]])
    first, second = (
        forward(network, ids, torch.ones_like(ids), torch.full_like(ids, n)).last_hidden_state
        for n in (0, 1)
    )
    assert not torch.allclose(first, second)
