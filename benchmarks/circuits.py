"""What do patching, induction and retrieval cost beside plain passes, and beside other programs?

python -m benchmarks.circuits [--only NAME] [--rivals PYTHON] [--examples N] [--clock cpu] …

patching   all heads of a layer together, against one pass per head: transformers' own, with a hook
           on the input of W_O and all logits, measured on a few heads and scaled. Pairs of prompts
           of 16 tokens that differ in the last six, as IOI prompts do
attribution  integrated gradients of five steps, of all nodes and of all edges, against its bare
           passes: two forward and five forward and backward, in one batch, of transformers' own,
           with the logits of the last token alone; prompts alike in all tokens but six, and in
           none. With --rivals, beside the code of EAP-IG's authors and a loop that hooks
           TransformerLens. These need transformer-lens 3.8, and EAP-IG/src on PYTHONPATH, with
           "cuda" replaced by "cpu"
induction  scores of [BOS r r] of 101 tokens, against bare passes, TransformerLens and nnsight. Time
           grows evenly with --examples: 1000 is what a run of `headscope circuits` should take
retrieval  the answer rows of a haystack of 8,192 tokens, against a bare pass of which the answer's
           logits are kept; a model of SmolLM2-135M's shape, with fewer layers

Other programs are each in a process of its own (`circuit_worker`), for the seconds and the peak
memory that it tells. --rivals: the Python of an environment that has them (transformer-lens,
nnsight, tokenizers); without it they are not run.

Random decoders, of GPT-2's shape (12 × 12 heads) but for the last; one interleaved run of each, see
`benchmarks.atlas`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from benchmarks.circuit_worker import STEPS as WAY
from benchmarks.inputs import VOCABULARY, twin
from benchmarks.timing import Row, interleave, options, table
from benchmarks.trained_decoder import tokenizer
from headscope.corpus.document import Example
from headscope.experiments.circuits.circuit_run import WHOLE
from headscope.experiments.circuits.discovery.edge_attribution import edge_attribution
from headscope.experiments.circuits.discovery.node_attribution import node_attribution
from headscope.experiments.circuits.discovery.paired_passes import paired_passes
from headscope.experiments.circuits.made_inputs import example_of
from headscope.experiments.circuits.needles import STEPS, Needles
from headscope.experiments.circuits.patching import patched_differences
from headscope.experiments.circuits.prompts import Prompt, PromptSet
from headscope.experiments.circuits.retrieval import retrieved
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model
from headscope.model.threads import threads_of

ONE = "one pass per head"
TOKENS, COMMON = 16, 10
MEASURED = 6  # heads of one pass each
HALF = 50  # tokens that come again
BARE = "bare"
OURS, THEIRS = ("bare_asked", "headscope"), ("transformer_lens", "transformer_lens_maps", "nnsight")
SLOPES = ("eap_ig", "transformer_lens_slopes")
FEWER, SAME = 1 / 5, 1e-4  # of another program's time; apart from its scores
HAYSTACK, LAYERS, SAID = 8192, 4, 6  # tokens of a question


def decoder(**shape: Any) -> GPT2LMHeadModel:
    """A random GPT-2."""
    torch.manual_seed(0)
    network: GPT2LMHeadModel = GPT2LMHeadModel(GPT2Config(**shape)).eval()
    return network


def pairs(count: int, *, words: int, common: int = COMMON) -> PromptSet:
    """Random prompts, corrupted but for their first tokens."""
    rng = np.random.default_rng(0)
    clean = rng.integers(1, words, (count, TOKENS))
    other = rng.integers(1, words, (count, TOKENS - common))
    other = np.concatenate([clean[:, :common], other], 1)
    sides = [
        [Example(str(at), str(at), row, np.zeros_like(row), row < 0) for at, row in enumerate(side)]
        for side in (clean, other)
    ]
    answers = [np.array([[one]]) for one in (1, 2)]
    right, wrong = ([answer[0]] * count for answer in answers)
    return PromptSet("random", (Prompt("", "", ""),) * count, *sides, right, wrong)


def each_by_itself(network: Any, asked: PromptSet) -> Callable[[], list[float]]:
    """A pass of all prompts for each of a few heads."""
    clean, other = (
        torch.from_numpy(np.stack([one.input_ids for one in side]))
        for side in (asked.clean, asked.corrupted)
    )
    layers, size = network.transformer.h, network.config.n_embd // network.config.n_head

    def run() -> list[float]:
        kept: list[torch.Tensor] = []
        hooks = [
            layer.attn.c_proj.register_forward_pre_hook(lambda _, args: kept.append(args[0]))
            for layer in layers
        ]
        found = []
        with torch.inference_mode():
            network(input_ids=clean)
            for hook in hooks:
                hook.remove()
            heads = network.config.n_head
            for unit in np.linspace(0, len(layers) * heads - 1, MEASURED).astype(int).tolist():
                layer, head = divmod(unit, heads)
                own = slice(head * size, (head + 1) * size)

                def put(
                    _module: Any, args: Any, own: slice = own, z: torch.Tensor = kept[layer]
                ) -> Any:
                    given = args[0].clone()
                    given[..., own] = z[..., own]
                    return (given,)

                hook = layers[layer].attn.c_proj.register_forward_pre_hook(put)
                logits = network(input_ids=other).logits[:, -1]
                hook.remove()
                found.append(float((logits[:, 1] - logits[:, 2]).mean()))
        return found

    return run


def rows(network: Any, asked: PromptSet) -> list[Row]:
    """One pass per head, and ours."""
    tokens = sum(map(len, asked.clean))
    heads = network.config.n_layer * network.config.n_head
    plain, language = twin(network, "eager"), LanguageModel(_bare_model(network), "causal")

    def ours() -> Any:
        return patched_differences(
            language, asked.clean, asked.corrupted, asked, positions=False, batch_tokens=2048
        )

    return [
        Row(ONE, each_by_itself(plain, asked), tokens * (MEASURED + 1) / (heads + 1)),
        Row("all heads of a layer together", ours, tokens, {ONE: 0.25}),
    ]


def patching(given: argparse.Namespace) -> None:
    """All heads of a layer together, and one by one."""
    network = decoder()
    for count in (1, 8):
        asked = pairs(count, words=network.config.vocab_size)
        timed = rows(network, asked)
        interleave(timed, rounds=given.rounds, clock=given.clock)
        print(f"**{count} pairs of {TOKENS} tokens**\n\n{table(timed, stock=ONE, fast=ONE)}\n")


# --- attribution ------------------------------------------------------------------------------


def attribution(given: argparse.Namespace) -> None:
    """Nodes and edges, against the passes that they need, and other programs."""
    network = decoder()
    for common in (COMMON, 0):
        asked = pairs(8, words=network.config.vocab_size, common=common)
        _attributed(given, network, asked, f"{common} of {TOKENS} tokens alike")


def _attributed(given: argparse.Namespace, network: Any, asked: PromptSet, alike: str) -> None:
    ids = np.stack([[one.input_ids for one in side] for side in (asked.clean, asked.corrupted)])
    language = LanguageModel(_bare_model(network), "causal")

    def ours(find: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            with paired_passes(language, asked, batch_tokens=2048) as paired:
                return find(paired, steps=WAY).sum(0)

        return run

    tokens, limits = sum(map(len, asked.clean)), {BARE: 1.3}
    find_nodes, find_edges = ours(node_attribution), ours(edge_attribution)
    timed = [
        Row(BARE, bare_slopes(twin(network, "sdpa"), torch.from_numpy(ids)), tokens),
        Row("nodes", find_nodes, tokens, limits),
        Row("edges", find_edges, tokens, limits),
    ]
    rivals = [(given.rivals, way) for way in SLOPES if given.rivals]
    with workers(given, network, ids, rivals) as running:
        timed += [Row(one.way, one.run, tokens, clock=one.spent) for one in running]
        interleave(timed, rounds=given.rounds, clock=given.clock)
        found = {one.way: np.array(one.scores()) for one in running}
    told = table(timed, stock=BARE, fast=BARE)
    print(f"**Integrated gradients, 8 pairs, {alike}, {WAY} steps**\n\n{told}\n")
    if "transformer_lens_slopes" in found:
        apart = np.abs(found["transformer_lens_slopes"] * len(ids[0]) - find_nodes()).max()
        print(f"scores of nodes of transformer_lens_slopes and ours: {apart:.1e} apart\n")


def bare_slopes(plain: Any, ids: torch.Tensor) -> Callable[[], None]:
    """The passes that integrated gradients need: ids [side, prompt, token]."""
    plain.requires_grad_(False)

    def run() -> None:
        with torch.no_grad():
            for side in ids:
                plain(input_ids=side, logits_to_keep=1, use_cache=False)
            start = plain.transformer.wte(ids[0]).repeat(WAY, 1, 1)
        start.requires_grad_()
        logits = plain(inputs_embeds=start, logits_to_keep=1, use_cache=False).logits
        torch.autograd.grad((logits[..., 1] - logits[..., 2]).sum(), start)

    return run


def _bare_model(network: Any) -> Model:
    model = Model(network, None, "random", "", "")
    vars(model)["vocabulary"] = VOCABULARY  # its inputs need no tokenizer
    return model


# --- other programs -----------------------------------------------------------------------------


class Worker:
    """A process that scores heads in one way, again and again.

    seconds  by the clock, of all runs
    peak     bytes, the largest of all runs
    """

    def __init__(self, python: str, way: str, folder: Path, given: argparse.Namespace) -> None:
        script = Path(__file__).with_name("circuit_worker.py")
        words = [python, script, way, folder / "model", folder / "ids.npy", str(given.threads)]
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.way, self.clock, self.seconds, self.peak = way, given.clock, 0.0, 0

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise SystemExit(f"{self.way} failed; run circuit_worker.py by itself to see why")
        return json.loads(line)

    def run(self) -> None:
        """Once more."""
        assert self.process.stdin is not None
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        told = self._answer()
        self.seconds += told[self.clock]
        self.peak = max(self.peak, told["peak"])

    def spent(self) -> float:
        """Seconds of all runs."""
        return self.seconds

    def scores(self) -> Any:
        """As the way gives them, or None; the process ends."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self._answer()


