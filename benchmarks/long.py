"""What do the statistics of long inputs cost over a fused forward pass, in time and in memory?

python -m benchmarks.long [--tokens N,N…] [--model N,N…] [--rounds N] [--threads N] [--clock cpu]

The attention of one layer alone (causal, 64 numbers a head), then a whole model of SmolLM2-135M's
shape. Beside the times stand the largest errors against maps made in float64.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaModel

from benchmarks.timing import Row, interleave, options, table
from headscope.corpus.document import Example
from headscope.model.attention import probabilities
from headscope.model.batch import Batch
from headscope.model.instrument import Instrument
from headscope.model.long_attention import LongAttention
from headscope.model.long_layer import LongLayerView
from headscope.model.long_mask import LongMask
from headscope.model.long_sums import Asked
from headscope.model.vocabulary import Vocabulary
from headscope.run.analysis import Scope
from headscope.run.known_analyses import known_analyses

HEADS, DIM, CATEGORIES = 2, 64, 4
WHOLE = 4096  # tokens up to which whole maps are timed too
CHECKED = 1024
WORDS = 8192
SUMS = ("surface", "entropy", "norms", "mixing")
# Of the layer, by tokens: sums with category norms over a fused forward pass; with argmax.
LIMITS = {4096: (2.7, 3.0), 16384: (2.5, 3.0), 131072: (2.4, 3.0)}
OF_MODEL = {4096: 1.7, 8192: 2.1, 32768: 2.6}


def layer(tokens: int) -> tuple[torch.Tensor, ...]:
    """Queries, keys and values [1, head, token, dim], and ‖f(x)‖ [head, token]."""
    random = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, HEADS, tokens, DIM, generator=random) for _ in range(3))
    return 4 * q, k, v, torch.rand(HEADS, tokens, generator=random) + 0.5


def fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """The forward pass that all others are held against."""
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def read(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, asked: Asked | None = None
) -> LongAttention:
    """The layer's attention, mixed as a network needs it; with what is `asked` of it."""
    n = q.shape[2]
    mask = LongMask(lambda _b, _h, i, j: j <= i, (n,), "causal", n, n, q.device)
    long = LongAttention(q, k, v, mask, scaling=DIM**-0.5)
    long.asked = asked
    long.mix()
    return long


