"""The control of a run: the same analyses on untrained networks.

What a run says of heads may be said of the heads of any network: attention of an untrained one is
broad, or rests on few tokens, by the scale of its weights alone. So each atlas reads a sample of
its inputs with networks of the same architecture that have learned nothing. By default these are

    untrained   weights as the architecture draws them before it is trained
    shuffled    the run's own weights, the entries of each tensor permuted: the scales of the
                trained weights, and nothing else; of small models several such

Two more serve pairs of heads alone: clusters and likeness of layers come without learning

    rotated     the run's own embeddings, and matrices with its singular values in other directions
    few steps   `untrained` after a few steps of a training that teaches nothing; not of large ones

A folder is read in their place: a model of the same shape, say of before the training.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import xarray as xr
from torch import nn

from headscope.claims.control import COMPARED, CONTROL
from headscope.claims.question import questions
from headscope.core.progress import Advance, unheard
from headscope.core.results import LIMITS, with_token_names
from headscope.corpus.document import Example
from headscope.corpus.equal_documents import unit_names
from headscope.errors import InputError, ModelError
from headscope.model.linears import linears, used_weight
from headscope.model.model import Model, evaluating, load
from headscope.model.placement import place_alike, plain, spread
from headscope.run.analysis import Analysis
from headscope.run.compute import Computer, ShardJob
from headscope.run.manifest import dtype_of
from headscope.run.mixed_weights import (
    TURNED,
    in_other_directions,
    in_random_order,
    random_directions,
)
from headscope.run.readings import MOST_SAMPLED
from headscope.run.sampled_analyses import few_of, read_sample

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NONE, RANDOM, PAIRS, STORED = "none", "random", "divergence", "examples"
SHARE = 0.1  # ours: of the tokens of a run, read by all networks of the control together
LEAST = 128, 512  # ours: tokens that each of them reads, where the run has as many
EASY = 1 << 32  # ours: numbers times tokens of a network; the second of LEAST where it reads fewer
STEP = 3  # ours: costly numbers are of one in this number of inputs, of all of few
LEAST_HEADS = 50  # ours: of shuffled networks; a head that knows nothing tops them once in 51
MOST_SHUFFLED = 12  # ours: networks; each costs as much as a few hundred tokens, however small
SEED = 0
STEPS, STEP_SIZE = 3, 1.0  # ours: steps; of an entry's usual size at the beginning
EXAMPLES, TOKENS = 2, 16  # ours: of each step
MOST_TRAINED = 1 << 29  # ours: numbers of a network


@dataclass(frozen=True)
class Control:
    """The untrained networks that a run is compared with.

    kind      "random", or "model" for one of a folder
    networks  by name; each is made when it is read, and let go
    spec      what decides their numbers
    pairs     those of the networks that compute PAIRS alone
    size      numbers of each network
    """

    kind: str
    networks: Mapping[str, Callable[[], Model]]
    spec: Mapping[str, Any]
    pairs: Collection[str] = ()
    size: int = 0

    def tokens(self, of_run: int, *, draws: bool = False) -> int:
        """The most tokens that each network reads, for a run of `of_run` tokens."""
        whole = len(self.networks) - len(self.pairs)
        least = LEAST[1] if draws else max(LEAST[0], min(LEAST[1], EASY // max(self.size, 1)))
        return max(least, min(MOST_SAMPLED, int(SHARE * of_run / whole)))

    def asked(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The analyses for each network; networks without any are left out."""
        of_each = {
            network: tuple(name for name in names if network not in self.pairs or name == PAIRS)
            for network in self.networks
        }
        return {network: some for network, some in of_each.items() if some}