@contextmanager
def workers(
    given: argparse.Namespace, network: Any, ids: Any, ways: Sequence[tuple[str, str]]
) -> Iterator[list[Worker]]:
    """One of each way, which is a Python and a name, on one network and these inputs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network.save_pretrained(folder / "model")
        np.save(folder / "ids.npy", ids)
        running = [Worker(python, way, folder, given) for python, way in ways]
        try:
            yield running
        finally:
            for one in running:
                one.process.kill()
                one.process.wait()


def induction(given: argparse.Namespace) -> None:
    """Ours, bare passes, and other programs."""
    tokens, network, draw = given.examples * (2 * HALF + 1), decoder(), np.random.default_rng(0)
    words = network.config.vocab_size
    halves = np.stack([1 + draw.permutation(words - 1)[:HALF] for _ in range(given.examples)])
    ids = np.concatenate([np.zeros((given.examples, 1), np.int64), halves, halves], 1)
    ways = [(sys.executable, way) for way in (BARE, *OURS)]
    ways += [(given.rivals, way) for way in THEIRS if given.rivals]
    with workers(given, network, ids, ways) as running:
        limits = {BARE: 1.15} | (dict.fromkeys(THEIRS, FEWER) if given.rivals else {})
        timed = [
            Row(
                one.way,
                one.run,
                tokens,
                limits if one.way == "headscope" else {},
                clock=one.spent,
            )
            for one in running
        ]
        interleave(timed, rounds=given.rounds, clock=given.clock)
        found = {one.way: one.scores() for one in running}
    print(f"**Induction, {given.examples} × {2 * HALF + 1} tokens**\n")
    print(table(timed, stock=BARE, fast="headscope"))
    print("\npeak memory, MiB:", *(f"{one.way} {one.peak / 2**20:,.0f}" for one in running))
    for way in THEIRS:
        if not given.rivals:
            print(f"{way}: not run; it takes --rivals PYTHON")
        elif found[way] is not None:
            apart = float(np.abs(np.subtract(found[way], found["headscope"])).max())
            print(
                f"scores of {way} and ours: {apart:.1e} apart", "PASS" if apart <= SAME else "miss"
            )
    print()


# --- retrieval ----------------------------------------------------------------------------------


def retrieval(given: argparse.Namespace) -> None:
    """The answer rows of a long haystack."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 2 * HAYSTACK,
        "vocab_size": 49152,
    }
    network = LlamaForCausalLM(LlamaConfig(**shape, num_hidden_layers=LAYERS)).eval()
    ids = np.random.default_rng(0).integers(5, shape["vocab_size"], HAYSTACK)
    right, places = ids[100 : 100 + STEPS], 100 + np.arange(STEPS)
    ids[1 - STEPS :] = right[:-1]
    made = Needles(
        [example_of(ids, "0", "haystack")],
        [right],
        [places],
        [SAID],
        [SAID],
        np.zeros(1),
        np.zeros(1, np.int64),
    )
    model, plain = Model(network, tokenizer(), "random", "", ""), twin(network, "sdpa")
    vars(model)["vocabulary"] = VOCABULARY
    speaks = network.lm_head.weight.detach()

    def bare() -> None:
        with torch.inference_mode():
            plain(input_ids=torch.from_numpy(ids)[None], logits_to_keep=STEPS, use_cache=False)

    def ours() -> Any:
        return retrieved(model, made, [0], speaks, whole=WHOLE)

    timed = [
        Row(BARE, bare, HAYSTACK),
        Row("answer rows", ours, HAYSTACK, {BARE: 1.1}),
    ]
    interleave(timed, rounds=given.rounds, clock=given.clock)
    told = table(timed, stock=BARE, fast=BARE)
    print(f"**Retrieval, a haystack of {HAYSTACK:,} tokens, {LAYERS} layers**\n\n{told}\n")


PARTS = {
    "patching": patching,
    "attribution": attribution,
    "induction": induction,
    "retrieval": retrieval,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = options("circuits", __doc__, examples=20, rounds=3)
    parser.add_argument("--only", choices=list(PARTS), help="one of them; by default all")
    parser.add_argument("--rivals", metavar="PYTHON", help="with transformer-lens and nnsight")
    given = parser.parse_args(arguments)
    with threads_of(given.threads):
        for part in [given.only] if given.only else PARTS:
            PARTS[part](given)


if __name__ == "__main__":
    main()