def in_categories(
    columns: torch.Tensor, norms: torch.Tensor, category: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Attention and weighted norm by category of the key; columns, norms [head, key]."""
    member = torch.nn.functional.one_hot(category, CATEGORIES).to(columns)
    return {"mass": columns @ member, "norm": (columns * norms) @ member}


def sums(parts: tuple[torch.Tensor, ...], category: torch.Tensor) -> dict[str, torch.Tensor]:
    """Entropies, column sums, and sums by category, without a map; the forward pass included."""
    *vectors, norms = parts
    asked = Asked(torch.zeros(1, vectors[0].shape[2], dtype=torch.bool))
    found = read(*vectors, asked).sums(0, asked)
    columns = found.columns[:, 0]
    return {
        "entropy": found.entropy,
        "columns": columns,
        **in_categories(columns, norms, category),
    }


def rows(parts: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """[head, query] the key of each query's largest weight; the forward pass included."""
    long = read(*parts[:3])
    # torch's own argmax takes fifteen times as long
    found = [weights.numpy().argmax(-1) for _, weights in long.row_blocks(0)]
    return torch.from_numpy(np.concatenate(found, -1))


def maps(parts: tuple[torch.Tensor, ...], category: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same from whole maps, in the precision that is given."""
    q, k, v, norms = parts
    n = q.shape[2]
    mask = torch.full((n, n), torch.finfo(q.dtype).min, dtype=q.dtype).triu(1)[None, None]
    weights = probabilities(q, k, mask, scaling=None)
    weights @ v
    nats, columns = torch.special.entr(weights[0]).sum(-1), weights[0].sum(-2)
    return {"entropy": nats, "columns": columns, **in_categories(columns, norms, category)}


def errors() -> dict[str, float]:
    """The largest errors against float64: entropy in nats, the others relative to the largest."""
    parts, category = layer(CHECKED), torch.arange(CHECKED) % CATEGORIES
    wanted = maps(tuple(part.double() for part in parts), category)
    found = sums(parts, category)
    return {
        name: float((found[name] - one).abs().max() / (1 if name == "entropy" else one.abs().max()))
        for name, one in wanted.items()
    }


def of_layer(tokens: int) -> list[Row]:
    """The ways to read one layer."""
    parts, category = layer(tokens), torch.arange(tokens) % CATEGORIES
    limit = LIMITS.get(tokens, (np.inf, np.inf))
    table = [
        Row("fused", lambda: fused(*parts[:3]), tokens),
        Row("sums", lambda: sums(parts, category), tokens, {"fused": limit[0]}),
        Row("rows, with argmax", lambda: rows(parts), tokens, {"fused": limit[1]}),
    ]
    if tokens <= WHOLE:
        table.append(Row("whole maps", lambda: maps(parts, category), tokens))
    return table


def network(layers: int) -> LlamaModel:
    """Random weights in SmolLM2-135M's shape, which has 30 layers."""
    torch.manual_seed(0)
    shape = {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 1 << 18,
        "vocab_size": WORDS,
    }
    return LlamaModel(LlamaConfig(**shape, num_hidden_layers=layers)).eval()


def bare(model: LlamaModel, ids: torch.Tensor) -> torch.Tensor:
    """The stock forward pass with fused attention."""
    model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        return model(input_ids=ids, use_cache=False).last_hidden_state


def atlas(model: LlamaModel, ids: torch.Tensor) -> dict[str, object]:
    """The numbers of SUMS, of the whole model."""
    nothing = np.zeros(ids.shape[1], np.int64)
    example = Example("a", "a", ids[0].numpy(), nothing, nothing.astype(bool))
    batch = Batch.of([example], Vocabulary(None, None, (5, 6)), replicates=0)
    config = model.config
    scope = Scope(
        config.num_hidden_layers, config.num_attention_heads, replicates=0, first_token=True
    )
    asked = [known_analyses()[name](scope) for name in SUMS]

    def look(view: LongLayerView) -> None:
        for analysis in asked:
            analysis.observe(view, batch)

    with torch.inference_mode(), Instrument(model, observers=[look], whole=1024) as instrument:
        instrument.long_reading = batch, True, None
        model(input_ids=ids, attention_mask=batch.mask.long(), use_cache=False)
    for analysis in asked:
        analysis.finish(batch)
    return {analysis.name: analysis.result() for analysis in asked}


def drawn(tokens: int) -> torch.Tensor:
    """[1, token] ids, as often as the words of a text: by one over their rank and 2.7."""
    share = 1 / (np.arange(WORDS) + 2.7)
    ids = np.random.default_rng(0).choice(WORDS, tokens, p=share / share.sum())
    return torch.from_numpy(ids)[None]


def of_model(tokens: int, layers: int) -> list[Row]:
    """A forward pass of the model, and the same with the atlas of its heads."""
    model, ids = network(layers), drawn(tokens)
    limit = {"fused": OF_MODEL.get(tokens, np.inf)}
    return [
        Row("fused", partial(bare, model, ids), tokens),
        Row("atlas of sums", partial(atlas, model, ids), tokens, limit),
    ]


def peak(what: str, tokens: int, layers: int) -> float:
    """MiB that a process of its own needs at most."""
    command = [sys.executable, "-m", "benchmarks.long", "--peak", what, str(tokens), str(layers)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _peak(what: str, tokens: int, layers: int) -> None:
    model, ids = network(layers), drawn(tokens)
    {"bare": bare, "atlas": atlas}[what](model, ids)
    status = Path("/proc/self/status").read_text().splitlines()  # getrusage has the parent's too
    print(next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM")))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print both tables."""
    parser = options("long", __doc__, examples=None, rounds=3)
    parser.add_argument("--tokens", default="4096,16384", help="of the layer alone")
    parser.add_argument(
        "--model", default="4096,8192", help="tokens of the whole model; '' for none"
    )
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--memory", action="store_true", help="peaks of the model too")
    parser.add_argument("--peak", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.peak:
        return _peak(given.peak[0], int(given.peak[1]), int(given.peak[2]))
    torch.set_num_threads(given.threads)
    print(f"{processor()}, {given.threads} thread(s), torch {torch.__version__}\n")
    told = ", ".join(f"{name} {error:.1e}" for name, error in errors().items())
    print(f"Largest errors against float64 at {CHECKED} tokens: {told}.")
    for what, counts, of in (
        (f"One layer, {HEADS} heads", given.tokens, of_layer),
        (
            f"{given.layers} layers × 9 heads, 3 key-value heads",
            given.model,
            partial(of_model, layers=given.layers),
        ),
    ):
        for tokens in map(int, filter(None, counts.split(","))):
            table_of = of(tokens)
            interleave(table_of, rounds=given.rounds, clock=given.clock)
            print(f"\n{what}, {tokens:,} tokens\n\n{table(table_of, stock='fused', fast='fused')}")
            if given.memory and of is not of_layer:
                both = [peak(one, tokens, given.layers) for one in ("bare", "atlas")]
                print(
                    f"\nPeak memory: {both[0]:,.0f} and {both[1]:,.0f} MiB, "
                    f"{both[1] / both[0]:.2f} ×"
                )
    return None


def processor() -> str:
    """The processor's name, where the system tells it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()


if __name__ == "__main__":
    main()
