"""Compiled loops over attention between words."""

import numpy as np

from headscope.model.compiled_loops import threaded


@threaded(lambda attention, *_: attention.shape[0] * attention.shape[1])
def word_maps(begin, stop, attention, of_token, rows, count, out):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Token-level maps added up to word-level ones.

    attention   [example, head, query, key] float32
    of_token    [example, token] int64     place of each key; -1 for padding, which comes last
    rows        [example, place, 2] int64  first query of each place, and the one behind its last
    count       [example] int64            places of each example
    out         [example, head, place, place] float32 out, added to: mean over the queries of a
                place, sum over the keys
    """
    heads, tokens = attention.shape[1], attention.shape[3]
    for row in range(begin, stop):
        b = row // heads
        h = row - b * heads
        for u in range(count[b]):
            target = out[b, h, u]
            share = np.float32(1) / np.float32(rows[b, u, 1] - rows[b, u, 0])
            for i in range(rows[b, u, 0], rows[b, u, 1]):
                a = attention[b, h, i]
                for j in range(tokens):
                    place = of_token[b, j]
                    if place < 0:
                        break
                    target[place] += a[j] * share


@threaded(lambda maps, *_: maps.shape[0] * maps.shape[1])
def largest(begin, stop, maps, real, count, to, origin):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """The largest weight of every row and of every column, the diagonal left out.

    maps    [example, head, place, place] float32
    real    [example, place] bool     places that take part
    count   [example] int64           places of each example
    to      [example, head, place] int64 out: column of each row's largest weight; starts at -1
    origin  [example, head, place] int64 out: row of each column's largest weight; starts at -1
    """
    heads = maps.shape[1]
    for row in range(begin, stop):
        b = row // heads
        h = row - b * heads
        n = count[b]
        top = np.zeros(n, np.float32)
        for i in range(n):
            if not real[b, i]:
                continue
            a = maps[b, h, i]
            most, where = np.float32(0), -1
            for j in range(n):
                if j != i and real[b, j]:
                    if a[j] > most:
                        most, where = a[j], j
                    if a[j] > top[j]:
                        top[j] = a[j]
                        origin[b, h, j] = i
            to[b, h, i] = where
