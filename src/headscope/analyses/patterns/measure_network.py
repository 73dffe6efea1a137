"""Which class is a map of, as a small convolutional network sees it, whatever the map's size?

The network sees two pictures of 64 × 64: square roots of the weights as shares of the largest,
pooled by the largest and by the mean. The largest keeps thin diagonals of long inputs, the mean
keeps what is broad. Cell (r, c) pools rows ⌊rn/64⌋ to ⌈(r+1)n/64⌉ and columns alike, so that a
small map is enlarged.

Eight convolutional layers with ReLU, as Kovaleva et al. (2019, §4.1) say of theirs; sizes, pooling
and group normalisation (which no other map of a batch changes) are ours: nothing more is published.

A classifier is a folder with `weights.safetensors` and `card.json`; headscope brings one.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn.functional import adaptive_avg_pool2d, adaptive_max_pool2d, conv2d, group_norm

from headscope.analyses.patterns.classes import NAMES
from headscope.analyses.patterns.classifier_files import ClassifierFiles
from headscope.model.kernels import compiled, threaded

SIDE = 64
Seen = npt.NDArray[np.uint8]


def seen(maps: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """[map, 2, SIDE, SIDE] from 0 to 1; maps [map, query, key], without padding.

    out  where to write them; None: new memory
    """
    pictures = maps.new_empty(len(maps), 2, SIDE, SIDE) if out is None else out
    if compiled(maps):
        _pool(maps.contiguous().numpy(), SIDE, pictures.numpy())
        return pictures
    largest = maps.amax((1, 2), keepdim=True).clamp_min(torch.finfo(maps.dtype).tiny)
    roots = (maps / largest).clamp_min(0).sqrt()[:, None]  # [map, 1, query, key]
    pooled = [pool(roots, SIDE) for pool in (adaptive_max_pool2d, adaptive_avg_pool2d)]
    return torch.cat(pooled, dim=1, out=pictures)  # [map, picture, row, column]


def seen_bytes(maps: npt.NDArray[np.floating]) -> Seen:
    """The same in bytes, as the labelled set keeps it; maps [map, query, key]."""
    weights = torch.from_numpy(np.ascontiguousarray(maps, np.float32))
    pictures: Seen = (seen(weights) * 255).round().to(torch.uint8).numpy()
    return pictures


@threaded(lambda maps, *_: len(maps))
def _pool(  # type: ignore[no-untyped-def]
    begin, stop, maps, side, out
):
    """Both pictures of every map: every root once, then down the columns and along the rows.

    Torch's pools take many times as long on the host.
    """
    n = maps.shape[1]
    first, after = np.empty(side, np.int64), np.empty(side, np.int64)
    for cell in range(side):
        first[cell], after[cell] = cell * n // side, -(-(cell + 1) * n // side)
    for at in range(begin, stop):
        scale = np.float32(1) / max(maps[at].max(), np.float32(1.1754944e-38))
        roots = np.empty((n, n), np.float32)
        for r in range(n):
            for c in range(n):
                roots[r, c] = np.sqrt(max(maps[at, r, c] * scale, np.float32(0)))
        most, total = np.empty(n, np.float32), np.empty(n, np.float32)
        for row in range(side):
            most[:] = roots[first[row]]
            total[:] = roots[first[row]]
            for r in range(first[row] + 1, after[row]):
                for c in range(n):
                    most[c] = max(most[c], roots[r, c])
                    total[c] += roots[r, c]
            rows = after[row] - first[row]
            for column in range(side):
                largest, whole = most[first[column]], total[first[column]]
                for c in range(first[column] + 1, after[column]):
                    largest = max(largest, most[c])
                    whole += total[c]
                out[at, 0, row, column] = largest
                cells = np.float32(rows * (after[column] - first[column]))
                out[at, 1, row, column] = whole / cells


GROUPS = 4  # of channels that are normalised together
DROPPED = 0.2  # share of the features that a step of learning goes without
# (channels, stride) of each layer: 64 × 64 pixels to 4 × 4.
LAYERS = ((16, 2), (16, 1), (32, 2), (32, 1), (48, 2), (48, 1), (64, 2), (64, 1))


class Classifier(nn.Module):
    """[map, 2, SIDE, SIDE] as `seen` gives them -> [map, class] logits."""

    def __init__(self, layers: Iterable[tuple[int, int]] = LAYERS) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        before = 3
        for channels, stride in layers:
            convolution = nn.Conv2d(before, channels, 3, stride=stride, padding=1)
            parts += [convolution, nn.GroupNorm(GROUPS, channels), nn.ReLU(inplace=True)]
            before = channels
        self.layers = nn.Sequential(*parts)
        self.head = nn.Sequential(nn.Dropout(DROPPED), nn.Linear(2 * before, len(NAMES)))

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        """Logits; `softmax(-1)` of them is the confidence."""
        # What a map has beyond the mean of its columns, as a share of the most: a line or a block
        # under dark columns is faint; here it is not.
        mean = pictures[:, 1:]  # [map, 1, row, column]
        more = (mean - mean.mean(2, keepdim=True)).clamp_min(0)
        beside = more / more.amax((2, 3), keepdim=True).clamp_min(1e-6)
        maps = torch.cat([pictures, beside], dim=1)
        # Not by calling the modules one by one, which takes a tenth more time.
        layers: list[Any] = list(self.layers)
        for conv, norm in zip(layers[::3], layers[1::3], strict=True):
            maps = conv2d(maps, conv.weight, conv.bias, conv.stride, conv.padding)
            maps = group_norm(maps, GROUPS, norm.weight, norm.bias, norm.eps).relu_()
        features = torch.cat([maps.mean((2, 3)), maps.amax((2, 3))], dim=1)  # [map, feature]
        logits: torch.Tensor = self.head(features)
        return logits


FILES = ClassifierFiles(
    "weights.safetensors", "card.json", "headscope patterns train --columns any"
)


def read_classifier(folder: str | Path = "") -> tuple[Classifier, str]:
    """A classifier ready to use, and the SHA-256 of its weights; see `ClassifierFiles.read`."""
    return FILES.read(folder, lambda tensors: Classifier())
