"""To which class of Kovaleva et al. (2019, §4.1) does a map belong?

A column makes a map vertical where it stands on a special token or on punctuation, and squares are
blocks where they end with a sentence of a pair. So a map is classified not by its picture alone but
by numbers that know which columns are marked and where the second sentence begins (`map_features`).
A few small networks read them; their mean, sharpened or flattened by a temperature, is the
probability of each class, and below a threshold a map has none. Temperature and threshold come from
maps that the networks had not learned from.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import nn

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.classifier_files import ClassifierFiles
from headscope.analyses.patterns.map_features import COUNT, Features
from headscope.core.accumulators import Float64

MEMBERS, HIDDEN = 10, (64, 32)
FARTHEST = 5.0  # standard deviations: what is rarer counts as this
FILES = ClassifierFiles("special.safetensors", "special.json", "headscope patterns train")


class MarkedClassifier(nn.Module):
    """[map, feature] -> [map, class] probabilities: the mean of several small networks."""

    center: torch.Tensor
    spread: torch.Tensor
    temperature: torch.Tensor
    threshold: torch.Tensor

    def __init__(self, members: int = MEMBERS, hidden: Sequence[int] = HIDDEN) -> None:
        super().__init__()
        sizes = (COUNT, *hidden, len(NAMES))
        self.weights = nn.ParameterList(
            nn.Parameter(torch.zeros(members, a, b)) for a, b in pairwise(sizes)
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(members, 1, b)) for b in sizes[1:])
        for name, value in (("center", 0.0), ("spread", 1.0)):
            self.register_buffer(name, torch.full((COUNT,), value))
        for name, value in (("temperature", 1.0), ("threshold", 0.0)):
            self.register_buffer(name, torch.tensor(value))

    def scaled(self, features: torch.Tensor) -> torch.Tensor:
        """[map, feature] in standard deviations of the maps that were learned from."""
        return ((features - self.center) / self.spread).clamp(-FARTHEST, FARTHEST)

    def logits(self, scaled: torch.Tensor, *, dropped: float = 0.0) -> torch.Tensor:
        """[member, map, class]; scaled [map, feature], or [member, map, feature]."""
        values = scaled.expand(len(self.weights[0]), *scaled.shape[-2:])
        for at, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            if at:
                values = nn.functional.dropout(values.relu(), dropped, training=dropped > 0)
            values = torch.baddbmm(bias, values, weight)
        return values

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """[map, class] probabilities, float64."""
        each = self.logits(self.scaled(features)).double().softmax(-1)
        mean: torch.Tensor = each.mean(0).clamp_min(1e-9).log() / self.temperature
        return mean.softmax(-1)

    def classify(self, features: Features) -> Float64:
        """[map, class] probabilities."""
        with torch.inference_mode():
            return np.asarray(self(torch.from_numpy(features)).numpy(), np.float64)


def read_marked(folder: str | Path = "") -> tuple[MarkedClassifier, str]:
    """A classifier ready to use, and the SHA-256 of its weights; see `ClassifierFiles.read`."""

    def build(tensors: Mapping[str, torch.Tensor]) -> MarkedClassifier:
        shapes = [tensors[name].shape for name in sorted(tensors) if name.startswith("weights.")]
        return MarkedClassifier(shapes[0][0], [shape[2] for shape in shapes[:-1]])

    return FILES.read(folder, build)
