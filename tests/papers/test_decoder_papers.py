"""Do the papers on decoders run on a stand-in, and are their lines held as they say?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr

from experiments.circuits.decoders import english, network
from headscope.claims.verdict import Outcome
from headscope.errors import ModelError
from headscope.experiments.circuits.prompts import input_ids
from headscope.model.language_model import LanguageModel
from headscope.model.model import Model
from headscope.papers import decoder_runs, olsson2022, workspace, wu2024
from headscope.papers.claim_engine import judge
from headscope.papers.own_models import OwnModel
from headscope.papers.paper_data import PaperData
from headscope.papers.quantities import PaperRuns
from headscope.papers.run_paper import papers, reproduced
from headscope.papers.workspace import Workspace
from headscope.run.store import Run
from reference.circuits import difference, head_inputs, normed

SMALL = {
    "SEQUENCES": 10,
    "LENGTH": 6,
    "PAIRS": 20,
    "HAYSTACK": 40,
    "NEEDLES": 10,
    "ROOM": 40,
    "STEPS": 6,
}


@pytest.fixture(scope="module")
def language():
    """A random GPT-2 with biases of its values."""
    net = network("GPT-2", vocab_size=len(english()), n_positions=256)
    with torch.no_grad():
        for block in net.transformer.h:
            block.attn.c_attn.bias.normal_(generator=torch.Generator().manual_seed(0))
    return LanguageModel(Model(net, english(), "stand-in", "", "stand-in"), "causal")


@pytest.fixture(scope="module")
def told(language, tmp_path_factory):
    """Two papers on it, whatever needles it tells."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(decoder_runs, name, value)
        patch.setattr("headscope.experiments.circuits.result.ANSWERED", -1)
        patch.setattr(workspace, "load_language_model", lambda *_a, **_k: language)
        patch.setattr("headscope.papers.run_paper._figures", lambda _outcome: None)
        return {
            name: reproduced(papers()[name], desk(tmp_path_factory.mktemp(name), "stand-in"))
            for name in ("wang2023", "wu2024")
        }


def desk(folder, model):
    return Workspace(model, PaperData([]), folder, replicates=10, threads=1, reports=False)


def test_papers_on_decoders_run_on_a_stand_in(told):
    for name, outcome in told.items():
        assert not outcome.absent, name
        assert not outcome.failed, name
        assert all(one.measured for one in outcome.claims), name
        assert (outcome.folder / "report.html").is_file()


def test_a_random_network_does_what_no_paper_says(told):
    assert not [
        one.claim.key for outcome in told.values() for one in outcome.claims if one.verdict.holds
    ]
    runs = PaperRuns({"repeated": told["wang2023"].runs["ioi"]})
    lines = [judge(claim, runs) for claim in papers()["olsson2022"].claims]
    assert Outcome.HOLDS not in {one.outcome for one in lines if one.claim.direction}
    assert Outcome.FAILS in {one.outcome for one in lines}


def test_an_earlier_head_of_the_previous_token_counts_only_if_both_surely_are_such():
    """Of two heads at random the first stands in an earlier layer nearly every other time."""
    line = next(one for one in papers()["olsson2022"].claims if one.key == "earlier")
    for size, verdict in ((0.9, Outcome.HOLDS), (0.2, Outcome.FAILS)):
        score = np.zeros((21, 2, 4, 4))
        score[:, 0, 0, 1], score[:, 1, 2, 3] = size, size
        score[1:] *= 1 + 0.001 * (np.arange(20) % 2 - 0.5)[:, None, None, None]
        told = {
            "score": (("circuit", "layer", "head"), score[0]),
            "copied": (("layer", "head"), score[0, 0]),
            "score_draws": (("replicate", "circuit", "layer", "head"), score),
            "copied_draws": (("replicate", "layer", "head"), score[:, 0]),
        }
        dataset = xr.Dataset(told, coords={"circuit": ["previous_token", "induction"]})
        tree = xr.DataTree.from_dict(
            {"/": xr.Dataset(attrs={"documents": 20}), "circuits": dataset}
        )
        found = judge(line, PaperRuns({"repeated": Run(tree, {})}))
        assert (found.outcome, found.measured.value) == (verdict, 2)
        assert found.measured.detail == "L1·H2, then L3·H4; of two heads at random in 38 % of draws"


