"""Computes the features of a probe: attention between words, or hidden states of words."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from transformers import PreTrainedModel

from headscope.experiments.probes.resumable_training import drawn_with
from headscope.experiments.probes.trees import TreeSentence
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.model.model import Model, run_network, show_layers
from headscope.model.placement import tensor_of
from headscope.model.weights import parameters_sha256

LARGEST = float(np.finfo(np.float16).max)
Features = npt.NDArray[np.float16]
Shape = tuple[int, ...]
Extract = Callable[[Sequence[TreeSentence]], list[Features]]


def attention_shape(sentence: TreeSentence, model: Model) -> Shape:
    """[word + 2, word + 2, unit]: first special token, the words, last special token."""
    side = len(sentence) + 2
    return side, side, model.shape.layers * model.shape.heads


def hidden_shape(sentence: TreeSentence, model: Model) -> Shape:
    """[layer + 1, word, neuron]: the embeddings, then the output of every layer."""
    return model.shape.depth + 1, len(sentence), model.network.config.hidden_size


def attention_of(model: Model, pieces: str) -> Extract:
    """A function from sentences of one batch to their maps, see `attention_shape`.

    pieces  attention from a word of several tokens, as `Words.maps`

    Place 0 is the special token before the words and the last place the one behind them, as far as
    the tokenizer adds them; else there are zeros.
    """
    heads, units = model.shape.heads, model.shape.layers * model.shape.heads

    def extract(sentences: Sequence[TreeSentence]) -> list[Features]:
        batch = model.batch([sentence.example for sentence in sentences])
        chosen = [_places(batch, row, s) for row, s in enumerate(sentences)]
        out = [torch.zeros(len(at), len(at), units, dtype=torch.float16) for at, _ in chosen]

        def look(view: LayerView) -> None:
            maps = view.word_maps(batch, pieces=pieces)  # [example, head, place, place]
            start = view.index * heads
            for row, (at, there) in enumerate(chosen):
                part = maps[row][:, at][:, :, at] * there  # [head, word + 2, word + 2]
                out[row][..., start : start + heads] = part.permute(1, 2, 0)  # [.., .., head]

        show_layers(model, batch, look)
        return [maps.numpy() for maps in out]

    return extract


def hidden_of(model: Model) -> Extract:
    """A function from sentences of one batch to hidden states, see `hidden_shape`.

    A word's vector is the mean over its tokens (Hewitt and Manning 2019).
    """

    def extract(sentences: Sequence[TreeSentence]) -> list[Features]:
        batch = model.batch([sentence.example for sentence in sentences])
        with torch.inference_mode():
            output = run_network(model.network, *batch.inputs, output_hidden_states=True)
        states = torch.stack(output.hidden_states).float().cpu().numpy()  # [layer+1, row, token, d]
        features = []
        for row, sentence in enumerate(sentences):
            tokens = len(sentence.example)
            member = batch.words.of_token[row, :tokens] == sentence.place[:, None]  # [word, token]
            mean = member / member.sum(1, keepdims=True)
            states_of_words = np.einsum("wt,ltd->lwd", mean, states[:, row, :tokens])
            features.append(np.clip(states_of_words, -LARGEST, LARGEST).astype(np.float16))
        return features

    return extract


def _places(batch: Batch, row: int, sentence: TreeSentence) -> tuple[torch.Tensor, torch.Tensor]:
    """[word + 2] positions of the first special token, the words and the last special token; [word
    + 2, word + 2] whether both exist.
    """
    last = int(batch.words.count[row]) - 1
    at = np.concatenate([[0], sentence.place, [last]])
    special = batch.words.number[row] < 0
    there = np.ones(len(at), bool)
    there[0], there[-1] = special[0], special[last] and last > 0
    both = there[:, None] & there[None]
    device = batch.mask.device
    return torch.from_numpy(at).to(device), torch.from_numpy(both).to(device)


def randomised(model: Model, *, seed: int) -> Model:
    """The same network with weights at random initialisation.

    Kept are all embeddings: of words, of positions, and of segments, of which single sentences use
    one (Clark et al. 2019, §5, name words and positions).
    """
    with drawn_with(seed, "random model"):
        network: PreTrainedModel = type(model.network)(copy.deepcopy(model.network.config))
    moved: Any = network  # whose `to` is typed for no call
    moved.to(device=model.device, dtype=model.network.dtype).eval()
    with torch.no_grad():
        for name, module in model.network.named_modules():
            if isinstance(module, nn.Embedding):
                fresh = network.get_submodule(name)
                assert isinstance(fresh, nn.Embedding)
                fresh.weight.copy_(tensor_of(module, "weight"))
    return Model(network, model.tokenizer, model.name, "", parameters_sha256(network))
