"""Language models with their head: their losses, which may be differentiated, and what is masked.

A loss is a number per example. The sum over the examples of a batch is differentiated, so an
example's gradients do not depend on its batch. Examples are named by their indices. Beside its
losses an objective has `answers`, the probability of the right answer (which AttAttr attributes),
and `asking`, a context in which the network returns only the logits that the loss needs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.nn import functional
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    PreTrainedModel,
)

from headscope.core.accumulators import Ints, generator
from headscope.core.whole_file import sha256_of
from headscope.corpus.document import Example
from headscope.errors import CorpusError, ModelError
from headscope.model import checkpoint, weights
from headscope.model.model import Model, checked
from headscope.model.placement import DeviceMap, Placement

Ids = Ints
ROWS = 64  # whose log-probabilities are held at once: vocabularies are large


@dataclass(frozen=True)
class TokenLoss:
    """A language model's loss: cross-entropy in nats, the mean over an example's predicted
    positions.

    The right answer is scored by the mean probability of the right tokens.

    name    "masked-language-model loss" or "causal language-model loss"
    asked   by example, the places [place] at which a token is predicted
    right   by example, the ids [place] of the right ones
    """

    name: str
    asked: Sequence[Ids]
    right: Sequence[Ids]
    units: str = "nats"

    @property
    def digest(self) -> str:
        """Hex sha256 over the predicted positions and their tokens."""
        pairs = zip(self.asked, self.right, strict=True)
        return sha256_of(
            places.tobytes() + b"\x1f" + ids.tobytes() + b"\x1e" for places, ids in pairs
        )

    def read(
        self,
        network: PreTrainedModel,
        run: Callable[[], Any],
        places: Sequence[int],
        *,
        seen_by: AbstractContextManager[Any] | None = None,
    ) -> tuple[Any, torch.Tensor]:
        """The network's answer, with a single position's logits, and the cross-entropies [predicted
        position of any row], in float32 or wider. Never are all logits held.

        run      runs the network on the inputs of these places
        seen_by  a context for the pass through the layers
        """
        answer, blocks = _logits_in_blocks(network, run, *self._asked(places), seen_by)
        return answer, self._entropies(map(wide, blocks), places)

    def losses(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row] losses; logits [predicted position of any row, vocabulary]."""
        return self.means(self._each(logits, places), places)

    def answers(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row] mean probability of the right tokens; logits as in `losses`."""
        return self.means(torch.exp(-self._each(logits, places)), places)

    @contextmanager
    def asking(self, network: PreTrainedModel, places: Sequence[int]) -> Iterator[None]:
        """Inside the context the language-model head computes only the predicted positions."""
        head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
        if head is None:
            raise ModelError(
                f"{type(network).__name__} does not say where its language-model head is; wanted "
                "one with output embeddings"
            )
        rows, columns = self._asked(places)

        def chosen(_module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
            return (args[0][rows, columns], *args[1:])  # [asked place of any row, model]

        hook = head.register_forward_pre_hook(chosen)
        try:
            yield
        finally:
            hook.remove()

    def _asked(self, places: Sequence[int]) -> tuple[Ids, Ids]:
        """Row and column of each predicted position of any row."""
        rows = np.repeat(np.arange(len(places)), [len(self.asked[at]) for at in places])
        return rows, np.concatenate([self.asked[at] for at in places])

    def _each(self, logits: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        count = sum(len(self.right[at]) for at in places)
        if logits.shape[:-1] != (count,):
            raise ModelError(
                f"the language-model head gave {tuple(logits.shape)} for {count} requested "
                "places; please report this model"
            )
        return self._entropies(torch.split(logits, ROWS), places)

    def _entropies(self, blocks: Iterable[torch.Tensor], places: Sequence[int]) -> torch.Tensor:
        right = torch.from_numpy(np.concatenate([self.right[at] for at in places]))
        parts = zip(blocks, torch.split(right, ROWS), strict=True)
        return torch.cat(
            [
                functional.cross_entropy(logits, some.to(logits.device), reduction="none")
                for logits, some in parts
            ]
        )

    def means(self, values: torch.Tensor, places: Sequence[int]) -> torch.Tensor:
        """[row] means of what each of its predicted positions has."""
        parts = torch.split(values, [len(self.asked[at]) for at in places])
        return torch.stack([part.mean() for part in parts])


@contextmanager
def last_logits(network: PreTrainedModel) -> Iterator[None]:
    """Inside the context the output head, if there is one, computes the last position alone: of
    large vocabularies the logits of a batch take gigabytes, and here nobody reads the others.
    """
    head: Any = network.get_output_embeddings()  # type: ignore[no-untyped-call]
    if head is None:
        yield
        return
    hook = head.register_forward_pre_hook(lambda _m, args: (args[0][..., -1:, :], *args[1:]))
    try:
        yield
    finally:
        hook.remove()


def _logits_in_blocks(
    network: PreTrainedModel,
    run: Callable[[], Any],
    rows: Ids,
    columns: Ids,
    seen_by: AbstractContextManager[Any] | None,
) -> tuple[Any, Iterator[torch.Tensor]]:
    """The network's answer, with a single position's logits, and those of each position
    (row, column) in blocks of ROWS.

    The layers run once. For each block the network runs again from their last hidden states, so
    that all it does behind them is done: norms, the head, caps and scales of logits.
    """
    stem: Any = network.get_decoder()  # type: ignore[no-untyped-call]
    outputs, states = list[Any](), list[torch.Tensor]()

    def keep(_module: Any, _args: Any, output: Any) -> Any:
        hidden = getattr(output, "last_hidden_state", None)  # [row, position, model]
        if hidden is None:
            return output
        states.append(hidden[rows, columns])
        outputs.append(_with_states(output, hidden[:1, :1]))
        return outputs[-1]

    hook = stem.register_forward_hook(keep)
    try:
        with seen_by or nullcontext():
            answer = run()
    finally:
        hook.remove()

    def blocks() -> Iterator[torch.Tensor]:
        for some in torch.split(states[0], ROWS):
            with _answering(stem, _with_states(outputs[0], some[None])):
                yield run().logits[0]

    if outputs:
        return answer, blocks()
    return answer, iter(torch.split(answer.logits[rows, columns], ROWS))  # its states are unknown


def _with_states(output: Any, hidden: torch.Tensor) -> Any:
    return type(output)(**{**output, "last_hidden_state": hidden})


@contextmanager
def _answering(module: Any, output: Any) -> Iterator[None]:
    """Inside the context a module gives this output, whatever it is given."""
    before = vars(module).get("forward")
    module.forward = lambda *_args, **_more: output
    try:
        yield
    finally:
        del module.forward
        if before is not None:
            module.forward = before


def wide(logits: torch.Tensor) -> torch.Tensor:
    """The same in float32 or wider."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


