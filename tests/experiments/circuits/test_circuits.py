"""Do heads that were wired to do something get that score, and heads that know nothing no label?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from weakref import ref

import numpy as np
import pytest
import torch
import xarray as xr
from scipy.linalg import subspace_angles

import headscope as hs
from experiments.circuits import made
from experiments.circuits.decoders import decoder
from headscope.claims.control import controls
from headscope.claims.head_labels import head_labels
from headscope.claims.reading import run_findings
from headscope.claims.verdict import Outcome, Verdict
from headscope.errors import InputError, ModelError
from headscope.experiments.circuits import circuit_run, head_scores, made_inputs
from headscope.experiments.circuits.head_scores import PatternScores
from headscope.experiments.circuits.needles import needles
from headscope.experiments.circuits.verdicts import verdicts
from headscope.experiments.circuits.weight_maps import HeadMatrices, WeightMaps
from headscope.model.language_model import LanguageModel
from headscope.model.model import show_layers

QUICK = {"sequences": 12, "length": made.LENGTH, "replicates": 12}
TEXT = " ".join(["cat dog tree house"] * 10)
PLAIN = {**QUICK, "control": "none", "composition": False, "successors": False}


@pytest.fixture(scope="module", autouse=True)
def few_networks():
    """Of small models a control has many networks: here two, an untrained and a shuffled one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.run.control.LEAST_HEADS", 1)
        yield


@pytest.fixture(scope="module")
def wired():
    """A run on the decoder that is wired by hand."""
    return hs.circuits(made.language_model(made.wired()), **QUICK, control="none")


@pytest.fixture(scope="module")
def random():
    """Runs on two random decoders, with their controls."""
    return [hs.circuits(made.language_model(made.small(kind)), **QUICK) for kind in KINDS]


KINDS = ("GPT2", "Llama")


# --- wired by hand ------------------------------------------------------------------------------


def test_each_wired_head_has_its_score_and_no_other(wired):
    """0.0 looks at the previous token, 0.1 at the same, 1.0 at the one after it; 1.1 at none."""
    found = wired["circuits"].score.sel(circuit=["previous_token", "duplicate_token", "induction"])
    wanted = [[[1, 0, 0], [0, 1, 0]], [[0, 0, 1], [0, 0, 0]]]
    np.testing.assert_allclose(found.values, wanted, atol=1e-4)


def test_a_head_that_speaks_for_what_it_attends_to_copies(wired):
    """0.1 speaks for another token; 0.0 and 1.1 write nothing that is read out."""
    nan, found = np.nan, wired["circuits"]
    np.testing.assert_allclose(found.copying, [[nan, 0], [1, nan]], atol=1e-4)
    np.testing.assert_allclose(found.copied, [[0, 0], [1, 0]], atol=1e-4)
    np.testing.assert_allclose(found.weight_copying[1], [1, 0], atol=1e-4)
    assert found.weight_copying[0, 0] == 0
    assert float(found.weight_copying[0, 1]) < 0.1


def test_copying_is_a_share_of_all_attention_also_of_what_rests_on_the_first_token(monkeypatch):
    """Head 1.0 speaks for all that it attends to but the first token: reference: its whole maps."""
    monkeypatch.setattr(made, "SHARP", 1.0)
    network = made.wired()
    with torch.no_grad():
        network.transformer.h[1].attn.c_attn.bias[made.DIM - 1] = 40.0  # about as a match
    model = made.language_model(network)
    found = hs.circuits(model, **PLAIN)["circuits"].sel(layer=1, head=0)
    ids = made_inputs.repeats(model.model, sequences=12, length=made.LENGTH, seed=0).ids
    network.set_attn_implementation("eager")
    with torch.no_grad():
        maps = network(torch.from_numpy(ids), output_attentions=True).attentions[1][:, 0]
    wanted = float(maps[:, 1 + made.LENGTH :, 1:].double().sum(-1).mean())
    assert 0.02 < wanted < 0.98
    assert float(found.copied) == 1
    assert float(found.copied_attention) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(("writes", "copies"), [(3.0, True), (0.0, False), (-3.0, False)])
