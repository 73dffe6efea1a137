"""Load a model, with its size, its special tokens and the hash of its weights.

`load` takes a hub id, a local folder, an already loaded model, or `demo` (all-MiniLM-L6-v2, from
the package that `make atlas` installs, or from the hub). Weights are read from safetensors only,
remote code stays off unless it is asked for, and what was loaded is recorded by hash.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
import transformers
from torch import nn

from headscope.core.display import facts_table
from headscope.core.progress import phase
from headscope.core.whole_file import file_sha256
from headscope.corpus.document import Example
from headscope.corpus.tokenizer import unusable
from headscope.errors import ModelError, memory_told, told_as
from headscope.model import doubts, identity
from headscope.model.batch import Batch
from headscope.model.checkpoint import FITS, Checkpoint, check_tokenizer, quietly
from headscope.model.decoder_stack import DECODER, READS, ReadsByDecoder, by_decoder
from headscope.model.families.embeddings import learned_positions
from headscope.model.families.sites import other_layers, registered
from headscope.model.instrument import Instrument
from headscope.model.layer import LayerView
from headscope.model.placement import DeviceMap, Placement, input_device
from headscope.model.request import DEMO, FIELDS, Limit, limit_of
from headscope.model.shape import Shape
from headscope.model.vocabulary import Vocabulary, bare, vocabulary_of
from headscope.model.weights import parameters_sha256, refuse_incomplete, refuse_not_finite
from headscope.model.wrapped import network_in

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from headscope.model.request import Stack

__all__ = ["DEMO_SHA256", "Model", "Shape", "file_sha256", "forward", "load"]

DEMO_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# What a network that wants more than text raises when it is run on text alone.
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError)
UNREADABLE = (*_FAULTS, RuntimeError, TypeError, ValueError)


@dataclass(eq=False)
class Model:
    """A loaded model with its tokenizer and its papers.

    name       as the user gave it
    revision   commit of the hub's repository; "" for a local folder or a loaded object
    sha256     of the weights file (of the parameters, for a loaded object)
    load_options   with which `load(name, …)` gives the same again; None for a loaded object
    doubts     what of the checkpoint was not read, in words
    """

    network: PreTrainedModel
    tokenizer: Any
    name: str
    revision: str
    sha256: str
    load_options: dict[str, Any] | None = field(default=None, repr=False)
    doubts: tuple[str, ...] = field(default=(), repr=False, kw_only=True)

    @property
    def head_options(self) -> dict[str, Any]:
        """With which others load the same checkpoint with its head; {} for a loaded object."""
        known = self.load_options or {}
        return {name: one for name, one in known.items() if name not in ("tp_plan", "stack")}

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What makes doubtful that this is the network that its files say, in words."""
        norms, heads = doubts.write_norms(self._identity), self.shape.heads
        shared = getattr(self.network.config, "num_key_value_heads", None) not in (None, heads)
        vocabulary = doubts.vocabulary_doubt(self.tokenizer, self.network)
        return (*self.doubts, *filter(None, [vocabulary, doubts.heads_doubt(norms, shared=shared)]))

    @property
    def architecture(self) -> str:
        """The class of the network, say "BertModel"."""
        return type(self.network).__name__

    @property
    def device(self) -> torch.device:
        """Where the network wants its inputs."""
        return input_device(self.network)

    @property
    def limit(self) -> int:
        """The longest input, in tokens, special ones included."""
        return self.positions.tokens

    @property
    def positions(self) -> Limit:
        """`limit`, and what sets it."""
        config = {name: getattr(self.network.config, name, None) for name in FIELDS}
        most = getattr(self.tokenizer, "model_max_length", None)
        return limit_of(config, most, learned=learned_positions(self.network))

    @property
    def start(self) -> int | None:
        """The token that every input starts with where a decoder beside an encoder reads it."""
        return self.network.start if isinstance(self.network, ReadsByDecoder) else None

    @property
    def has_segments(self) -> bool:
        """Whether the network tells a first from a second segment."""
        return int(getattr(self.network.config, "type_vocab_size", 0) or 0) > 1

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Which token ids are the special and punctuation categories."""
        return vocabulary_of(self.tokenizer)

    @cached_property
    def special_tokens(self) -> dict[str, str]:
        """The opening and separating tokens by category, as far as the tokenizer adds them."""
        ids = {"cls": self.vocabulary.cls, "sep": self.vocabulary.sep}
        return {
            name: self.tokenizer.convert_ids_to_tokens(token)
            for name, token in ids.items()
            if token is not None
        }

    def batch(self, examples: Sequence[Example], *, replicates: int = 0, **groups: Any) -> Batch:
        """Examples as a batch on the network's device; `groups` of documents as in `Batch.of`."""
        place: dict[str, Any] = {"device": self.device, "limit": self.limit}
        return Batch.of(examples, self.vocabulary, replicates=replicates, **groups, **place)

    def tokens(self, ids: Iterable[int]) -> tuple[str, ...]:
        """Tokens as the vocabulary has them, without the sign for a space before them."""
        names = self.tokenizer.convert_ids_to_tokens([int(token) for token in ids])
        return tuple(bare(name) or name for name in names)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The attention stacks, found by running the network once on two tokens."""
        layers: list[LayerView] = []
        with Instrument(self.network, observers=[layers.append]):
            ids = torch.zeros((1, 2), dtype=torch.long, device=self.device)
            forward(self.network, ids, torch.ones_like(ids))
        return {
            stack: self._shape([view for view in layers if view.stack == stack])
            for stack in dict.fromkeys(view.stack for view in layers)
        }

    def _shape(self, layers: list[LayerView]) -> Shape:
        identity.refuse_part(self.network, layers[-1])
        last, sinks = layers[-1], any(view.sinks for view in layers)
        paths = list(dict.fromkeys(view.site.path for view in layers))
        numbers, others = other_layers(self.network, paths, len(layers))
        allows = frozenset.intersection(*(view.offers for view in layers))
        allows |= {"whole_rows"} if not sinks else frozenset()
        with evaluating(self.network):
            beside = bool(others) or identity.mixes_beside_attention(self.network, forward)
        allows |= frozenset() if beside else {"every_layer"}
        neurons = 0 if last.queries is None else last.queries.shape[-1]
        size, rest = (len(layers), last.attention.shape[1]), tuple(others.items())
        reads = READS * isinstance(self.network, ReadsByDecoder)
        return Shape(last.stack, *size, allows, neurons, numbers, rest, sinks, reads)

    @property
    def fallback(self) -> bool:
        """Whether attention is read from eager maps, outside transformers' registry."""
        return not registered(self.network)

    def identity_error(self) -> float | None:
        """Largest |Σ_h Σ_j α f(x_j) + b_O - output| over the layers, for a few tokens.

        None where the output projection is unknown. Far from 0 (say 1e-3) it would mean that what
        headscope takes for values or W_O is not what the network uses.
        """
        return max((error for _, error, _ in self._identity()), default=None)

    @cached_property
    def identity_fault(self) -> str:
        """Where that is more than rounding, in words: such a layer has no norms; else ""."""
        return identity.refuse_unlike(self._identity())

    def _identity(self) -> list[tuple[LayerView, float, float]]:
        ids = self.tokenizer("The cat sat, as cats do.", return_tensors="pt")["input_ids"]
        ids = ids.to(self.device)
        run = partial(forward, self.network, ids, torch.ones_like(ids))
        with evaluating(self.network):
            return identity.identity_errors(self.network, self.shape.stack, run)

    @property
    def allows(self) -> frozenset[str]:
        """What analyses may need of this model: a subset of `known_analyses.NEEDS`."""
        return self.shape.allows - ({"projection"} if self.identity_fault else frozenset())

    @property
    def shape(self) -> Shape:
        """The stack an atlas looks at: the encoder where there is one and `load` was not told
        otherwise, else the decoder.
        """
        one = DECODER if isinstance(self.network, ReadsByDecoder) else "encoder"
        return self.shapes.get(one) or self.shapes[DECODER]

    def __repr__(self) -> str:
        s = self.shape
        return (
            f"<headscope.Model {self.name}: {self.architecture}, {s.size}, "
            f"sha256 {self.sha256[:12]}>"
        )

    def _repr_html_(self) -> str:
        s, tokens = self.shape, ", ".join(self.special_tokens.values()) or "none"
        rows = {
            "architecture": f"{self.architecture}, {s.size} ({s.stack})",
            "revision": self.revision or "local",
            "weights, sha256": self.sha256,
            "special tokens": tokens,
            "longest input": f"{self.limit} tokens: {self.positions.source}",
            **({"doubtful": "; ".join(self.notes)} if self.notes else {}),
        }
        name = self.name.encode("utf-8", "replace").decode()
        return facts_table(f"headscope model {name}", rows)


