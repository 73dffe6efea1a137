"""Does the first sentence speak of what was asked, and is no trained model called untrained?"""

import pytest
import xarray as xr

from headscope.claims.control import CONTROL
from headscope.claims.headline import headline, is_trained, labelled_heads, looks_untrained
from headscope.claims.verdict import Outcome
from recorded import recorded

COMMON = ("surface", "entropy")
NARROW = ("norms", "features", "coreference", "pairs", "dependency", "sinks")


def held(*groups, layers=2, knows=True):
    """A run of 2 × 12 heads beside a network without training: its own numbers, or none."""
    run = recorded(layers, 12, groups)
    own = {name: group.to_dataset() for name, group in run.children.items()}
    network = xr.Dataset(attrs=run.attrs)
    control = {} if knows else {f"{CONTROL}/untrained/{name}": one for name, one in own.items()}
    nodes = {"/": network, **own, f"{CONTROL}/untrained": network, **control}
    return xr.DataTree.from_dict(nodes)


def test_a_model_like_its_control_looks_untrained_by_questions_that_every_trained_model_answers():
    run = held(*COMMON, knows=False)
    assert labelled_heads(run) == (0, 24)
    assert headline(run).startswith("This looks like an untrained model: by surface and entropy, ")
    assert looks_untrained(run)


@pytest.mark.parametrize("groups", [(name,) for name in (*COMMON, *NARROW)])
def test_one_question_alone_calls_no_model_untrained(groups):
    run = held(*groups, knows=False)
    assert not looks_untrained(run)
    assert is_trained(run).outcome is Outcome.NOT_ASKED
    assert headline(run) == (
        f"By {groups[0]}, none of its 24 heads stands out against networks without "
        "training that read a sample of the same inputs. Whether it is trained, this cannot tell: "
        "it takes two of surface, entropy, distance and patterns."
    )


def test_of_few_heads_it_is_not_told_whether_they_learned():
    run = held(*COMMON, layers=1, knows=False)
    assert not looks_untrained(run)
    assert "it takes more heads" in headline(run)


def test_a_headline_names_what_was_asked_and_counts_its_labels_alone():
    run = held(*COMMON)
    labelled, _ = labelled_heads(run)
    assert labelled
    assert headline(run).startswith(
        f"By surface and entropy, {labelled} of its 24 heads stand out "
    )


def test_where_nothing_labels_heads_the_headline_says_what_would():
    run = held("divergence")
    assert headline(run) == (
        "Nothing that was asked here labels heads; surface, entropy, distance and patterns would."
    )