def test_what_heads_write_leaves_value_biases_out(told, language):
    """As TransformerLens: from the inputs of W_O less those biases, and the last norm's formula."""
    net = language.model.network
    ids = input_ids(english(), decoder_runs.BAG).tolist()
    blocks, kept = net.transformer.h, []
    hook = net.transformer.ln_f.register_forward_pre_hook(lambda _m, args: kept.append(args[0]))
    given = head_inputs(net, [block.attn.c_proj for block in blocks], ids)
    hook.remove()
    mary, john = (english().convert_tokens_to_ids(name) for name in ("Mary", "John"))
    ahead = net.lm_head.weight[mary] - net.lm_head.weight[john]
    norm = net.transformer.ln_f
    direct = told["wang2023"].runs["bag"]["writes"]["direct"].values
    for layer, (block, z) in enumerate(zip(blocks, given, strict=True)):
        width = len(z)
        parts = (z - block.attn.c_attn.bias[2 * width :]).view(direct.shape[1], -1)
        weight = block.attn.c_proj.weight.view(direct.shape[1], -1, width)
        for head in range(direct.shape[1]):
            part = normed(
                parts[head] @ weight[head],
                kept[0][0, -1],
                norm.weight,
                centred=True,
                epsilon=norm.eps,
            )
            assert direct[layer, head] == pytest.approx(float((part @ ahead).detach()), abs=1e-4)
    found = told["wang2023"].runs["bag"]["writes"]["logit_difference"]
    assert float(found) == pytest.approx(difference(net, ids, mary, john), abs=1e-4)


def scores(own: bool, values: np.ndarray, model: str = "") -> PaperRuns:
    """Runs whose retrieval scores are these, [replicate + 1, layer, head]."""
    draws = {
        "retrieval_steps": (("layer", "head"), values[0]),
        "retrieval_steps_draws": (("replicate", "layer", "head"), values),
    }
    tree = xr.DataTree.from_dict(
        {"/": xr.Dataset(attrs={"documents": 20}), "circuits": xr.Dataset(draws)}
    )
    return PaperRuns({"needle": Run(tree, {})}, own=own, model=model)


def test_a_line_is_of_its_models_head_and_of_the_best_ones_elsewhere():
    values = np.full((21, 32, 32), 0.001)
    values[:, 16, 19], values[:, 3, 2] = 0.94, 0.97
    values[1:, (16, 3), (19, 2)] += 0.004 * (np.arange(20) % 2 - 0.5)[:, None]
    first, second = papers()["wu2024"].claims[:2]
    own = judge(first, scores(True, values, "yaofu/llama-2-7b-80k"))
    assert (own.outcome, own.measured.head) == (Outcome.HOLDS, (16, 19))
    assert own.reproduced
    other = [judge(one, scores(False, values)) for one in (first, second)]
    assert [one.outcome for one in other] == [Outcome.HOLDS] * 2
    assert [one.measured.head for one in other] == [(3, 2), (16, 19)]
    elsewhere = judge(first, scores(True, values, "01-ai/Yi-6B-200K"))
    assert elsewhere.outcome is Outcome.NOT_ASKED
    assert "--model yaofu/llama-2-7b-80k" in elsewhere.verdict.needs


def test_a_head_that_was_chosen_must_lie_surely_above_for_all_at_once():
    """Of 1,024 heads the best of noise has an interval of its own above the bound, and no more."""
    rng = np.random.default_rng(0)
    values = np.full((21, 32, 32), 0.0)
    values[:, 5, 5] = 0.13
    values[1:, 5, 5] += 0.002 * rng.choice([-1, 1], 20)
    own = replace(papers()["wu2024"].claims[0], measure=wu2024._score((5, 5), 0))
    assert judge(own, scores(True, values)).verdict.holds
    assert judge(own, scores(False, values)).outcome is Outcome.CANNOT_TELL


def test_a_model_that_cannot_be_had_leaves_every_line_unasked(tmp_path, monkeypatch):
    def refuse(name, **_more):
        raise ModelError(f"{name!r} is no model folder, and the hub cannot be reached")

    monkeypatch.setattr(workspace, "load_language_model", refuse)
    outcome = reproduced(papers()["wu2024"], desk(tmp_path / "out", papers()["wu2024"].model))
    assert {one.outcome for one in outcome.claims} == {Outcome.NOT_ASKED}
    needs = outcome.claims[0].verdict.needs
    assert needs.startswith("needs yaofu/llama-2-7b-80k, or another decoder")
    assert (
        "--model 01-ai/Yi-6B-200K"
        in {one.claim.model: one for one in outcome.claims}["01-ai/Yi-6B-200K"].verdict.needs
    )
    assert "the hub cannot be reached" in (outcome.folder / "report.html").read_text("utf-8")
    with pytest.raises(ModelError, match="no model folder"):
        reproduced(papers()["wu2024"], desk(tmp_path / "other", "./mine"))


def test_every_model_with_public_scores_has_lines():
    models = {claim.model for claim in papers()["wu2024"].claims}
    assert len(models) == 7
    assert models == {own.id for own in papers()["wu2024"].own}
    for own in papers()["wu2024"].own:  # of three models no head's score is known, but shares are
        known = [one.published_text for one in papers()["wu2024"].claims if one.model == own.id]
        assert all(text.count("/") for text in known[-2:])
    assert all(isinstance(own, OwnModel) for own in papers()["olsson2022"].own)
    assert olsson2022.PAPER.decoder
