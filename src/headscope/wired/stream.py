"""The residual stream of a wired network: which directions hold which feature.

Every token has the same norm, and its numbers have mean 0 (each coordinate x has a −x beside it, or
all directions are turned at random among those of mean 0), so that LayerNorm and RMSNorm only
multiply by a constant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from headscope.core.accumulators import Float64, generator
from headscope.wired.features import (
    BESIDE,
    JUNK,
    LATE,
    OF_TOKENS,
    ONE,
    OPENING,
    PLACE,
    SEGMENT,
    Feature,
)
from headscope.wired.language import forms

FEW = 12  # places from which on LATE is 1


@dataclass(frozen=True)
class Stream:
    """Where in the stream each feature stands.

    spans       feature name -> its numbers among all codes
    directions  [width, code] unit vectors, orthogonal unless they overlap
    tokens, places, segments  [token | place | segment, code] what embeddings hold
    seed        of the codes that are drawn
    """

    spans: Mapping[str, slice]
    directions: Float64
    tokens: Float64
    places: Float64
    segments: Float64
    seed: int

    @property
    def codes(self) -> int:
        """How many numbers all features have together."""
        return int(self.directions.shape[1])

    @property
    def scale(self) -> float:
        """By what a normalised vector is multiplied to be what it was: norm / √width."""
        whole = (self.tokens + self.places[0] + self.segments[0]) @ self.directions.T
        return float(np.linalg.norm(whole, axis=1).mean() / np.sqrt(len(self.directions)))

    def select(self, feature: Feature) -> Float64:
        """[code, number] reads a feature."""
        span = self.spans[feature.name]
        return np.eye(self.codes)[:, span]

    def embedded(self, table: Float64) -> Float64:
        """[row, width] codes as vectors of the stream."""
        return table @ self.directions.T


def frequencies(places: int) -> int:
    """The number of waves that separate all places."""
    return (places - 1) // 2


def code_width(features: Iterable[Feature], places: int) -> int:
    """How many numbers the features need, with what keeps norms alike."""
    return sum(_width(one, places) for one in _all(features)) + 3


def make_stream(
    features: Iterable[Feature],
    vocabulary: Sequence[str],
    *,
    width: int,
    places: int,
    seed: int,
    turned: bool,
    overlap: float,
) -> Stream:
    """Gives each feature its place, and each token its code.

    vocabulary  token texts by id
    width       of the stream
    places      how many an absolute position embedding has; 0 for none
    turned      directions are drawn at random, else each is a coordinate x and one −x
    overlap     about the cosine of two directions; 0 for orthogonal ones
    """
    wanted, spans, at = _all(features), dict[str, slice](), 0
    for one in wanted:
        spans[one.name] = slice(at, at + _width(one, places))
        at += _width(one, places)
    codes = at + 3  # the last three keep the norms of tokens, places, segments
    tokens = np.zeros((len(vocabulary), codes))
    for one in wanted:
        if one.source == OF_TOKENS and one.code is not None:
            tokens[:, spans[one.name]] = [one.code(t, forms().get(t), seed) for t in vocabulary]
    where, segments = _places(spans, places, codes), _segments(spans, codes)
    for last, table in enumerate((segments, where, tokens), 1):
        squares = (table**2).sum(1)
        table[:, -last] = np.sqrt(squares.max() + 0.5 - squares)
    directions = _directions(width, codes, seed=seed, turned=turned, overlap=overlap)
    return Stream(spans, directions, tokens, where, segments, seed)


def _all(features: Iterable[Feature]) -> list[Feature]:
    by_name = {one.name: one for one in (ONE, JUNK, *features)}
    return [by_name[name] for name in sorted(by_name)]


def _width(feature: Feature, places: int) -> int:
    return 2 * frequencies(places) if feature.name == PLACE.name else feature.width


def _places(spans: Mapping[str, slice], places: int, codes: int) -> Float64:
    table = np.zeros((max(places, 1), codes))
    if PLACE.name in spans and places:
        waves = frequencies(places)
        angle = 2 * np.pi * np.outer(np.arange(places), np.arange(1, waves + 1)) / places
        table[:, spans[PLACE.name]] = np.hstack([np.cos(angle), np.sin(angle)]) / np.sqrt(waves)
    if OPENING.name in spans:
        table[0, spans[OPENING.name]] = 1
    if LATE.name in spans:
        table[FEW:, spans[LATE.name]] = 1
    return table


def _segments(spans: Mapping[str, slice], codes: int) -> Float64:
    table = np.zeros((2, codes))
    if SEGMENT.name in spans:
        table[:, spans[SEGMENT.name]] = np.eye(2)
    if BESIDE.name in spans:
        table[:, spans[BESIDE.name]] = np.eye(2)[::-1]
    return table


def _directions(width: int, codes: int, *, seed: int, turned: bool, overlap: float) -> Float64:
    rng = generator(seed, "wired", "directions")
    if 2 * codes <= width and not turned:
        half = np.eye(width // 2)[:, :codes]
        rest = np.zeros((width % 2, codes))
        made = np.vstack([half, -half, rest]) / np.sqrt(2)
    else:
        drawn = rng.standard_normal((width, codes))
        made = np.linalg.qr(drawn - drawn.mean(0)).Q
    if overlap:
        other = rng.standard_normal((width, codes))
        other -= other.mean(0)
        made = made + overlap * other / np.linalg.norm(other, axis=0) * np.sqrt(width) / 2
        made /= np.linalg.norm(made, axis=0)
    return np.asarray(made)