# --- language models, and the tokens that they predict ----------------------------------------

MASKED, CAUSAL = ("MaskedLM", "PreTraining"), ("CausalLM", "LMHead")
WRITTEN = "ForConditionalGeneration", "MTModel"  # T5, BART; Marian
HEADS: dict[str, Any] = {
    "masked": AutoModelForMaskedLM,
    "causal": AutoModelForCausalLM,
    "written": AutoModelForSeq2SeqLM,
}
ASKED, HIDDEN, CHANGED = 0.15, 0.8, 0.1  # shares: of tokens; of those asked


@dataclass(eq=False)
class LanguageModel:
    """A model whose network has a language-model head.

    kind  "masked" or "causal"; of an encoder-decoder, "written"
    """

    model: Model
    kind: str


ModelLike = LanguageModel | Model | str | Path


def load_language_model(
    name: str | Path,
    *,
    device: str = "cpu",
    device_map: DeviceMap = None,
    dtype: str = "float32",
    revision: str | None = None,
    trust_remote_code: bool = False,
    kind: str | None = None,
    tokenizer: Any = None,
) -> LanguageModel:
    """A checkpoint with its language-model head, in evaluation mode.

    kind    as `LanguageModel` has it; None: by the checkpoint, which is no encoder-decoder
    raises  ModelError as `headscope.load`; also without such a head, and, where no kind is given,
            for encoder-decoders
    """
    path, where = str(name), Placement(device, device_map)
    source = checkpoint.Checkpoint(path, revision=revision, trust_remote_code=trust_remote_code)
    with checkpoint.quietly():
        kind = kind or _kind(path, source.config)
        network, missing = source.network(HEADS[kind], dtype, where)
    weights.refuse_incomplete(path, missing)
    digest = source.weights_sha256(network)
    doubts = source.doubts(network)
    words = tokenizer or source.tokenizer
    model = Model(network, words, source.name, source.commit, digest, doubts=doubts)
    return LanguageModel(checked(model), kind)