def test_a_head_that_writes_nothing_or_the_opposite_does_not_copy(writes, copies):
    """It looks where a head of induction looks, and is told to look there."""
    network = made.wired()
    with torch.no_grad():
        network.transformer.h[1].attn.c_proj.weight[: made.DIM] *= writes / 3
    run = hs.circuits(made.language_model(network), **PLAIN)
    kinds = {claim.kind for claim in head_labels(run.tree)[1, 0].labels}
    assert kinds == {"induction", "copying"} if copies else kinds == {"induction"}


def test_the_head_whose_weights_count_on_is_the_successor(wired):
    np.testing.assert_allclose(wired["circuits"].successor, [[0, 1], [0, 0]])
    assert "Successor: L1·H2 100 %" in " ".join(run_findings(wired.tree))


def test_the_keys_of_the_induction_head_read_the_head_of_the_previous_token(wired):
    """Each reads and writes as many directions as there are words: composition 1 / √words."""
    one = wired["circuits"].composition.sel(reader=2)
    assert float(one.sel(way="key", writer=0)) == pytest.approx(made.SIZE**-0.5, rel=0.01)
    kernel = wired["circuits"].projection_kernel.sel(reader=2)
    assert float(kernel.sel(way="key", writer=0)) > 0.3
    rest = one.values[~np.isclose(one.values, made.SIZE**-0.5, rtol=0.01)]
    assert np.nanmax(rest) < 0.01
    assert np.isnan(wired["circuits"].composition.sel(reader=0)).all()


def test_the_wired_model_says_what_comes_again(wired):
    assert float(wired["circuits"].told_again) == pytest.approx(1, abs=1e-4)


# --- labels -------------------------------------------------------------------------------------


def test_a_softer_wiring_gets_its_labels(monkeypatch):
    """Scores that vary with the input have intervals, and with these labels."""
    monkeypatch.setattr(made, "SHARP", 0.35)
    network = made.wired()
    with torch.no_grad():
        noise = torch.Generator().manual_seed(0)
        network.transformer.wte.weight += 0.02 * torch.randn(
            network.transformer.wte.weight.shape, generator=noise
        )
    run = hs.circuits(made.language_model(network), [TEXT], **QUICK, needles=10, haystack=20)
    of_control = [one["circuits"].retrieval for one in controls(run.tree)]
    assert max(float(one.max()) for one in of_control) < 0.5
    kinds = {
        place: {claim.kind for claim in one.labels} for place, one in head_labels(run.tree).items()
    }
    assert kinds[0, 0] == {"previous_token"}
    assert "duplicate_token" in kinds[0, 1]
    assert kinds[1, 0] == {"induction", "copying", "retrieval"}
    assert not kinds[1, 1]
    told = run_findings(run.tree)
    assert any(one.startswith("Induction: L2·H1 ") for one in told)
    assert any(one.startswith("The keys of L2·H1 read most what L1·H1 writes") for one in told)


def test_a_random_model_has_no_label_and_no_kind_of_head_holds_of_it(random):
    for run in random:
        assert not any(one.labels for one in head_labels(run.tree).values())
        every = verdicts(run.tree)
        assert not any(one.holds for one in every.values())
        assert every["previous_token"].fails  # attention is nearly even: far from a quarter
        assert {"retrieval", "writes_answer"} <= {kind for kind, one in every.items() if one.needs}
        assert "Does not hold of any head: " in run_findings(run.tree)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_half_that_two_inputs_share_is_read_once(kind, monkeypatch):
    """The numbers are those of reading both wholly."""
    network, read = made.small(kind, sharp=2.0), list[int]()
    count = lambda _, __, more: read.append(more["input_ids"][0].numel())  # noqa: E731
    network.register_forward_pre_hook(count, with_kwargs=True)
    once = hs.circuits(made.language_model(network), **PLAIN)["circuits"]
    shared = read.copy()
    monkeypatch.setattr(circuit_run, "whole_cache", lambda _: None)
    twice = hs.circuits(made.language_model(network), **PLAIN)["circuits"]
    assert sum(read) == 2 * sum(shared) + 1 + made.LENGTH  # “once” lacks one first half
    assert np.ptp(once["null"].values[..., 1:]) > 1e-3  # heads differ
    xr.testing.assert_allclose(once, twice, atol=1e-5)