_LOOKED_AT = WeakKeyDictionary[nn.Module, AbstractContextManager[Any]]()
_ONE = threading.Lock()  # a lock is made at a time


@contextmanager
def evaluating(network: PreTrainedModel) -> Iterator[None]:
    """Inside, nothing drops out and other threads wait; training modes come back afterwards."""
    with _ONE:
        looked_at = _LOOKED_AT.setdefault(network, threading.RLock())
    with looked_at:
        training = [module for module in network.modules() if module.training]
        network.train(False)
        try:
            yield
        finally:
            for module in training:
                module.training = True


def forward(
    network: PreTrainedModel,
    input_ids: torch.Tensor,
    mask: torch.Tensor,
    segment_ids: torch.Tensor | None = None,
    *,
    keep: bool = True,
) -> Any:
    """One pass of [example, token] without gradients; an encoder-decoder runs its encoder only, or
    all of it where it is read by its decoder.

    keep  whether a decoder may keep the keys and values of all layers, as it does by itself
    """
    with torch.inference_mode():
        return run_network(network, input_ids, mask, segment_ids, keep=keep)


def show_layers(model: Model, batch: Batch, observer: Callable[[LayerView], None]) -> None:
    """Run one batch in evaluation mode and show the observer every attention layer."""
    network, stacks = model.network, [model.shape.stack]
    with evaluating(network), Instrument(network, observers=[observer], stacks=stacks):
        forward(network, *batch.inputs)


