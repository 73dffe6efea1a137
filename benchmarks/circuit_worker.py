"""One way to score heads, in a process of its own: ours, a bare pass, or another program.

    PYTHON circuit_worker.py WAY MODEL IDS THREADS

It may be run by a Python that knows neither headscope nor the other benchmarks. MODEL is a folder
with a GPT-2, IDS a .npy file. For each line that it is sent it does the work once and prints, as
JSON, its CPU and wall seconds and its peak memory; at the end of its input it prints the scores, or
null for a way that gives none.

Induction: IDS are inputs [BOS r_1 … r_n r_1 … r_n], scores [layer, head] the mean attention
α(i, i−n+1) of the second half. Attribution: IDS are [prompt, token] and the same of corrupted ones,
scores those of integrated gradients of the logits of token 1 less those of token 2.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

AT_ONCE = 10  # sequences of a forward pass
STEPS = 5  # of integrated gradients
Scores = np.ndarray[Any, Any] | None


def network(folder: str, implementation: str = "sdpa") -> Any:
    """The GPT-2."""
    from transformers import GPT2LMHeadModel

    return GPT2LMHeadModel.from_pretrained(folder, attn_implementation=implementation).eval()


def batches(ids: Any, size: int = AT_ONCE) -> list[torch.Tensor]:
    """[sequence, token] of so many sequences each."""
    return [torch.from_numpy(ids[at : at + size]) for at in range(0, len(ids), size)]


def induction(maps: torch.Tensor, half: int) -> torch.Tensor:
    """[sequence, head] of maps [sequence, head, query, key]."""
    return maps.diagonal(1 - half, dim1=2, dim2=3)[..., -half:].mean(-1)


def bare(folder: str, ids: Any) -> Callable[[], Scores]:
    """Forward passes, all logits, of which nothing is kept."""
    model = network(folder)

    def run() -> Scores:
        with torch.inference_mode():
            for some in batches(ids):
                model(input_ids=some, use_cache=False)
        return None

    return run


def bare_asked(folder: str, ids: Any) -> Callable[[], Scores]:
    """The same with the logits of the second half alone, which is what we ask for."""
    model, half = network(folder), ids.shape[1] // 2

    def run() -> Scores:
        with torch.inference_mode():
            for some in batches(ids):
                model(input_ids=some, use_cache=False, logits_to_keep=half)
        return None

    return run


def headscope(folder: str, ids: Any) -> Callable[[], Scores]:
    """What `headscope circuits` does with these inputs: three scores, and how well it predicts."""
    from headscope.experiments.circuits.circuit_run import second_half
    from headscope.experiments.circuits.head_scores import PatternScores
    from headscope.experiments.circuits.made_inputs import Repeats, example_of
    from headscope.model.instrument import Instrument
    from headscope.model.model import Model, run_network
    from headscope.model.vocabulary import Vocabulary

    model = Model(network(folder), None, "random", "", "")
    vars(model)["vocabulary"] = Vocabulary(cls=None, sep=None, punctuation=())
    examples = [example_of(row, str(at), "repeated", special=1) for at, row in enumerate(ids)]
    made = Repeats(examples, [], 1, ids.shape[1] // 2)

    def run() -> Scores:
        found = []
        for at in range(0, len(examples), AT_ONCE):
            some = examples[at : at + AT_ONCE]
            batch, scores = model.batch(some), PatternScores(made)
            look = [lambda view, scores=scores, batch=batch: scores.look(view, batch)]
            read = partial(run_network, model.network, *batch.inputs, keep=False)
            seen_by = Instrument(model.network, observers=look)
            with torch.inference_mode():
                second_half(made, some).read(model.network, read, range(len(some)), seen_by=seen_by)
            found.append(scores.whole[..., 2])  # [sequence, layer, head]
        return np.concatenate(found).mean(0)

    return run


def lens(folder: str) -> Any:
    """TransformerLens's model; nothing is folded, as for the others."""
    from tokenizers import Tokenizer, models
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import PreTrainedTokenizerFast

    words = {f"w{at}": at for at in range(10)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="w1")),
        pad_token="w0",
        unk_token="w1",
    )
    return TransformerBridge.boot_transformers(
        "gpt2", hf_model=network(folder, "eager"), tokenizer=tokenizer
    )


def transformer_lens(folder: str, ids: Any) -> Callable[[], Scores]:
    """TransformerLens: run_with_cache and its detector, a prompt at a time, as it takes them.

    Its score is a mean over all queries of a prompt, not over the second half.
    """
    from transformer_lens.head_detector import detect_head

    model = lens(folder)

    def run() -> Scores:
        for row in batches(ids, 1):
            model.to_tokens = lambda _, row=row: row
            with torch.inference_mode():
                _, cache = model.run_with_cache(row, remove_batch_dim=True)
                detect_head(model, "", "induction_head", cache=cache)
        return None

    return run


def transformer_lens_maps(folder: str, ids: Any) -> Callable[[], Scores]:
    """TransformerLens: run_with_cache of the maps alone, many at a time; the mean is ours."""
    model, half = lens(folder), ids.shape[1] // 2

    def run() -> Scores:
        found = []
        for some in batches(ids):
            with torch.inference_mode():
                _, cache = model.run_with_cache(
                    some, names_filter=lambda name: name.endswith("hook_pattern")
                )
                layers = [cache["pattern", at] for at in range(model.cfg.n_layers)]
                found.append(torch.stack([induction(one, half) for one in layers], 1))
        return np.asarray(torch.cat(found).mean(0).numpy())

    return run