def test_networks_of_the_control_are_held_one_at_a_time(monkeypatch):
    """Large ones stood two at a time in memory."""
    held, control_of = list[ref](), circuit_run.control_of

    def watched(make):
        assert all(one() is None for one in held)
        other = make()
        held.append(ref(other.network))
        return other

    def with_watch(*request):
        control = control_of(*request)
        networks = {name: partial(watched, make) for name, make in control.networks.items()}
        return replace(control, networks=networks)

    monkeypatch.setattr(circuit_run, "control_of", with_watch)
    run = hs.circuits(made.language_model(made.small("Llama")), **QUICK, composition=False)
    read = [one.attrs["model"] for one in controls(run.tree)]
    assert read == ["untrained", "shuffled"]  # the others serve pairs of heads alone
    assert len(held) == 2


@pytest.mark.parametrize(
    ("low", "high", "beyond", "wanted"),
    [
        (0.26, 0.34, 0.1, Verdict(Outcome.HOLDS)),
        (0.2, 0.34, 0.1, Verdict(Outcome.CANNOT_TELL, smallest=0.1)),
        (0.26, 0.34, -0.05, Verdict(Outcome.CANNOT_TELL, smallest=0.35)),  # of a gain of .3
        (0.2, 0.24, 0.1, Verdict(Outcome.FAILS)),
    ],
)
def test_a_verdict_is_that_of_the_intervals_of_a_head(random, low, high, beyond, wanted):
    """All heads give 0 ± 0, but one: 0.3, or 0.22, where nothing stands that it could look for."""
    value = 0.22 if wanted.fails else 0.3
    cells = {"score": value, "score_ci_low": low, "score_ci_high": high, "null": 0.0}
    tree = random[0].tree.copy(deep=True)
    dataset = tree["circuits"].to_dataset()
    for name, cell in {**cells, "surely_above": beyond}.items():
        dataset[name].loc[{"circuit": "induction"}] = 0.0
        dataset[name].loc[{"circuit": "induction", "layer": 1, "head": 0}] = cell
    tree["circuits"] = dataset
    found = verdicts(tree)["induction"]
    assert found.outcome == wanted.outcome
    assert found.smallest == pytest.approx(wanted.smallest, nan_ok=True)
    shown = f"induction ({100 * wanted.smallest:.1f} points above its threshold would have shown)"
    assert (shown in " ".join(run_findings(tree))) == (wanted.outcome is Outcome.CANNOT_TELL)


def test_the_wired_heads_hold_and_what_was_not_measured_is_not_asked(wired):
    every = verdicts(wired.tree)
    kinds = ("induction", "previous_token", "duplicate_token", "copying", "successor")
    assert all(every[kind].holds for kind in (*kinds, "composition"))
    assert every["retrieval"].needs == "a haystack, and ten needles or more that the model tells"


def looking_back(network, *, words):
    """Head 1.1 attends LENGTH − 1 tokens back; or only where that is induction, too.

    Of words, the place and the word before the key must match: either weighs less than the rest.
    """
    attention = network.transformer.h[1].attn
    back = torch.diag(torch.ones(made.PLACES - made.LENGTH + 1), 1 - made.LENGTH).T
    at = slice(made.SIZE, made.SIZE + made.PLACES)
    with torch.no_grad():
        query = attention.c_attn.weight[:, made.DIM : 2 * made.DIM]
        key = attention.c_attn.weight[:, made.WIDTH + made.DIM : made.WIDTH + 2 * made.DIM]
        query[made.PLACE, at] = (200 if words else 500) * torch.eye(made.PLACES)
        key[made.PLACE, at] = back
        if words:
            query[made.TOKEN, : made.SIZE] = 7 * torch.eye(made.SIZE)
            key[made.BEFORE, : made.SIZE] = torch.eye(made.SIZE)
        attention.c_attn.bias[2 * made.DIM - 1] = 430  # key: the first place
    return network


