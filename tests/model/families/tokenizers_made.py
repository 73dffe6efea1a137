"""What do the families' tokenizers look like when they know a dozen words?"""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast


def wordpiece() -> PreTrainedTokenizerFast:
    """As BERT's: [CLS] text [SEP]."""
    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        ".",
        ",",
        "##.",
        "a",
        "b",
        "the",
        "cat",
        "##s",
    ]
    core = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer()
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=48,
    )


def bytes_bpe(
    *, template: tuple[str, str] | None = None, **special: str
) -> PreTrainedTokenizerFast:
    """Byte-level BPE as GPT-2's, or with a template as RoBERTa's, Llama's or OPT's."""
    words = ["<s>", "<pad>", "</s>", "<|end|>", ".", ",", "a", "b", "Ġ", "Ġ.", "Ġ,", "Ġa", "Ġb"]
    merges = [("Ġ", "."), ("Ġ", ","), ("Ġ", "a"), ("Ġ", "b")]
    core = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    if template is not None:
        tokens = [(t, words.index(t)) for t in ("<s>", "</s>")]
        core.post_processor = processors.TemplateProcessing(
            single=template[0], pair=template[1], special_tokens=tokens
        )
    return PreTrainedTokenizerFast(tokenizer_object=core, **special)