def control_of(model: Model, wish: str | Path | None) -> Control | None:
    """The control of a run of a model.

    wish    "random", "none" (or None), or the folder of a model
    raises  ModelError for a folder that holds no model, or one of another shape
    """
    if wish is None or str(wish) == NONE:
        return None
    if str(wish) == RANDOM:
        networks: dict[str, Callable[[], Model]] = {"untrained": partial(untrained_model, model)}
        least = ceil(LEAST_HEADS / (model.shape.layers * model.shape.heads))
        for at in range(min(least, MOST_SHUFFLED)):
            name = f"shuffled {at + 1}" if at else "shuffled"
            networks[name] = _maker(model, partial(shuffled, seed=SEED + at))
        more = {"rotated": rotated, "few steps": few_steps}
        if (size := sum(part.numel() for part in model.network.parameters())) > MOST_TRAINED:
            del more["few steps"]
        networks |= {name: _maker(model, make) for name, make in more.items()}
        spec = {"kind": RANDOM, "seed": SEED, PAIRS: sorted(more)}
        return Control(RANDOM, networks, spec, tuple(more), size)
    other = load(wish, tokenizer=model.tokenizer, dtype=dtype_of(model), device=str(model.device))
    _check_shape(model, other, str(wish))
    if _equal_weights(model.network, other.network):
        raise InputError(
            f"the control {str(wish)!r} is the model itself: all weights are equal; wanted a model "
            "of its shape that has learned less, or --control random"
        )
    return Control("model", {"model": lambda: other}, {"kind": "model", "sha256": other.sha256})


def untrained_model(model: Model) -> Model:
    """The network `untrained` of a model's control; raises ModelError where none can be made."""
    return _maker(model, untrained)()


def controlled(names: list[str]) -> list[str]:
    """The analyses of a run that its control repeats on untrained networks."""
    with_control = {q.name for q in questions() if q.claims is not None or q.controlled}
    return [name for name in names if name in with_control]


def control_names(job: ShardJob) -> list[str]:
    """The analyses of the control's networks: all of them if draws are kept."""
    return list(job.names) if job.draws else controlled(list(job.names))


def control_results(
    control: Control,
    job: ShardJob,
    samples: Sequence[tuple[Example, ...]],
    advance: Advance = unheard,
    more: Sequence[str] = (),
    *,
    window: int = 0,
) -> Iterator[tuple[str, xr.Dataset]]:
    """(group, dataset) of the control: the numbers of each network, and the sample it read.

    Only what claims about heads compare; everything, with intervals, where draws are kept, as any
    number may be asked for then.

    samples  of each kind of inputs
    more     analyses that read a sample themselves, in several passes
    window   tokens of which the samples hold no more, of longer inputs; 0 for whole ones
    """
    whole = job.draws
    examples = [example for sample in samples for example in sample]
    job = _job(job, examples, whole=whole)
    counts = {
        "documents": len(set(unit_names(examples, job.scope.listed))),
        "examples": len(examples),
        "tokens": sum(map(len, examples)),
        "window": window,
    }
    yield CONTROL, xr.Dataset(attrs={"kind": control.kind, "tidy": 0, **counts})
    step = 1 if whole or counts["tokens"] <= len(samples) * LEAST[1] / 2 else STEP
    every = [example for sample in samples for example in sample[::step]]
    cheap = [example for sample in samples for at, example in enumerate(sample) if at % step]
    made: dict[str, dict[str, Any]] = {one: {} for one in more}
    for name, wanted in control.asked([*job.names, *more]).items():
        model, pairs = control.networks[name](), name in control.pairs and not whole
        about: dict[str, Any] = {"model": name, "stack": job.stack, "seed": job.scope.seed}
        about |= {"layers": job.scope.layers, "heads": job.scope.heads}
        about |= {f"{kind}_token": model.special_tokens.get(kind, "") for kind in ("cls", "sep")}
        yield f"{CONTROL}/{name}", xr.Dataset(attrs={**about, **counts})
        with evaluating(model.network), linears(model.network, job.linears):  # packed once
            read = list[Analysis]()
            if names := tuple(one for one in wanted if one not in (*more, STORED)):
                own = replace(job, names=names)
                read += Computer(model, own).read(every, () if pairs else cheap, advance)
            if STORED in wanted:  # the same inputs as the run's, so that maps can be compared
                shown = job.scope.stored_inputs
                read += Computer(model, replace(job, names=(STORED,))).read(shown)
            for one in filter(more.count, wanted):
                some = [e for e in examples if e.reading == job.reads.get(one, e.reading)]
                read.append(read_sample(one, model, job, few_of(some), made=made[one]))
            for analysis in read:
                result = analysis.result() if whole else _numbers(analysis.result())
                named = with_token_names(result, model.tokens)
                yield f"{CONTROL}/{name}/{analysis.name}", named
        del model, read  # before the next network is made


