"""Do the compiled loops give what torch and float64 numpy give, in any number of threads?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import xlogy

from forked import forked
from headscope.model import compiled_loops, kernels
from headscope.model.row_sums import add_rows

EXAMPLES, HEADS, TOKENS = 3, 4, 37
LENGTHS = np.array([37, 20, 1], np.int64)


def maps(*, seed: int = 0, sharpness: float = 4.0) -> np.ndarray:
    """Attention [example, head, query, key]; padding keys get 0, padding queries noise."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(EXAMPLES, HEADS, TOKENS, TOKENS)) * sharpness
    padding = np.arange(TOKENS) >= LENGTHS[:, None]
    scores = np.where(padding[:, None, None], -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    noise = rng.random(weights.shape) * 9
    return np.where(padding[:, None, :, None], noise, weights).astype(np.float32)


def bits(p: np.ndarray) -> np.ndarray:
    """-Σ p log2 p over the last axis, in float64."""
    return -xlogy(p.astype(np.float64), p).sum(-1) / np.log(2)


def scan(attention: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return scan_of(attention, LENGTHS[: len(attention)], classes)


def scan_of(
    attention: np.ndarray, lengths: np.ndarray, classes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Entropies, bits, and column sums; of words nothing."""
    examples, heads, queries, keys = attention.shape
    entropy = np.zeros((examples, heads, queries), np.float32)
    columns = np.zeros((examples, heads, 2, keys), np.float32)
    none = np.zeros((0, heads, queries, 4), np.float32)
    tokens = np.zeros((examples, keys), np.int32)
    add_rows(attention, lengths, np.int32(classes), tokens, tokens, entropy, columns, none)
    return entropy, columns


@pytest.fixture
def classes() -> np.ndarray:
    return (np.random.default_rng(3).random((EXAMPLES, TOKENS)) < 0.2).astype(np.int64)


@pytest.fixture
def gram() -> np.ndarray:
    """[example, head, head, key] inner products of random vectors; above the diagonal nonsense."""
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(EXAMPLES, TOKENS, HEADS, 8))
    full = np.einsum("btgd,bthd->bght", vectors, vectors)
    above = np.triu(np.ones((HEADS, HEADS), bool), 1)[None, :, :, None]
    return np.where(above, 1e6, full).astype(np.float32)


@pytest.fixture
def two_threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


# --- entropies and column sums --------------------------------------------------------------


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 4.0, 30.0, 200.0])
def test_entropies_are_those_of_float64(classes: np.ndarray, sharpness: float) -> None:
    """Up to one-hot rows and weights that underflow."""
    attention = maps(sharpness=sharpness)
    entropy, _ = scan(attention, classes)
    for b, n in enumerate(LENGTHS):
        np.testing.assert_allclose(
            entropy[b, :, :n], bits(attention[b, :, :n, :n]), rtol=1e-6, atol=2e-6
        )


def test_column_sums_are_those_of_float64(classes: np.ndarray) -> None:
    attention = maps()
    _, columns = scan(attention, classes)
    for b, n in enumerate(LENGTHS):
        for c in (0, 1):
            rows = attention[b, :, :n][:, classes[b, :n] == c].astype(np.float64)
            np.testing.assert_allclose(columns[b, :, c], rows.sum(1), rtol=2e-6, atol=1e-7)


def test_what_stands_in_padding_is_ignored(classes: np.ndarray) -> None:
    """Even NaN: padding is not read."""
    attention = maps()
    entropy, columns = scan(attention, classes)
    for b, n in enumerate(LENGTHS):
        assert not entropy[b, :, n:].any()
        assert not columns[b, :, :, n:].any()
        attention[b, :, n:] = np.nan
        attention[b, :, :, n:] = np.nan
    for found, expected in zip(scan(attention, classes), (entropy, columns), strict=True):
        assert found.tobytes() == expected.tobytes()


def test_zeros_ones_and_denormals_have_no_entropy() -> None:
    row = np.zeros((1, 1, 37, 37), np.float32)
    row[..., 0] = 1
    row[0, 0, 1:, 1:] = np.float32(1e-45)  # the smallest float
    row[0, 0, 2, 1:] = np.float32(1.1e-38)  # just below the normal ones
    row[0, 0, 3, 1:] = np.float32(1.2e-38)  # just above
    entropy, columns = scan(row, np.zeros((1, 37), np.int64))
    assert np.abs(entropy).max() < 1e-34
    assert columns[0, 0, 0, 0] == 37


def test_uniform_attention_has_log2_n_bits() -> None:
    for n in (1, 2, 3, 17, 37):
        attention = np.zeros((1, 2, 37, 37), np.float32)
        attention[:, :, :n, :n] = 1 / n
        entropy, _ = scan_of(attention, np.array([n]), np.zeros((1, 37)))
        np.testing.assert_allclose(entropy[:, :, :n], np.log2(n), rtol=3e-7, atol=1e-7)


def test_the_logarithm_is_good_to_six_digits_over_all_floats() -> None:
    """One weight to a row, so the entropy is -x log2 x itself, for x from 1e-38 to 2."""
    x = np.geomspace(1.2e-38, 2, 200_000).astype(np.float32)
    ones = np.ones(len(x), np.int64)
    entropy, _ = scan_of(x.reshape(-1, 1, 1, 1), ones, np.zeros((len(x), 1)))
    exact = -x.astype(np.float64) * np.log2(x.astype(np.float64))
    near_one = np.abs(x - 1) < 0.3  # there x log2 x passes through 0
    np.testing.assert_allclose(entropy[~near_one, 0, 0], exact[~near_one], rtol=3e-7)
    np.testing.assert_allclose(entropy[near_one, 0, 0], exact[near_one], rtol=3e-6, atol=1e-12)


# --- pairs of heads -------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 20, 37])
def test_pair_sums_are_those_of_float64(n: int) -> None:
    flat = maps()[0]
    flat[:, :, n:], flat[:, n:] = np.nan, np.nan
    out = np.zeros((HEADS, HEADS))
    weights = np.arange(1, n + 1, dtype=np.float32) % 3 + 1
    kernels.pair_sums(flat, weights, n, out)
    a = flat[:, :n, :n].astype(np.float64)
    for g in range(HEADS):
        for h in range(HEADS):
            expected = -bits(a[g] + a[h]) @ weights if h >= g else 0
            assert out[g, h] == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_pair_sums_of_equal_and_disjoint_one_hot_heads_are_exact() -> None:
    one = np.eye(37, dtype=np.float32)
    other = np.roll(one, 1, axis=1)
    out = np.zeros((3, 3))
    kernels.pair_sums(np.stack([one, one, other]), np.ones(37, np.float32), 37, out)
    assert out[0, 1] == 2 * 37  # Σ 2·log2 2
    assert out[0, 2] == 0


# --- the maps of two models -----------------------------------------------------------------


def test_what_says_how_alike_two_models_maps_are_is_that_of_float64() -> None:
    first, second = maps(), maps(seed=1, sharpness=1.0)
    out = np.zeros((EXAMPLES, HEADS, 4))
    kernels.alike(first, second, LENGTHS, out)
    for e, n in enumerate(LENGTHS):
        a, b = (m[e, :, :n, :n].astype(np.float64) for m in (first, second))
        apart = bits((a + b) / 2) - (bits(a) + bits(b)) / 2
        expected = [(a * b).sum((1, 2)), (a * a).sum((1, 2)), (b * b).sum((1, 2)), apart.sum(1)]
        np.testing.assert_allclose(out[e], np.stack(expected, 1), rtol=1e-6, atol=1e-6)


def test_equal_maps_are_exactly_alike_and_disjoint_ones_a_bit_apart() -> None:
    first = maps()
    out = np.zeros((EXAMPLES, HEADS, 4))
    kernels.alike(first, first, LENGTHS, out)
    assert (out[..., 0] == out[..., 1]).all()
    assert (out[..., 3] == 0).all()
    one = np.eye(37, dtype=np.float32)[None, None]
    kernels.alike(one, np.roll(one, 1, axis=-1), np.array([37]), out[:1, :1])
    assert out[0, 0].tolist() == [0, 37, 37, 37]  # a divergence of one bit in every row


# --- norms over all heads -------------------------------------------------------------------


def test_summed_norms_are_those_of_float64(gram: np.ndarray) -> None:
    attention = maps()
    out = np.zeros((EXAMPLES, TOKENS, TOKENS), np.float32)
    kernels.summed_norms(attention, gram, LENGTHS, out)
    for b, n in enumerate(LENGTHS):
        lower = np.tril(np.ones((HEADS, HEADS)))[:, :, None] * gram[b].astype(np.float64)
        full = lower + np.tril(np.ones((HEADS, HEADS)), -1).T[:, :, None] * np.swapaxes(lower, 0, 1)
        a = attention[b, :, :n, :n].astype(np.float64)
        square = np.einsum("gij,ghj,hij->ij", a, full[:, :, :n], a)
        np.testing.assert_allclose(out[b, :n, :n], np.sqrt(square), rtol=1e-5, atol=1e-7)
        assert not out[b, n:].any()
        assert not out[b, :, n:].any()


def test_heads_that_cancel_give_a_norm_of_zero_not_nan() -> None:
    """Rounding leaves the square a little below 0."""
    attention = np.full((1, 2, 5, 5), 0.2, np.float32)
    gram = np.zeros((1, 2, 2, 5), np.float32)
    gram[0, 0, 0] = gram[0, 1, 1] = 3.3
    gram[0, 1, 0] = -3.3000002
    out = np.zeros((1, 5, 5), np.float32)
    kernels.summed_norms(attention, gram, np.array([5]), out)
    np.testing.assert_allclose(out, 0, atol=1e-3)


# --- L1 distances ---------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 3, 4, 18])
def test_nearness_is_that_of_float64_and_of_nothing_0(n: int) -> None:
    rng = np.random.default_rng(6)
    attention = rng.random((HEADS, n, n), dtype=np.float32)
    attention[:, :, -1] = 0  # a key that nobody attends to
    vectors = rng.standard_normal((HEADS, 24, n), dtype=np.float32)
    whole = rng.standard_normal((n, 24), dtype=np.float32)
    out = np.zeros((n, n), np.float32)
    kernels.nearness(attention, vectors, whole, out)
    a, f, y = (t.astype(np.float64) for t in (attention, vectors, whole))
    for i in range(n):
        for j in range(n):
            left = y[i] - sum(a[h, i, j] * f[h, :, j] for h in range(HEADS))
            expected = np.abs(y[i]).sum() - np.abs(left).sum()
            assert out[i, j] == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert (out[:, -1] == 0).all()


# --- what a token keeps and takes in --------------------------------------------------------


def test_part_norms_are_those_of_float64() -> None:
    rng = np.random.default_rng(5)
    own, output, residual = rng.normal(size=(3, TOKENS, 24)).astype(np.float32)
    bias, scale = rng.normal(size=(2, 24)).astype(np.float32)
    out = np.zeros((5, TOKENS), np.float32)
    kernels.part_norms(own, output, bias, residual, scale, out)
    a, b, x = (t.astype(np.float64) for t in (own, output, residual))
    parts = [b - a, a - bias, a - bias + x]
    parts += [scale * (p - p.mean(-1, keepdims=True)) for p in (parts[0], parts[2])]
    for found, part in zip(out, parts, strict=True):
        np.testing.assert_allclose(found, np.linalg.norm(part, axis=-1), rtol=1e-6)


# --- threads --------------------------------------------------------------------------------


def test_one_and_two_threads_give_equal_bits(
    classes: np.ndarray, gram: np.ndarray, two_threads: Callable[[int], None]
) -> None:
    found = []
    for threads in (1, 2):
        two_threads(threads)
        pairs = np.zeros((HEADS, HEADS))
        norms = np.zeros((EXAMPLES, TOKENS, TOKENS), np.float32)
        kernels.pair_sums(maps()[0], np.ones(TOKENS, np.float32), TOKENS, pairs)
        kernels.summed_norms(maps(), gram, LENGTHS, norms)
        found.append(b"".join(a.tobytes() for a in (*scan(maps(), classes), pairs, norms)))
    assert found[0] == found[1]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_loops_leave_torch_its_number_of_threads(
    classes: np.ndarray, threads: int, two_threads: Callable[[int], None]
) -> None:
    """numba's start used to give torch all cores back: one worker per core then fought for them."""
    two_threads(threads)
    scan(maps(), classes)
    assert torch.get_num_threads() == threads


# Every loop on the same random numbers; prints a digest of what each writes.
DIGESTS = """
import hashlib, importlib, json
import numba
import numpy as np
from headscope.model import kernels, kernels_of_words, row_sums

numba.config.CACHE_DIR = "."
for module in (kernels, kernels_of_words, row_sums):
    importlib.reload(module)

draw = np.random.default_rng(0)
maps = draw.random((3, 4, 37, 37), dtype=np.float32) ** 4
maps /= maps.sum(-1, keepdims=True)
lengths, classes = np.array([37, 20, 1]), draw.integers(0, 2, (3, 37))
own, output, residual = draw.standard_normal((3, 300, 384), dtype=np.float32)
bias, scale = draw.standard_normal((2, 384), dtype=np.float32)
gram = np.abs(draw.standard_normal((3, 4, 4, 37), dtype=np.float32))
place = np.tile(np.arange(37), (3, 1)) // 2
place[np.arange(37) >= lengths[:, None]] = -1
whole = draw.standard_normal((37, 48), dtype=np.float32)
rows = np.stack([np.arange(19) * 2, np.minimum(np.arange(19) * 2 + 2, 37)], -1)
count = (lengths + 1) // 2
out = {
    "add_rows": (
        np.zeros((3, 4, 37), np.float32),
        np.zeros((3, 4, 2, 37), np.float32),
        np.zeros((3, 4, 37, 4), np.float32),
    ),
    "summed_norms": (np.zeros((3, 37, 37), np.float32),),
    "nearness": (np.zeros((37, 37), np.float32),),
    "part_norms": (np.zeros((5, 300), np.float32),),
    "word_maps": (np.zeros((3, 4, 19, 19), np.float32),),
    "largest": (np.full((3, 4, 19), -1), np.full((3, 4, 19), -1)),
    "pair_sums": (np.zeros((4, 4)),),
    "overlaps": (np.zeros((3, 4)),),
    "alike": (np.zeros((3, 4, 4)),),
}
given = {
    "add_rows": (
        maps,
        lengths,
        np.int32(classes),
        np.int32(classes[::-1]),
        draw.integers(0, 9, (3, 37), np.int32),
    ),
    "summed_norms": (maps, gram, lengths),
    "nearness": (maps[0], draw.standard_normal((4, 48, 37), dtype=np.float32), whole),
    "part_norms": (own, output, bias, residual, scale),
    "word_maps": (maps, place, np.tile(rows, (3, 1, 1)), np.minimum(count, 18)),
    "largest": (maps[:, :, :19, :19].copy(), np.ones((3, 19), bool), np.minimum(count, 19)),
    "pair_sums": (maps[0], np.ones(37, np.float32), 37),
    "overlaps": (draw.integers(0, 1 << 62, (3, 4, 37, 2)).astype(np.uint64),),
    "alike": (maps, maps[::-1].copy(), lengths),
}
found = {}
for name, arrays in given.items():
    loop = next(getattr(m, name) for m in (kernels, kernels_of_words, row_sums) if hasattr(m, name))
    loop(*arrays, *out[name])
    found[name] = [hashlib.sha256(array.tobytes()).hexdigest() for array in out[name]]
print(json.dumps(found))
"""


def test_code_compiled_just_now_and_code_from_the_cache_give_equal_bits(tmp_path: Path) -> None:
    """The first run after an installation differed in its last bits from those after it."""
    told, compiled = [], []
    for _ in range(2):
        with forked(cwd=tmp_path, code=DIGESTS) as process:
            assert process.wait() == 0, process.communicate()
            told.append(process.communicate()[0])
        compiled.append({path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")})
    assert told[0] == told[1] != ""
    assert compiled[0] == compiled[1] != {}


def test_where_compiled_code_cannot_be_kept_every_process_compiles(monkeypatch):
    plain = compiled_loops.njit

    def nowhere(*, cache: bool = False, **options):
        if cache:
            raise RuntimeError("cannot cache function '_sum': no locator available")
        return plain(**options)

    monkeypatch.setattr(compiled_loops, "njit", nowhere)
    assert compiled_loops.compile_loop(lambda number: number + 1)(1) == 2


def test_loops_that_may_not_be_compiled_are_refused_with_what_to_do(tmp_path):
    code = "import os\nos.environ['NUMBA_DISABLE_JIT'] = '1'\nimport importlib\n"
    code += "from headscope.model import compiled_loops\nimportlib.reload(compiled_loops)"
    with forked(cwd=tmp_path, code=code) as process:
        _, complaint = process.communicate()
    assert (
        "found NUMBA_DISABLE_JIT set; headscope's loops run compiled alone: unset it" in complaint
    )
