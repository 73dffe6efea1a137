"""Does `headscope head` tell what a head is, in the terminal, as JSON, page and figure?"""

from __future__ import annotations

import json

import pytest

from cli.conftest import refused
from headscope.claims.head_labels import head_labels
from headscope.core.head_names import HeadNames, counting_from, head_named
from headscope.errors import InputError
from headscope.heads.head_card import card_text, head_card
from headscope.run.netcdf import tree_as_netcdf
from recorded import ALONE, BOTH, DECODER, LANGUAGE, hostile, recorded, with_maps

HOSTILE = ["[CLS]", "\x1b[31mred", "a\nb", "\u202egnp", "\ud800", "[SEP]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder as `atlas` leaves one, of made numbers."""
    tree = with_maps(recorded(6, 12, groups=BOTH))
    folder = tmp_path_factory.mktemp("run")
    (folder / "atlas.nc").write_bytes(tree_as_netcdf(tree))
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The same of six heads: for what concerns the files, whatever they hold."""
    tree = with_maps(recorded(2, 3, groups=BOTH))
    folder = tmp_path_factory.mktemp("small")
    (folder / "atlas.nc").write_bytes(tree_as_netcdf(tree))
    return folder


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["L8H10", "L8·H10", "8-10", "l8h10", "L8-H10", " L8H10 ", "L08H10"]
)
def test_heads_are_named_from_1_as_papers_do(name):
    assert head_named(name) == (7, 9)


@pytest.mark.parametrize(
    "name",
    ["0-3", "3-0", "L0H1", "8.", "8", "L8", "", "8-10-2", "-8-10", "H10L8", "8–10", "٨-١", "L8.10"],
)
def test_any_other_name_is_refused_and_says_what_is_wanted(name):
    with pytest.raises(InputError) as refusal:
        head_named(name)
    says = f"found the head {name!r}; wanted layer and head from 1, as papers count: L8H10"
    assert str(refusal.value).startswith(says)
    assert "--zero-based" in str(refusal.value)


@pytest.mark.parametrize("start", [0, 1])
def test_a_name_with_a_dot_counts_from_0_however_others_count(start):
    with counting_from(start):
        assert [head_named("7.9"), head_named("0.0")] == [(7, 9), (0, 0)]


@pytest.mark.parametrize("name", ["L7H9", "L7·H9", "7-9", "7.9"])
def test_where_names_count_from_0_every_name_does(name):
    with counting_from(0):
        assert head_named(name) == (7, 9)
        assert head_named(name.replace("7", "0")) == (0, 9)
    assert (head_named(name) == (7, 9)) == (name == "7.9")


def test_a_refusal_where_names_count_from_0_says_so():
    with counting_from(0), pytest.raises(InputError) as refusal:
        head_named("head 3")
    told = str(refusal.value)
    assert "wanted layer and head from 0, as TransformerLens counts: L7H9" in told
    assert "without --zero-based (headscope.options.zero_based), L8H10 and 8-10 count" in told


def test_both_ways_of_counting_name_one_head():
    """What is echoed reads back as the same head, in either way."""
    one, other = HeadNames(()).both(7, 9).rstrip(")").split(" (")
    assert head_named(one) == head_named(other.removesuffix(" from 0")) == (7, 9)
    with counting_from(0):
        one, other = HeadNames(()).both(7, 9).rstrip(")").split(" (")
        assert head_named(one.removesuffix(" from 0")) == (7, 9)
    assert head_named(other.removesuffix(" from 1")) == (7, 9)


def test_an_option_that_is_misspelt_is_an_error():
    import headscope as hs

    with pytest.raises(AttributeError):
        hs.options.zerobased = True
    assert hs.options.zero_based is False


def test_the_global_option_counts_from_0_for_one_command_wherever_it_stands(headscope, run):
    for line in (("--zero-based", "head", run, "L2H0"), ("head", run, "L2H0", "--zero-based")):
        assert headscope(*line).out.startswith("L2·H0 from 0 (L3·H1 from 1) of demo: n = 14")
    refused(headscope("head", run, "L2H0"), "found the head 'L2H0'", "from 1")


# --- the command ----------------------------------------------------------------------------


def test_the_card_tells_labels_numbers_relations_maps_and_near_heads(headscope, run):
    done = headscope("head", run, "L3H1")
    assert done.code == 0
    assert "has no manifest.json: nothing says what these results were computed from" in done.err
    tree = with_maps(recorded(6, 12, groups=BOTH))
    assert done.out.startswith("L3·H1 (2.0 from 0) of demo: n = 14 documents\n\n1. ")
    for label in head_labels(tree)[2, 0].labels:
        assert label.label in done.out
    for words in (
        "Best relations",
        "direct object → verb, 71 % [",
        "1 of 72 heads",
        "Classes of its maps",
        "Nearest heads",
        "Typical maps, of the classes",
        "diagonal, 90 % sure",
        "a → a  70 %",
        "\nEntropy ",
        "entropy, all tokens",
        "●",
    ):
        assert words in done.out


def test_json_holds_the_same_and_counts_from_0(headscope, run):
    told = json.loads(headscope("head", run, "4-5", "--json").out)
    assert (told["run"], told["layer"], told["head"], told["name"]) == (str(run), 3, 4, "L4·H5")
    assert {"labels", "numbers", "relations", "classes", "nearest", "maps"} <= set(told)


def test_page_and_figures_are_written_instead(headscope, small, tmp_path):
    done = headscope("head", small, "L2H3", "-o", "a.html", "--svg", "b.svg", "--png", "c.png")
    assert (done.code, done.out) == (
        0,
        "head: L2·H3 (1.2 from 0)\nsvg: b.svg\npng: c.png\ncard: a.html\n",
    )
    assert "default-src &#39;none&#39;" in (tmp_path / "a.html").read_text("utf-8")
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(headscope("head", small, "L2H3", "--json", "-o", "d.html").out)
    assert (told["card"], told["name"]) == ("d.html", "L2·H3")


def test_a_head_that_is_not_there_is_refused(headscope, run):
    refused(headscope("head", run, "L13H1"), "found no head L13·H1", "L1·H1 to L6·H12")
    refused(headscope("head", run, "0-3"), "found the head '0-3'", "from 1")


def test_what_is_no_run_is_refused(headscope, tmp_path):
    refused(headscope("head", tmp_path, "L1H1"), "is no run folder")


def test_a_page_that_cannot_be_written_is_refused_in_words(headscope, small, tmp_path):
    (tmp_path / "file").write_text("")
    refused(headscope("head", small, "L1H1", "-o", "file/a.html"), "cannot write", "choose another")
    refused(headscope("head", small, "L1H1", "--svg", "a.jpg"), "a name in .svg, .png or .pdf")


# --- text -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        lambda: with_maps(recorded(2, 3, model="\x1b[2Jm", sep_token="\x07"), tokens=HOSTILE),
        lambda: hostile(recorded(2, 3, groups=LANGUAGE)),
        lambda: hostile(recorded(6, 12, groups=BOTH)),
    ],
)
def test_nothing_of_a_card_can_steer_a_terminal(made, capsys):
    """Control characters become �, others that steer their escape; no token ends a line."""
    from headscope.cli.terminal_output import say

    tree = made()
    say(card_text(tree, head_card(tree, 0, 0)))
    written = capsys.readouterr().out
    assert "\x1b" not in written
    assert all(sign.isprintable() or sign == "\n" for sign in written)
    if tree.attrs["sep_token"] == "\x07":
        assert "[CLS] \ufffd[31mred a\ufffdb \\u202egnp \ufffd [SEP]" in written


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((1, 1), {"groups": ()}),
        ((2, 2), {"kind": DECODER}),
        ((2, 2), {"kind": ALONE}),
        ((1, 1), {}),
    ],
)
def test_a_card_of_little_is_short_and_not_wrong(size, options):
    tree = recorded(*size, **options)
    text = card_text(tree, head_card(tree, 0, 0))
    assert "nan" not in text
    assert text.startswith(f"L1·H1 (0.0 from 0) of {tree.attrs['model']}")


def test_an_unlabelled_head_says_so():
    text = card_text(recorded(1, 1, groups=()), head_card(recorded(1, 1, groups=()), 0, 0))
    assert text.splitlines()[2:] == ["unlabelled"]