def with_language_head(model: LanguageModel | Model) -> LanguageModel:
    """A loaded model with its language-model head, which is loaded now where `load` left it out.

    raises  ModelError as `load_language_model`; for a loaded network that has none
    """
    if isinstance(model, LanguageModel):
        return model
    network, own = model.network, model.architecture
    if any(ending in own for ending in (*MASKED, *CAUSAL)):
        return LanguageModel(model, _kind(model.name, network.config, own))
    if model.load_options is None:
        raise ModelError(
            f"found {model.name!r} as a loaded {own}; wanted the network with its language-model "
            "head: load(AutoModelForCausalLM.from_pretrained(…), tokenizer=…)"
        )
    if model not in _WITH_HEAD:
        _WITH_HEAD[model] = load_language_model(model.name, **model.head_options)
    return _WITH_HEAD[model]


_WITH_HEAD = WeakKeyDictionary[Model, LanguageModel]()


def _kind(name: str, config: Any, classes: str = "") -> str:
    """The kind of language model, from the class that the weights were saved from."""
    classes = classes or " ".join(config.architectures or [])
    if config.is_encoder_decoder:
        raise ModelError(
            f"{name!r} is an encoder-decoder ({config.model_type}); wanted an encoder or a decoder"
        )
    for kind, endings in (("masked", MASKED), ("causal", CAUSAL)):
        if any(ending in classes for ending in endings):
            return kind
    raise ModelError(
        f"{name!r} has no language-model head (it is a {classes or 'model of no known class'})\n"
        "wanted a model saved with one, such as gpt2. importance also takes masked ones, such as "
        "bert-base-uncased, and a task that the checkpoint was fine-tuned for: --task NAME --data "
        "FOLDER"
    )


@dataclass(frozen=True)
class AskedTokens:
    """Examples as the model reads them, and the tokens to predict.

    left_out  examples in which nothing can be asked
    """

    examples: list[Example]
    objective: TokenLoss
    left_out: int


def masked(model: Model, examples: Sequence[Example], *, seed: int) -> AskedTokens:
    """Masks tokens for a masked language model; masks depend only on the seed and the example's id.

    raises  ModelError for a tokenizer without a mask token; CorpusError where nothing can be asked
    """
    mask = model.tokenizer.mask_token_id
    if mask is None:
        raise ModelError(
            f"the tokenizer of {model.name!r} has no mask token, and the model is a masked "
            "language model; wanted the tokenizer that it was trained with"
        )
    words = np.setdiff1d(np.arange(len(model.tokenizer)), model.tokenizer.all_special_ids)
    shown, places_of, right = [], [], []
    for example in examples:
        own = np.flatnonzero(~example.special)
        if not len(own):
            continue
        rng = generator(seed, "masked tokens", example.document, example.id)
        places = np.sort(rng.choice(own, max(1, round(ASKED * len(own))), replace=False))
        how, other = rng.random(len(places)), rng.choice(words, len(places))
        ids = example.input_ids.copy()
        ids[places] = np.where(
            how < HIDDEN, mask, np.where(how < HIDDEN + CHANGED, other, ids[places])
        )
        shown.append(replace(example, input_ids=ids))
        places_of.append(places)
        right.append(example.input_ids[places])
    return _told("masked-language-model loss", examples, shown, places_of, right)


def causal(examples: Sequence[Example]) -> AskedTokens:
    """The objective of a causal language model: each token is predicted from those before it."""
    shown = [example for example in examples if len(example) > 1]
    places_of = [np.arange(len(example) - 1) for example in shown]
    right = [example.input_ids[1:] for example in shown]
    return _told("causal language-model loss", examples, shown, places_of, right)


def _told(
    name: str,
    examples: Sequence[Example],
    shown: list[Example],
    places_of: list[Ids],
    right: list[Ids],
) -> AskedTokens:
    if not shown:
        raise CorpusError(
            f"found {len(examples)} inputs, none with a token to predict; wanted text"
        )
    return AskedTokens(shown, TokenLoss(name, places_of, right), len(examples) - len(shown))
