"""Does the trial of a run's labels give the run again, with verdicts, and refuse what it cannot?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import headscope as hs
from headscope.claims.attention_rule import POSITION, AttentionRule
from headscope.claims.head_labels import head_labels
from headscope.claims.headline import headline
from headscope.claims.plan import COPIES
from headscope.claims.question import named
from headscope.claims.reading import Reading
from headscope.errors import InputError, RunStopped
from headscope.experiments.trial import trying
from headscope.experiments.trial.section import LONGEST, findings, table, tables
from headscope.experiments.trial.terms import COPIED
from headscope.experiments.trial.trial import trial
from headscope.experiments.trial.verdicts import CONFIRMED, NOT_CONFIRMED, SIGNS, tried_labels
from headscope.report.build import render
from headscope.run.execution import Execution
from headscope.run.store import open_run
from headscope.wired import annotated_corpus, wire
from headscope.wired.decks import deck

STOCK = Execution(linears="stock")
TEXTS = annotated_corpus(12, each=2, seed=5)
HEADS = ("previous token", "nsubj dependent_to_head", "rests on sep", "previous token, stops rest")
FEW = {"inputs": 12, "replicates": 20}


@pytest.fixture(scope="module")
def model() -> hs.Model:
    known = {head.name: head for head in deck("bert", "sentences", 10.0)}
    made = wire("bert", [[known[name] for name in HEADS]] * 2, seed=3)
    return hs.load(made.network, tokenizer=made.tokenizer)


@pytest.fixture(scope="module")
def atlas(model, tmp_path_factory) -> hs.Run:
    folder = tmp_path_factory.mktemp("atlas") / "run"
    asks = ("surface", "norms", "dependency")
    return hs.atlas(
        model, annotated_corpus(40, each=2), analyses=asks, control="none", output=folder,
        execution=STOCK,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tried(model, atlas) -> hs.Run:
    return trial(atlas, corpus=TEXTS, model=model, execution=STOCK, **FEW)


def reading(run: hs.Run) -> Reading:
    question = named("trial")
    assert question is not None
    return Reading(run.tree, question)


def test_the_result_is_the_run_again_with_verdicts(atlas, tried) -> None:
    for name in ("surface", "norms", "dependency"):
        assert tried[name].equals(atlas[name])
    for name in ("documents", "corpus", "tokens", "model_sha256"):
        assert tried.tree.attrs[name] == atlas.tree.attrs[name]
    before = {place: [c.name for c in one.labels] for place, one in head_labels(atlas.tree).items()}
    for place, one in head_labels(tried.tree).items():
        assert [claim.name for claim in one.labels] == before[place]
        for claim in one.labels:
            assert claim.verdict in SIGNS
            assert claim.label.endswith(f"{claim.sign} {claim.verdict}")
            assert claim.short.endswith(claim.sign)
    verdicts = {
        (claim.kind, claim.head): claim.verdict
        for one in head_labels(tried.tree).values()
        for claim in one.labels
        if claim.layer == 0
    }
    assert verdicts["previous", 0] == verdicts["dependency", 1] == CONFIRMED
    assert verdicts["sink", 2] == CONFIRMED
    assert verdicts["previous", 3] == NOT_CONFIRMED  # it looks there, and takes nothing


def test_what_was_tried_stands_in_the_first_words_the_page_and_the_table(tried) -> None:
    labels = sum(len(one.labels) for one in head_labels(tried.tree).values())
    words = findings(reading(tried))[0]
    assert f"of {labels} labels were tried: " in words
    assert words in headline(tried.tree) or not headline(tried.tree).startswith("By")
    rows = tables(reading(tried))["trial_labels"]
    assert len(rows) == tried["trial"].sizes["hypothesis"]
    assert set(rows["verdict"]) <= set(SIGNS)
    page = render(tried.tree, tried.manifest)
    assert "confirmed by trial" in page
    assert "Does what labels say matter?" in page
    shown = table(reading(tried))
    assert shown is not None
    assert len(shown.groups[0].rows) == sum(
        one.outcome != "untestable" for one in tried_labels(tried["trial"])
    )


def test_what_is_copied_is_written_in_nats_and_a_share_that_says_nothing_not_at_all(tried) -> None:
    tree = tried.tree.copy(deep=True)
    data = tree["trial"].to_dataset()
    for name, value in (("expects", COPIES), ("measure", COPIED)):
        data[name] = data[name].copy(data=np.full(data[name].shape, value))
    data["share_ci_low"] = data["share_ci_low"] - 2 * LONGEST
    tree["trial"].dataset = data
    question = named("trial")
    assert question is not None
    run = Reading(tree, question)
    shown = table(run)
    assert shown is not None
    assert shown.columns[2].unit == "%, or nats"
    for _, _, effect, share, verdict in shown.groups[0].rows:
        assert effect.text.endswith(" nats")
        assert " % beyond" not in verdict.small
        assert share.text == ""
    assert set(tables(run)["trial_labels"]["unit"]) == {"nats"}


def test_heads_with_one_label_are_also_tried_together(tried) -> None:
    together = [one for one in tried_labels(tried["trial"]) if len(one.heads) > 1]
    assert {one.name for one in together} >= {"previous token", "subject → verb"}
    subject = next(one for one in together if one.name == "subject → verb")
    assert subject.heads == ((0, 1), (1, 1))
    assert subject.outcome == CONFIRMED


def test_a_users_own_rule_is_tried_beside_the_labels(model, atlas) -> None:
    two = AttentionRule(
        "two tokens back, of mine", POSITION, lambda read: read.even(read.offset == -2)
    )
    mine = {"heads": {"0.0": {"rules": [{"rule": "the previous token"}, {"rule": two}]}}}
    run = trial(
        atlas, corpus=TEXTS, model=model, rules=mine, heads=[(0, 1)], execution=STOCK, **FEW
    )
    own = [one for one in tried_labels(run["trial"]) if not one.kind]
    assert [one.name for one in own] == ["the previous token", "two tokens back, of mine"]
    assert [one.outcome for one in own] == [CONFIRMED, NOT_CONFIRMED]
    assert not any("together" in words for words in findings(reading(run)))  # it is of one head
    assert all(one.heads == ((0, 1),) for one in tried_labels(run["trial"]) if one.kind)


def test_a_stopped_trial_goes_on_to_the_same_bits(
    model, atlas, tried, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(trying, "PART_TOKENS", 20)

    def stop(done: int, _all: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    asks = {"corpus": TEXTS, "model": model, **FEW}
    halted = replace(STOCK, progress=stop)
    with pytest.raises(RunStopped):
        trial(atlas, output=tmp_path / "run", execution=halted, **asks)
    assert list(tmp_path.glob("run/shards/*/*.shard"))
    trial(atlas, output=tmp_path / "run", execution=STOCK, **asks)
    again = open_run(tmp_path / "run")
    for name in ("effect", "beyond", "share", "effect_ci_low"):
        assert again["trial"][name].equals(tried["trial"][name])
    assert again.manifest["command"] or again.manifest["spec"]["command"] == "trial"


def test_of_random_weights_nothing_is_confirmed(atlas, model) -> None:
    import torch
    import transformers as T

    torch.manual_seed(0)
    fresh = hs.load(T.BertModel(model.network.config).eval(), tokenizer=model.tokenizer)
    own = {"heads": {f"0.{h}": {"rules": [{"rule": "subject → verb"}]} for h in range(4)}}
    bare = hs.atlas(fresh, TEXTS, analyses=["entropy"], control="none", execution=STOCK)
    run = trial(bare, corpus=TEXTS, model=fresh, rules=own, execution=STOCK, **FEW)
    assert not [one for one in tried_labels(run["trial"]) if one.outcome == CONFIRMED]


@pytest.mark.parametrize(
    ("asks", "error", "words"),
    [
        ({"heads": ["L9H1"]}, InputError, "no head L9"),
        (
            {"rules": {"heads": {"0.0": {"rules": [{"rule": "the previous tken"}]}}}},
            InputError,
            "did you mean",
        ),
        ({"inputs": 3}, InputError, "inputs"),
    ],
)
def test_what_cannot_be_tried_is_refused(model, atlas, asks, error, words) -> None:
    with pytest.raises(error, match=words):
        trial(atlas, **{"corpus": TEXTS, "model": model, "execution": STOCK, **asks})


def test_another_model_is_refused(atlas, tiny_place) -> None:
    with pytest.raises(InputError, match="has other weights now"):
        trial(atlas, corpus=TEXTS, model=str(tiny_place), execution=STOCK)


def test_a_run_without_labels_is_refused(model, tmp_path) -> None:
    run = hs.atlas(model, TEXTS, analyses=["mixing"], control="none", execution=STOCK)
    with pytest.raises(InputError, match="found no label"):
        trial(run, corpus=TEXTS, model=model)


def test_texts_too_few_leave_labels_untestable(model, atlas) -> None:
    run = trial(atlas, corpus=annotated_corpus(3, each=1), model=model, execution=STOCK, **FEW)
    outcomes = {one.outcome for one in tried_labels(run["trial"])}
    assert outcomes == {"untestable"}
    assert all("wanted 8" in str(why) for why in run["trial"]["why"].values)
    assert not np.isfinite(run["trial"]["effect"].values).any()


def test_of_many_labels_repair_is_surely_said_by_longer_intervals(tried) -> None:
    one = tried["trial"]
    own = [row for row, it in enumerate(tried_labels(one)) if it.outcome == CONFIRMED]
    changed = one.copy(deep=True)
    for name, value in (("repaired", 1.0), ("repaired_ci_low", 0.01), ("repaired_ci_high", 1.99)):
        changed[name].values[own] = value
    assert not any(it.repaired for it in tried_labels(changed))  # 0.01 above 0 for one label alone
    changed["repaired_ci_low"].values[own] = 0.9
    assert all(tried_labels(changed)[row].repaired for row in own)