@pytest.mark.parametrize("words", [False, True])
def test_a_head_that_looks_a_fixed_distance_back_does_not_induce(words):
    """Even where it does so at what came after the same token alone: others stand elsewhere."""
    model = made.language_model(looking_back(made.wired(), words=words))
    run = hs.circuits(model, **PLAIN)
    score = run["circuits"].score.sel(circuit="induction", layer=1)
    assert float(score[0]) == pytest.approx(1, abs=1e-4)
    assert float(score[1]) < 0.3
    assert not {claim.kind for claim in head_labels(run.tree)[1, 1].labels} & {"induction"}
    assert "induction" in {claim.kind for claim in head_labels(run.tree)[1, 0].labels}
    at_one_distance = made_inputs.repeats(
        model.model, sequences=10, length=12, seed=0, held_out=True
    )
    scores, batch = PatternScores(at_one_distance), model.model.batch(at_one_distance.repeated)
    show_layers(model.model, batch, lambda view: scores.look(view, batch))
    np.testing.assert_allclose(scores.whole[:, 1, :, 2], 1, atol=1e-3)


# --- weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_folded_weights_are_the_attention_that_the_model_computes(kind):
    """Of one token at position 0 the value vector is norm(x) W_V, whatever the family's modules."""
    network = made.small(kind)
    model = made.language_model(network).model
    weights = WeightMaps(model)
    first = next(weights.layers())
    block = network.transformer.h[0] if kind == "GPT2" else network.model.layers[0]
    x = torch.randn(32, generator=torch.Generator().manual_seed(1))
    if kind == "GPT2":
        gain, x0, bias = block.ln_1.weight, x - x.mean(), block.ln_1.bias
        q, k, v = (block.attn.c_attn.weight[:, at : at + 32] for at in (0, 32, 64))
        out, read = block.attn.c_proj.weight, network.transformer.ln_f.weight
    else:
        gain, x0, bias = block.input_layernorm.weight, x, None
        parts = block.self_attn.q_proj, block.self_attn.k_proj, block.self_attn.v_proj
        q, k, v = (part.weight.T for part in parts)
        k, v = (w.view(32, 2, 8).repeat_interleave(2, 1).reshape(32, 32) for w in (k, v))
        out, read = block.self_attn.o_proj.weight.T, network.model.norm.weight
    del bias
    for found, wanted in ((first.query, q), (first.key, k), (first.value, v)):
        by_head = ((x0 * gain) @ wanted).view(4, 8)
        np.testing.assert_allclose(
            (x.double() @ found).detach(), by_head.detach().double(), atol=1e-4
        )
    out = out - out.mean(1, keepdim=True) if kind == "GPT2" else out
    np.testing.assert_allclose(first.output.flatten(0, 1), out.detach().double(), atol=1e-6)
    rows = network.lm_head.weight.detach()
    rows = (rows - rows.mean(0)) * read.detach()
    rows = rows - rows.mean(1, keepdim=True) if kind == "GPT2" else rows
    np.testing.assert_allclose(weights.unembedding, rows, atol=1e-4)


def test_copying_by_weights_is_of_the_eigenvalues_of_the_whole_matrix():
    """Reference: W_E W_V W_O W_U, token by token, in float64."""
    model = made.language_model(made.small()).model
    weights = WeightMaps(model)
    maps = list(weights.layers())
    found = head_scores.copying(maps, weights)
    whole = (
        weights.embedding.double()
        @ maps[1].value[2]
        @ maps[1].output[2]
        @ weights.unembedding.double().T
    )
    values = np.linalg.eigvals(whole.numpy())
    assert found[1, 2] == pytest.approx(values.sum().real / np.abs(values).sum(), abs=1e-6)


