"""Which class is a map of, as a small convolutional network sees it?

Eight convolutional layers with ReLU, as Kovaleva et al. (2019, §4.1) say of theirs; sizes, pooling
and group normalisation (which no other map of a batch changes) are ours: nothing more is published.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from headscope.patterns.classes import NAMES

GROUPS = 4  # of channels that are normalised together
# (channels, stride) of each layer: 32 × 32 pixels to 4 × 4.
LAYERS = ((16, 1), (16, 2), (32, 1), (32, 2), (48, 1), (48, 2), (64, 1), (64, 1))


class Classifier(nn.Module):
    """[map, 2, SIDE, SIDE] as `resize.seen` gives them -> [map, class] logits."""

    def __init__(self, layers: Iterable[tuple[int, int]] = LAYERS) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        before = 2
        for channels, stride in layers:
            parts.append(nn.Conv2d(before, channels, 3, stride=stride, padding=1))
            parts.append(nn.GroupNorm(GROUPS, channels))
            parts.append(nn.ReLU())
            before = channels
        self.layers = nn.Sequential(*parts)
        self.head = nn.Linear(before, len(NAMES))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Logits; `softmax(-1)` of them is the confidence."""
        features = self.layers(pictures).mean((2, 3))  # [map, channel]
        logits: torch.Tensor = self.head(features)
        return logits