def nnsight(folder: str, ids: Any) -> Callable[[], Scores]:
    """nnsight: a trace that saves the maps of every layer; the mean is ours."""
    from nnsight import NNsight, save

    model, half = NNsight(network(folder, "eager")), ids.shape[1] // 2
    layers = model.transformer.h

    def run() -> Scores:
        found = []
        for some in batches(ids):
            with torch.inference_mode(), model.trace(input_ids=some, use_cache=False):
                maps = save([layer.attn.output[1] for layer in layers])
            found.append(torch.stack([induction(one, half) for one in maps], 1))
        return np.asarray(torch.cat(found).mean(0).numpy())

    return run


def hooked(folder: str) -> Any:
    """TransformerLens's model before its version 4, without weights to be trained."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig
    from transformer_lens.pretrained.weight_conversions import convert_gpt2_weights

    made = network(folder)
    own = made.config
    config = HookedTransformerConfig(
        n_layers=own.n_layer,
        d_model=own.n_embd,
        n_heads=own.n_head,
        d_head=own.n_embd // own.n_head,
        d_mlp=4 * own.n_embd,
        d_vocab=own.vocab_size,
        n_ctx=own.n_positions,
        act_fn="gelu_new",
        normalization_type="LN",
        device="cpu",
    )
    model = HookedTransformer(config)
    model.load_and_process_state_dict(convert_gpt2_weights(made, config))
    return model.eval().requires_grad_(False)


def _loss(logits: torch.Tensor, *_: Any) -> torch.Tensor:
    return (logits[:, -1, 2] - logits[:, -1, 1]).mean()


def eap_ig(folder: str, ids: Any) -> Callable[[], Scores]:
    """The code of EAP-IG's authors: [node, reader] edges; on one way of so many steps, from 0."""
    from eap.attribute import get_scores_eap_ig
    from eap.graph import Graph

    model = hooked(folder)
    for hook in ("use_split_qkv_input", "use_attn_result", "use_hook_mlp_in"):
        setattr(model.cfg, hook, True)
    model.to_tokens = lambda some, **_: some
    graph, sides = Graph.from_model(model), map(torch.from_numpy, ids)
    prompts = [(*sides, None)]
    return lambda: get_scores_eap_ig(model, graph, prompts, _loss, steps=STEPS, quiet=True).numpy()


def transformer_lens_slopes(folder: str, ids: Any) -> Callable[[], Scores]:
    """TransformerLens: its caches and hooks, [node]: input, then each layer's heads and MLP."""
    model, (clean, other) = hooked(folder), map(torch.from_numpy, ids)
    layers = [("attn.hook_z", (1, 3)), ("hook_mlp_out", (1, 2))]
    nodes = {f"blocks.{at}.{one}": dims for at in range(model.cfg.n_layers) for one, dims in layers}
    nodes = {"hook_embed": (1, 2)} | nodes

    def run() -> Scores:
        with torch.no_grad():
            gave = [model.run_with_cache(side, names_filter=[*nodes])[1] for side in (clean, other)]
        change = {name: gave[0][name] - gave[1][name] for name in nodes}
        sums = {name: torch.zeros(()) for name in nodes}

        def add(slope: torch.Tensor, hook: Any) -> None:
            sums[hook.name] = sums[hook.name] - (change[hook.name] * slope).sum(nodes[hook.name])

        for step in range(1, STEPS + 1):
            start = gave[1]["hook_embed"] + step / STEPS * change["hook_embed"]
            way = ("hook_embed", lambda _, hook, start=start: start.requires_grad_())
            with model.hooks(fwd_hooks=[way], bwd_hooks=[(name, add) for name in nodes]):
                _loss(model(clean)).backward()
        every = [sums[name].view(len(clean), -1) for name in nodes]
        return np.asarray((torch.cat(every, 1).sum(0) / STEPS).numpy())

    return run


WAYS = (
    *(bare, bare_asked, headscope, transformer_lens, transformer_lens_maps, nnsight),
    *(eap_ig, transformer_lens_slopes),
)


def peak() -> int:
    """Bytes, since the last call, of this process; 0 where the system does not tell."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not (status.exists() and reset.exists()):
        return 0
    lines = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
    reset.write_text("5", "utf-8")
    return int(lines["VmHWM"].split()[0]) * 1024


def main() -> None:
    """Do the work once for every line."""
    way, folder, file, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    run = {one.__name__: one for one in WAYS}[way](folder, np.load(file))
    scores: Scores = None
    answers = sys.stdout
    sys.stdout = sys.stderr  # what others print is no answer
    for _ in sys.stdin:
        peak()
        start = time.process_time(), time.perf_counter()
        scores = run()
        spent = time.process_time() - start[0], time.perf_counter() - start[1]
        told = {"cpu": spent[0], "wall": spent[1], "peak": peak()}
        print(json.dumps(told), file=answers, flush=True)
    print(json.dumps(None if scores is None else scores.tolist()), file=answers, flush=True)


if __name__ == "__main__":
    main()