def run_network(
    network: PreTrainedModel,
    input_ids: torch.Tensor,
    mask: torch.Tensor,
    segment_ids: torch.Tensor | None = None,
    *,
    keep: bool = True,
    **more: Any,
) -> Any:
    """The same, with gradients where somebody asks for them; `more` goes to the network."""
    if not keep and getattr(network.config, "use_cache", False):
        more["use_cache"] = False
    whole = isinstance(network, ReadsByDecoder) or not network.config.is_encoder_decoder
    runner: Any = network if whole else network.get_encoder()
    inputs: dict[str, torch.Tensor] = {"input_ids": input_ids, "attention_mask": mask.long()}
    if segment_ids is not None and int(getattr(network.config, "type_vocab_size", 0) or 0) > 1:
        inputs["token_type_ids"] = segment_ids
    return runner(**inputs, **more)


@phase("load")
def load(
    model: str | Path | PreTrainedModel | Model | Any = "demo",
    *,
    tokenizer: Any = None,
    revision: str | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    device_map: DeviceMap = None,
    tp_plan: str | None = None,
    trust_remote_code: bool = False,
    stack: Stack | None = None,
) -> Model:
    """A model ready to be looked at, in evaluation mode.

    model      "demo", "demo-decoder", a hub id, the address of its page, a folder, a loaded
               transformers model, a pipeline or another wrapper with one as its `model` or
               `original_model`; a `Model` stays as it is
    tokenizer  needed with a loaded model; else taken from the same place
    revision   branch, tag or commit on the hub
    dtype      of the weights: "float32" (default: what the numbers were checked in), "float64",
               "bfloat16", "float16", "auto" (the checkpoint's own); statistics are float32 or wider
    device_map "auto", or a map for accelerate: several devices, offloaded modules; see `Placement`
    tp_plan    "auto" under torchrun: its processes share the weights, and each sees all heads
    stack      of an encoder-decoder, which one is looked at: "decoder", or its encoder (default);
               the decoder reads each text, and its encoder the same one
    raises     ModelError: not found, no safetensors, tokenizer and model that do not fit, a demo
               model with another hash, a family that cannot be read, or without that stack
    """
    if isinstance(model, Model):
        return of_stack(model, stack)
    if (network := network_in(model)) is not None:
        return of_stack(_adopt(network, tokenizer or getattr(model, "tokenizer", None)), stack)
    if not isinstance(model, str | Path):
        fault = f"found a {type(model).__name__} for a model"
        raise ModelError(f"{fault}; wanted 'demo', a hub id, a folder, or a loaded one")
    name, where = str(model), Placement(device, device_map, tp_plan)
    source = Checkpoint(name, revision=revision, trust_remote_code=trust_remote_code)
    with quietly():
        own = tokenizer or source.tokenizer
        network, missing = source.network(transformers.AutoModel, dtype, where)
    name = source.name
    refuse_incomplete(name, missing)
    again: dict[str, Any] | None = None
    if tokenizer is None:
        again = {k: source.options[k] for k in ("revision", "trust_remote_code")}
        again |= {"dtype": dtype, "device": device, "device_map": device_map, "tp_plan": tp_plan}
    digest = source.weights_sha256(network)
    if name == DEMO and digest != DEMO_SHA256:
        raise ModelError(
            f"the demo model's weights hash to {digest}, wanted {DEMO_SHA256}: refusing to use "
            "them; reinstall the demo package with `make atlas`"
        )
    unread = source.doubts(network)
    made = checked(Model(network, own, name, source.commit, digest, again, doubts=unread))
    return of_stack(made, stack)


