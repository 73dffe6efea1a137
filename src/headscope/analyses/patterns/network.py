"""Which class is a map of, as a small convolutional network sees it?

Eight convolutional layers with ReLU, as Kovaleva et al. (2019, §4.1) say of theirs; sizes, pooling
and group normalisation (which no other map of a batch changes) are ours: nothing more is published.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from headscope.analyses.patterns.classes import NAMES

GROUPS = 4  # of channels that are normalised together
DROPPED = 0.2  # share of the features that a step of learning goes without
# (channels, stride) of each layer: 64 × 64 pixels to 4 × 4.
LAYERS = ((16, 2), (16, 1), (32, 2), (32, 1), (48, 2), (48, 1), (64, 2), (64, 1))


class Classifier(nn.Module):
    """[map, 2, SIDE, SIDE] as `resize.seen` gives them -> [map, class] logits."""

    def __init__(self, layers: Iterable[tuple[int, int]] = LAYERS) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        before = 3
        for channels, stride in layers:
            parts.append(nn.Conv2d(before, channels, 3, stride=stride, padding=1))
            parts.append(nn.GroupNorm(GROUPS, channels))
            parts.append(nn.ReLU(inplace=True))
            before = channels
        self.layers = nn.Sequential(*parts)
        self.head = nn.Sequential(nn.Dropout(DROPPED), nn.Linear(2 * before, len(NAMES)))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Logits; `softmax(-1)` of them is the confidence."""
        found = self.layers(torch.cat([pictures, _beside_columns(pictures)], dim=1))
        features = torch.cat([found.mean((2, 3)), found.amax((2, 3))], dim=1)  # [map, feature]
        logits: torch.Tensor = self.head(features)
        return logits


def _beside_columns(pictures: torch.Tensor) -> torch.Tensor:
    """[map, 1, SIDE, SIDE] what a map has beyond the mean of its columns, as a share of the most.

    A line or a block under dark columns is faint; here it is not.
    """
    mean = pictures[:, 1:]  # [map, 1, row, column]
    more = (mean - mean.mean(2, keepdim=True)).clamp_min(0)
    return more / more.amax((2, 3), keepdim=True).clamp_min(1e-6)
