"""Does `headscope head` tell what a head is, in the terminal, as JSON, page and figure?"""

from __future__ import annotations

import json

import pytest

from cli.conftest import refused
from headscope.cli.options import head_named
from headscope.core.head_labels import head_labels
from headscope.errors import InputError
from headscope.heads.head_card import card_text, head_card
from recorded import ALONE, BOTH, DECODER, LANGUAGE, hostile, recorded, with_maps

HOSTILE = ["[CLS]", "\x1b[31mred", "a\nb", "\u202egnp", "\ud800", "[SEP]"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A folder as `atlas` leaves one, of made numbers."""
    tree = with_maps(recorded(6, 12, groups=BOTH))
    folder = tmp_path_factory.mktemp("run")
    tree.to_netcdf(folder / "atlas.nc", engine="h5netcdf")
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The same of six heads: for what concerns the files, whatever they hold."""
    tree = with_maps(recorded(2, 3, groups=BOTH))
    folder = tmp_path_factory.mktemp("small")
    tree.to_netcdf(folder / "atlas.nc", engine="h5netcdf")
    return folder


# --- names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["L8H10", "L8·H10", "8-10", "l8h10", "L8-H10", " L8H10 ", "L08H10"]
)
def test_heads_are_named_from_1_as_papers_do(name):
    assert head_named(name) == (7, 9)


@pytest.mark.parametrize(
    "name", ["0-3", "3-0", "L0H1", "8.10", "8", "L8", "", "8-10-2", "-8-10", "H10L8", "8–10", "٨-١"]
)
def test_any_other_name_is_refused_and_says_what_is_wanted(name):
    with pytest.raises(InputError, match=r"from 1, as papers count: L8H10, L8·H10 or 8-10"):
        head_named(name)


def test_view_counts_the_same_way():
    from headscope.cli.view import _heads

    assert _heads("--heads", "3-9") == [head_named("3-9")]


# --- the command ----------------------------------------------------------------------------


def test_the_card_tells_labels_numbers_relations_maps_and_near_heads(headscope, run):
    done = headscope("head", run, "L3H1")
    assert (done.code, done.err) == (0, "")
    tree = with_maps(recorded(6, 12, groups=BOTH))
    assert done.out.startswith("L3·H1 of demo: n = 14 documents\n\n1. ")
    for label in head_labels(tree)[2, 0].labels:
        assert label.label in done.out
    for words in (
        "Best relations", "direct object → verb, 71 % [", "1 of 72 heads", "Classes of its maps",
        "Nearest heads", "Typical maps, of the classes", "diagonal, 90 % sure", "a → a  70 %",
        "\nEntropy ", "entropy, all tokens", "●",
    ):  # fmt: skip
        assert words in done.out


def test_json_holds_the_same_and_counts_from_0(headscope, run):
    told = json.loads(headscope("head", run, "4-5", "--json").out)
    assert (told["run"], told["layer"], told["head"], told["name"]) == (str(run), 3, 4, "L4·H5")
    assert {"labels", "numbers", "relations", "classes", "nearest", "maps"} <= set(told)


def test_page_and_figures_are_written_instead(headscope, small, tmp_path):
    done = headscope("head", small, "L2H3", "-o", "a.html", "--svg", "b.svg", "--png", "c.png")
    assert (done.code, done.out) == (0, "svg: b.svg\npng: c.png\ncard: a.html\n")
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
    refused(headscope("head", small, "L1H1", "--svg", "a.jpg"), "wanted a name in .svg or .png")


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
        ((1, 1), {"groups": ()}), ((2, 2), {"kind": DECODER}), ((2, 2), {"kind": ALONE}),
        ((1, 1), {}),
    ],
)  # fmt: skip
def test_a_card_of_little_is_short_and_not_wrong(size, options):
    tree = recorded(*size, **options)
    text = card_text(tree, head_card(tree, 0, 0))
    assert "nan" not in text
    assert text.startswith(f"L1·H1 of {tree.attrs['model']}")


def test_an_unlabelled_head_says_so():
    text = card_text(recorded(1, 1, groups=()), head_card(recorded(1, 1, groups=()), 0, 0))
    assert text.splitlines()[2:] == ["unlabelled"]