def test_composition_is_the_norm_of_the_product_and_random_rotations_spread_as_is_said():
    """Reference: the whole matrices, and rotations drawn at random."""
    draw = torch.Generator().manual_seed(0)
    width, dim = 12, 3
    maps = [
        HeadMatrices(
            *(
                torch.randn(shape, generator=draw, dtype=torch.float64)
                for shape in ((1, width, dim),) * 3 + ((1, dim, width),)
            )
        )
        for _ in range(2)
    ]
    score, above = head_scores.composition(maps)
    writes = maps[0].value[0] @ maps[0].output[0]
    qk = maps[1].query[0] @ maps[1].key[0].T
    reads = {"query": qk, "key": qk.T, "value": maps[1].value[0] @ maps[1].output[0]}
    for at, read in enumerate(reads.values()):
        size = torch.linalg.norm(writes) * torch.linalg.norm(read)
        wanted = float(torch.linalg.norm(writes @ read) / size)
        assert score[at, 1, 0] == pytest.approx(wanted, abs=1e-6)
    drawn = torch.randn(4000, width, width, generator=draw, dtype=torch.float64)
    turned = torch.linalg.qr(drawn).Q
    size = (torch.linalg.norm(writes) * torch.linalg.norm(qk)) ** 2
    squares = ((writes @ turned @ qk.T) ** 2).sum((1, 2)) / size
    assert float(squares.mean()) == pytest.approx(1 / width, rel=0.02)
    spread = (score[1, 1, 0] ** 2 - 1 / width) / above[1, 1, 0]
    assert float(squares.std()) == pytest.approx(spread, rel=0.05)


def test_the_projection_kernel_is_of_the_angles_between_what_is_written_and_what_is_read():
    """Reference: scipy's principal angles; and subspaces drawn at random."""
    draw = torch.Generator().manual_seed(0)
    shapes = [(3, 12, 3)] * 3 + [(3, 3, 12)]
    maps = [
        HeadMatrices(*(torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes))
        for _ in range(2)
    ]
    maps[0].output[1, 2] = maps[0].output[1, 0] + maps[0].output[1, 1]  # two directions alone
    maps[0].output[2] = 0
    kernel, above = head_scores.projection_kernel(maps)
    for way, name in enumerate(("query", "key", "value")):
        for writer, reader in product(range(2), range(3)):
            written = maps[0].output[writer].T[:, : 3 - writer]
            angles = subspace_angles(written, getattr(maps[1], name)[reader])
            wanted = np.mean(np.cos(angles) ** 2)
            assert kernel[way, 3 + reader, writer] == pytest.approx(wanted, abs=1e-6)
    assert np.isnan(kernel[:, 3:, 2]).all()  # it writes nothing
    assert np.isnan(above[:, 3:, 2]).all()
    assert np.isnan(kernel[:, :3]).all()
    turned = torch.linalg.qr(torch.randn(4000, 12, 3, generator=draw, dtype=torch.float64)).Q
    basis = torch.linalg.qr(maps[0].output[0].T).Q
    squares = (basis.T @ turned).square().sum((1, 2)) / 3
    spread = (kernel[1, 3, 0] - 3 / 12) / above[1, 3, 0]
    assert float(squares.mean()) == pytest.approx(3 / 12, rel=0.02)
    assert float(squares.std()) == pytest.approx(spread, rel=0.05)


def test_a_model_that_norms_queries_and_keys_has_the_rest():
    """Their weights alone say nothing of what they compare; values and patterns are there."""
    run = hs.circuits(decoder("Qwen3"), **QUICK | {"length": 6}, control="none")
    found = run["circuits"]
    assert np.isfinite(found.score).all()
    assert np.isfinite(found.weight_copying).all()
    for name in ("composition", "projection_kernel"):
        later = found[name].isel(reader=slice(4, 8), writer=slice(0, 4))
        assert np.isfinite(later.sel(way="value")).all()
        assert np.isnan(later.sel(way=["query", "key"])).all()


# --- inputs -------------------------------------------------------------------------------------


