"""Decoders for tests: one whose heads are wired by hand, and small random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers as T
from tokenizers import Tokenizer, models, pre_tokenizers

from headscope.model.checkpoint import quietly
from headscope.model.language_model import LanguageModel
from headscope.model.model import load

_LINES = """
<s> Monday Tuesday Wednesday Thursday Friday Saturday Sunday one two three four five six
seven eight nine ten first second third fourth fifth sixth seventh eighth ninth tenth
cat dog tree house river stone cloud bread milk salt road . ,
The secret code of is Lisbon Cairo Oslo Lima Kyoto Accra Quito Riga Hanoi Sofia
"""
WORDS = _LINES.split()
LENGTH = 12  # tokens that come twice
PLACES = 96
SIZE = len(WORDS)
TOKEN, PLACE, BEFORE, OUT = (
    slice(0, SIZE),
    slice(SIZE, SIZE + PLACES),
    slice(SIZE + PLACES, 2 * SIZE + PLACES),
    slice(2 * SIZE + PLACES, 3 * SIZE + PLACES),
)
DIM = SIZE + PLACES + 1  # a head compares words, places, and knows the first place
WIDTH = 2 * DIM
READ = 40.0
SHARP, REST = 40.0, 4.0  # of a match, and of the first token, where nothing matches


def tokenizer() -> T.PreTrainedTokenizerFast:
    """One token for each word."""
    core = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="."))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return T.PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", model_max_length=PLACES
    )


def small(kind: str = "GPT2", *, seed: int = 0, sharp: float = 0.3, layers: int = 2) -> Any:
    """A random decoder of that vocabulary: GPT-2 or Llama with grouped keys."""
    if kind == "GPT2":
        config: Any = T.GPT2Config(
            vocab_size=SIZE,
            n_positions=PLACES,
            n_embd=32,
            n_layer=layers,
            n_head=4,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=0,
            eos_token_id=0,
            tie_word_embeddings=False,
        )
    else:
        config = T.LlamaConfig(
            vocab_size=SIZE,
            max_position_embeddings=PLACES,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            bos_token_id=0,
            eos_token_id=0,
        )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = getattr(T, f"{kind}{'LMHeadModel' if kind == 'GPT2' else 'ForCausalLM'}")(config)
        for parameter in network.parameters():
            parameter.data += sharp * torch.randn(parameter.shape)
    return network.eval()


def language_model(network: Any) -> LanguageModel:
    """With the tokenizer above."""
    return LanguageModel(load(network, tokenizer=tokenizer()), "causal")


def saved(folder: Path, network: Any) -> Path:
    """The network and the tokenizer in a folder."""
    with quietly():
        network.save_pretrained(folder)
        tokenizer().save_pretrained(folder)
    return folder


@torch.no_grad()
def wired() -> Any:
    """A GPT-2 of two layers with two heads each, every weight set by hand.

    0.0  attends to the previous token, and writes which it was
    0.1  attends to the same token before; speaks for the token that follows it in WORDS
    1.0  attends to what came after the same token before, and speaks for it
    1.1  attends to the first token, and writes nothing
    Where nothing matches, heads attend to the first token. The first feed-forward gives a token's
    own embedding.
    """
    config = T.GPT2Config(
        vocab_size=SIZE,
        n_positions=PLACES,
        n_embd=WIDTH,
        n_layer=2,
        n_head=2,
        n_inner=SIZE,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        tie_word_embeddings=False,
        activation_function="relu",
    )
    network: Any = T.GPT2LMHeadModel(config).eval()
    for parameter in network.parameters():
        parameter.zero_()
    for module in network.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.weight.fill_(1)
    words, places = torch.eye(SIZE), torch.eye(PLACES)
    body = network.transformer
    body.wte.weight[:, TOKEN] = words
    body.wpe.weight[:, PLACE] = places
    network.lm_head.weight[:, OUT] = READ * words
    earlier = torch.diag(torch.ones(PLACES - 1), -1)  # row: place of the query
    follows = words.roll(1, 1)  # row w -> column w + 1
    matches = (
        [((PLACE, places, PLACE, earlier.T, 0.0),), ((TOKEN, words, TOKEN, words, -1.0),)],
        [((TOKEN, words, BEFORE, words, 0.0),), ()],
    )
    writes = ([(BEFORE, words), (OUT, 0.1 * follows)], [(OUT, 3 * words), None])
    for layer, block in enumerate(body.h):
        for head in range(2):
            attend(block.attn, head, matches[layer][head])
            if writes[layer][head] is not None:
                where, what = writes[layer][head]
                start = head * DIM
                value = block.attn.c_attn.weight[:, 2 * WIDTH + start : 2 * WIDTH + start + SIZE]
                value[TOKEN] = words
                block.attn.c_proj.weight[start : start + SIZE, where] = what
    mlp = body.h[0].mlp
    mlp.c_fc.weight[TOKEN] = words
    mlp.c_proj.weight[:, TOKEN] = words
    return network


def attend(attention: Any, head: int, matches: Any) -> None:
    """Score SHARP for a match, REST for the first place, and with −1 not for the own place."""
    query = slice(head * DIM, (head + 1) * DIM)
    key = slice(WIDTH + head * DIM, WIDTH + (head + 1) * DIM)
    weight, bias = attention.c_attn.weight, attention.c_attn.bias
    for from_, what, to, other, own in matches:
        size = what.shape[1]
        weight[from_, query][:, :size] = SHARP * what
        weight[to, key][:, :size] = other
        if own:
            weight[PLACE, query][:, size : size + PLACES] = -2 * SHARP * torch.eye(PLACES)
            weight[PLACE, key][:, size : size + PLACES] = torch.eye(PLACES)
    weight[PLACE.start, key][DIM - 1] = 1.0  # the first place, and a query that is always there
    bias[query][DIM - 1] = REST * SHARP
