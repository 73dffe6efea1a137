"""Does a model stop copying without the heads that copy, and no more than that?"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

import headscope as hs
from experiments.circuits import made
from headscope.claims.reading import run_findings
from headscope.core.accumulators import generator
from headscope.errors import InputError
from headscope.experiments.circuits import made_inputs, switched_off
from headscope.model.model import Shape

QUICK = {"sequences": 10, "length": 8}
RUN = {**QUICK, "replicates": 10, "control": "none", "composition": False, "successors": False}


@pytest.fixture(scope="module")
def wired():
    """Of the decoder wired by hand: head 1.0 induces, by what 0.0 tells it; 0.1 and 1.1 do not."""
    sets = {"induces": [(1, 0)], "tells": [(0, 0)], "neither": [(1, 1)]}
    return hs.prompts.switch_off(made.language_model(made.wired()), sets, **QUICK)


def test_without_the_head_that_induces_a_model_knows_no_more_than_at_first(wired):
    """Its answer is then about even over the words, as where nothing came before."""
    loss = wired["off_loss"].sel(half="again")
    assert float(loss.sel(set="induces", off="none")) < 0.01
    for name in ("induces", "tells"):
        assert float(loss.sel(set=name, off="these")) > 3
        assert float(loss.sel(set=name, off="random")) < 0.01
        assert float(wired["off_more_ci_low"].sel(set=name)) > 3
    assert float(loss.sel(set="neither", off="these")) < 0.01


def test_a_loss_is_that_of_a_network_whose_head_gives_its_mean():
    """Reference: hooks on the input of W_O; random heads as they were drawn."""
    network = made.small(seed=3)
    model = made.language_model(network)
    heads = [(0, 1), (1, 2)]
    found = hs.prompts.switch_off(model, {"some": heads}, **QUICK, batch_tokens=40)
    drawn = made_inputs.repeats(model.model, **QUICK, seed=0, held_out=True)
    ids, blocks, size = torch.from_numpy(drawn.ids), network.transformer.h, 8
    kept: dict[int, torch.Tensor] = {}
    for at, block in enumerate(blocks):
        block.attn.c_proj.register_forward_pre_hook(
            lambda _, args, at=at: kept.update({at: args[0]})
        )
    with torch.no_grad():
        plain = network(input_ids=ids).logits
    means = {at: z.mean((0, 1)) for at, z in kept.items()}

    def put(layer, others):
        def hook(_, args):
            z = args[0].clone()
            for row, some in enumerate(others):
                for own, head in some:
                    if own == layer:
                        where = slice(head * size, (head + 1) * size)
                        z[row, :, where] = means[layer][where]
            return (z,)

        return hook

    shape, rows = Shape("decoder", 2, 4), range(10)
    random = [
        switched_off._others(heads, shape, generator(0, "switched off", "some", str(row)))
        for row in rows
    ]
    for off, sets in (("none", None), ("these", [heads] * 10), ("random", random)):
        hooks = [
            block.attn.c_proj.register_forward_pre_hook(put(at, sets))
            for at, block in enumerate(blocks if sets else ())
        ]
        with torch.no_grad():
            logits = network(input_ids=ids).logits if sets else plain
        for hook in hooks:
            hook.remove()
        loss = functional.cross_entropy(
            logits[:, :-1].transpose(1, 2), ids[:, 1:], reduction="none"
        ).mean(0)  # by place
        first, again = loss[1:8].mean(), loss[9:16].mean()
        told = found["off_loss"].sel(set="some", off=off)
        np.testing.assert_allclose(told, [first, again], rtol=1e-5)


def test_random_heads_are_others_of_the_same_layers():
    heads = [(0, 1), (2, 0), (2, 3)]
    for at in range(20):
        drawn = switched_off._others(heads, Shape("decoder", 3, 4), np.random.default_rng(at))
        assert [layer for layer, _ in drawn] == [0, 2, 2]
        assert len({*drawn, *heads}) == 6
    full = [(1, 0), (1, 1), (1, 2)]  # their layer has one other
    drawn = switched_off._others(full, Shape("decoder", 2, 4), np.random.default_rng(0))
    assert sorted(layer for layer, _ in drawn) == [0, 0, 1]


def test_sequences_are_others_than_those_by_which_heads_are_chosen():
    model = made.language_model(made.small()).model
    shown, held = (made_inputs.repeats(model, **QUICK, seed=0, held_out=on) for on in (False, True))
    assert (shown.ids[:, 1:] != held.ids[:, 1:]).any(1).all()


# --- in a run ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run():
    return hs.circuits(made.language_model(made.wired()), **RUN, switch_off=1)


def test_a_run_says_which_kinds_of_heads_copying_rests_on(run):
    (told,) = [one for one in run_findings(run.tree) if one.startswith("Random tokens that")]
    assert "with the best head of a kind off than with a random one of the same layers" in told
    assert all(name in told for name in ("induction", "previous token, made inputs", "copying"))
    assert "duplicate" not in told


def test_the_best_heads_are_those_that_do_it_most_and_a_kind_that_fewer_do_is_left_out(run):
    best = switched_off.best_heads(run["circuits"], 1)
    assert (best["previous_token"], best["duplicate_token"]) == ([(0, 0)], [(0, 1)])
    assert best["induction"] == best["copying"] == [(1, 0)]
    assert "copying" not in switched_off.best_heads(run["circuits"], 2)


def test_a_run_says_nothing_where_heads_at_random_cost_as_much():
    run = hs.circuits(made.language_model(made.small()), **RUN, switch_off=1)
    assert "off_more" in run["circuits"]
    assert not [one for one in run_findings(run.tree) if one.startswith("Random tokens that")]


@pytest.mark.parametrize(
    ("sets", "says"),
    [
        ({"a": [(2, 0)]}, "no head"),
        ({"a": []}, "found 0 heads to switch off; wanted 1 to 4"),
        ({"a": [(0, at) for at in range(4)] + [(1, 0)]}, "found 5 heads .* wanted 1 to 4"),
    ],
)
def test_what_cannot_be_switched_off_is_refused(sets, says):
    with pytest.raises(InputError, match=says):
        hs.prompts.switch_off(made.language_model(made.small()), sets, **QUICK)


def test_a_run_that_would_leave_too_few_others_is_refused():
    with pytest.raises(InputError, match="found 5 heads to switch off; wanted 0 to 4"):
        hs.circuits(made.language_model(made.small()), **RUN, switch_off=5)