def test_inputs_are_drawn_by_the_seed_and_no_special_token_comes_twice():
    model = made.language_model(made.small()).model
    one, same, other = (
        made_inputs.repeats(model, sequences=10, length=5, seed=seed) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.ids, same.ids)
    assert (one.ids != other.ids).any()
    assert (one.ids[:, 0] == 0).all()
    assert (one.ids[:, 1:] > 0).all()
    places = one.before(one.repeated)
    np.testing.assert_array_equal(np.take_along_axis(one.ids[:, 1:6], places, 1), one.ids[:, 6:])
    assert len({tuple(row) for row in places.tolist()}) > 1
    for fresh, ids in zip(one.fresh, one.ids, strict=True):
        assert len(set(fresh.input_ids)) == 11
        np.testing.assert_array_equal(fresh.input_ids[:6], ids[:6])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"sequences": 9}, "sequences is 9; wanted a whole number, at least 10"),
        ({"length": 3}, "length is 3; wanted a whole number, at least 4"),
        ({"length": 48}, "takes 96: give a smaller --length"),
        ({"length": 30}, "need 60 different ones, and .* has 55"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
    ],
)
def test_what_cannot_be_made_is_refused(asked, says):
    with pytest.raises(InputError, match=says):
        hs.circuits(made.language_model(made.small()), **QUICK | asked)


def test_a_model_that_sees_what_comes_is_refused():
    model = made.language_model(made.small()).model
    with pytest.raises(ModelError, match="masked language model"):
        hs.circuits(LanguageModel(model, "masked"), **QUICK)


# --- needles ------------------------------------------------------------------------------------


def test_the_head_that_attends_to_each_token_of_a_needle_retrieves_it():
    """The induction head's argmax is the needle's next token at each step; no other head's is.

    From each word of the question it gives all to what followed that word in the needle's sentence.
    """
    language = made.language_model(made.wired())
    run = hs.circuits(language, [TEXT], **PLAIN, needles=10, haystack=20, steps=8)
    found = run["circuits"]
    assert float(found.recall.min()) > 0.8
    np.testing.assert_allclose(found.retrieval, [[0, 0], [1, 0]])
    np.testing.assert_allclose(found.retrieval_steps, [[0, 0], [1, 0]])
    told = " ".join(run_findings(run.tree))
    assert "Left to itself it writes 10; by its steps most: L2·H1 1.00" in told
    np.testing.assert_allclose(found.qr_score[1], [1, 0], atol=1e-3)
    assert float(found.locos[1, 0]) > 10 * float(np.abs(found.locos.values[0]).max())
    assert float(found.locos[1, 1]) == pytest.approx(0, abs=1e-6)
    assert "retrieval" in {claim.kind for claim in head_labels(run.tree)[1, 0].labels}
    assert found.depth.values[[0, -1]].tolist() == [0, 1]


def test_a_model_that_answers_nothing_has_no_retrieval_heads():
    small = made.language_model(made.small())
    run = hs.circuits(small, [TEXT], **PLAIN, needles=10, haystack=20, steps=4)
    assert "retrieval" not in run["circuits"]
    assert float(run["circuits"].recall.max()) < 0.5
    told = " ".join(run_findings(run.tree))
    assert "Of 10 needles in a haystack the model tells 0: too few to tell which heads" in told
    assert "Left to itself it writes 0: too few to count steps." in told


def test_a_needle_lies_where_it_is_said_to_lie():
    model = made.language_model(made.small()).model
    told = needles(model, hs.corpus_of([TEXT]), runs=10, haystack=20, seed=0)
    for example, right, places, depth in zip(
        told.examples, told.right, told.places, told.depth, strict=True
    ):
        np.testing.assert_array_equal(example.input_ids[places], right)
        np.testing.assert_array_equal(example.input_ids[1 - len(right) :], right[:-1])
        assert places[0] == 1 + round(20 * depth) + 6


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"haystack": 60}, "the text has 40 tokens, and the haystack 60"),
        ({"haystack": 80, "text": TEXT + " " + TEXT}, "give --haystack "),
        ({"haystack": 20, "needles": 5}, "found 5 needles"),
    ],
)
def test_a_haystack_that_cannot_be_is_refused(asked, says):
    asked = {"needles": 10} | asked
    text = asked.pop("text", TEXT)
    with pytest.raises(InputError, match=says):
        hs.circuits(made.language_model(made.small()), [text], **PLAIN, **asked)