def _numbers(result: xr.Dataset) -> xr.Dataset:
    """The dataset without missing intervals and without maps for display."""
    names = [
        str(name)
        for name, variable in result.data_vars.items()
        if (variable.attrs.get("tidy", 1) or variable.attrs.get(COMPARED))
        and not (str(name).endswith(LIMITS) and np.isnan(variable.values).all())
    ]
    return result[names]


def _job(job: ShardJob, examples: Sequence[Example], *, whole: bool) -> ShardJob:
    """The job of each network: all analyses of the run, or those that claims compare; inputs of all
    lengths together.
    """
    job = replace(job, bands={})
    if not whole:
        scope = replace(job.scope, stored_inputs=(), stored_tokens=(), replicates=0, control=True)
        most = min(job.settings.batch_tokens, sum(map(len, examples)))  # else padding is the most
        settings = replace(job.settings, batch_tokens=most)
        return replace(job, names=tuple(control_names(job)), scope=scope, settings=settings)
    units = unit_names(examples, job.scope.listed)
    documents = list(dict.fromkeys(units))
    few = len(documents) <= job.scope.replicates  # each is a group of its own, as in the run
    places = {
        example.document: documents.index(unit)
        for example, unit in zip(examples, units, strict=True)
    }
    scope = replace(
        job.scope,
        documents=len(documents),
        replicates=len(documents) if few else job.scope.replicates,
        listed=places if few else {},
    )
    return replace(job, scope=scope)