def of_stack(model: Model, stack: Stack | None) -> Model:
    """The model with this stack looked at, see `load`; None: as it is."""
    if stack is None or stack == model.shape.stack:
        return model
    if stack != DECODER:
        raise ModelError(
            f"{model.name!r} is read by its decoder; wanted --stack decoder, or none, or an "
            "encoder-decoder that is loaded for its encoder"
        )
    network = by_decoder(model.network, model.tokenizer, model.name)
    again = model.load_options and {**model.load_options, "stack": stack}
    return checked(replace(model, network=network, load_options=again))


def _adopt(network: PreTrainedModel, tokenizer: Any) -> Model:
    if tokenizer is None:
        raise ModelError(
            f"got a loaded {type(network).__name__} without its tokenizer; "
            "pass it too: load(model, tokenizer=tokenizer)"
        )
    name = network.config.name_or_path or type(network).__name__
    refuse_not_finite(name, network)
    return checked(Model(network, tokenizer, name, "", parameters_sha256(network)))


def checked(model: Model) -> Model:
    """The model; raises ModelError unless tokenizer and network fit and attention can be read."""
    embeddings = model.network.get_input_embeddings()
    if not isinstance(embeddings, nn.Embedding):
        raise ModelError(
            f"{model.name!r}: {type(model.network).__name__} does not read tokens "
            f"(its input layer is {type(embeddings).__name__}); wanted a model of text"
        )
    check_tokenizer(model.name, model.tokenizer, embeddings.num_embeddings)
    with told_as(partial(unusable, model.tokenizer)):
        _ = model.vocabulary
    try:
        with memory_told(FITS):
            _ = model.shape  # runs the network: an unreadable family is refused here, by name
            _ = model.identity_fault
    except UNREADABLE as error:
        raise ModelError(
            f"{model.name!r}: {model.architecture} cannot be run on text alone "
            f"({type(error).__name__}: {str(error)[:200]}); wanted a text encoder or decoder"
        ) from error
    return model