def untrained(network: PreTrainedModel, *, seed: int = SEED) -> PreTrainedModel:
    """A network of the same architecture with freshly initialised weights."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return type(network)(copy.deepcopy(network.config))


def shuffled(network: PreTrainedModel, *, seed: int = SEED) -> PreTrainedModel:
    """A network with the entries of each tensor in random order.

    Tables of what each distance adds to the scores of each head (T5) say where heads look by
    themselves, in whatever order: they add the same for all distances.
    Offloaded weights are read, and quantised ones dealt out as the numbers that they stand for: the
    network is whole, and held in full, on the host.
    """
    random = torch.Generator().manual_seed(seed)
    heads = getattr(network.config.get_text_config(), "num_attention_heads", None)

    def dealt(module: nn.Module, entries: torch.Tensor) -> torch.Tensor:
        if isinstance(module, nn.Embedding) and module.embedding_dim == heads:
            return entries.mean(0).expand_as(entries)  # [distance, head]
        return in_random_order(entries.flatten(), random)

    return _remade(network, dealt)


def rotated(network: PreTrainedModel, *, seed: int = SEED) -> PreTrainedModel:
    """A network whose matrices keep their singular values but read from other directions.

    Their singular values stay, their singular vectors are random. Embeddings and vectors are as
    they were: tokens and places differ as much from each other.
    """
    random = torch.Generator().manual_seed(seed)
    turn = random_directions(TURNED, random)

    def other(module: nn.Module, entries: torch.Tensor) -> torch.Tensor:
        if entries.ndim < 2 or isinstance(module, nn.Embedding):
            return entries
        for _ in range(2):
            entries = in_other_directions(entries.float(), turn, random).transpose(-1, -2)
        return entries

    return _remade(network, other)


def few_steps(network: PreTrainedModel, *, seed: int = SEED) -> PreTrainedModel:
    """An untrained network after STEPS of training on random targets.

    It reads tokens at random and is to tell, of the tokens of its inputs, one at random for each. A
    step changes every entry of a matrix by the same amount, as the first ones of Adam do. Where no
    slope can be had of it, it is as it begins.
    """
    other = untrained(network, seed=seed)
    other.train(False)
    faults = RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError
    with suppress(*faults), torch.enable_grad():
        _train(other, seed=seed)
    return other


def _train(other: PreTrainedModel, *, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    tokens: torch.Tensor = other.get_input_embeddings().weight  # type: ignore[assignment]
    matrices = [
        part for part in other.parameters() if part.ndim > 1 and part.shape[0] != len(tokens)
    ]
    sizes = [STEP_SIZE * float(part.detach().std()) for part in matrices]
    for _ in range(STEPS):
        ids = torch.randint(len(tokens), (EXAMPLES, TOKENS), generator=random)
        more = {"decoder_input_ids": ids} if other.config.is_encoder_decoder else {}
        vectors = other.base_model(input_ids=ids, **more)[0].flatten(0, 1)  # [token, vector]
        right = torch.randperm(len(vectors), generator=random)
        loss = nn.functional.cross_entropy(vectors @ tokens[ids.flatten()].T, right)
        slopes = torch.autograd.grad(loss, matrices, allow_unused=True)
        with torch.no_grad():
            for matrix, slope, size in zip(matrices, slopes, sizes, strict=True):
                if slope is not None:
                    matrix.sub_(size * slope.sign())
        del slopes  # as large as the network: not beside the next step's


def _remade(
    network: PreTrainedModel, change: Callable[[nn.Module, torch.Tensor], torch.Tensor]
) -> PreTrainedModel:
    """A network with other entries in every tensor; `change` gets the module and its entries."""
    known = all(isinstance(part, torch.Tensor) for part in network.state_dict().values())
    as_it_is = known and all(map(plain, network.parameters())) and not spread(network)
    other = copy.deepcopy(network) if as_it_is else untrained(network)
    tied = set[int]()  # an output head is often the embedding once more
    for name, tensor in other.state_dict().items():
        if tensor.is_floating_point() and tensor.data_ptr() not in tied:
            tied.add(tensor.data_ptr())
            own = (tensor if as_it_is else used_weight(network, name)).cpu()
            module = other.get_submodule(name.rpartition(".")[0])
            tensor.copy_(change(module, own).reshape(tensor.shape))
    return other


def _maker(model: Model, make: Callable[[PreTrainedModel], PreTrainedModel]) -> Callable[[], Model]:
    def made() -> Model:
        try:
            network = make(model.network)
            network.train(False)
            nn.Module.to(network, dtype=model.network.dtype)
            place_alike(network, model.network, model.device)
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
            raise ModelError(
                f"no control of {model.name!r} can be made ({str(error)[:200]}); wanted a network "
                "of the same architecture without training: --control none, or a folder with one"
            ) from error
        other = Model(network, model.tokenizer, model.name, "", "")
        # Of the tokenizer and the architecture alone: found once.
        for name in ("vocabulary", "shapes", "identity_fault"):
            vars(other)[name] = getattr(model, name)
        return other

    return made


def _equal_weights(one: PreTrainedModel, two: PreTrainedModel) -> bool:
    """Whether all parameters are equal, whatever files they came from."""
    pairs = zip(one.parameters(), two.parameters(), strict=False)
    return all(a.shape == b.shape and bool((a == b).all()) for a, b in pairs)


def _check_shape(model: Model, other: Model, place: str) -> None:
    one, two = (
        {
            "layers": each.shape.layers,
            "heads": each.shape.heads,
            "stack": each.shape.stack,
            "neurons of a query": each.shape.neurons,
        }
        for each in (model, other)
    )
    differ = [name for name in one if one[name] != two[name]]
    if differ:
        actual, wanted = (", ".join(f"{name} {of[name]}" for name in differ) for of in (two, one))
        raise ModelError(
            f"the control {place!r} has {actual}; wanted the shape of {model.name!r}: {wanted}; "
            "give a model of that shape, --control random, or --control none"
        )
    if other.limit < model.limit:
        raise InputError(
            f"the control {place!r} reads inputs of at most {other.limit} tokens; wanted "
            f"{model.limit}, as {model.name!r}: give another model, or --max-length {other.limit}"
        )
