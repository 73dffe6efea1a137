"""Is everything impossible that a question can announce refused by name, and the rest let on?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from headscope.claims import question as module
from headscope.claims.plan import LabelRule, PicturePlan
from headscope.claims.question import Question, check_question, questions, refused, register
from headscope.claims.terms import Term
from headscope.core import plug_ins
from headscope.errors import HeadscopeError, InputError
from headscope.heads.tables import all_tables
from headscope.report import heads
from headscope.report.example_views import example_views
from recorded import recorded

TERMS = {"weight": Term("weight", "What it gets.", "ours")}
RULES = {"sure": LabelRule("sure", number="weight", least=0.5, source="ours", variable="weight")}
PICTURE = {"name": "weights", "title": "Weights", "panels": list, "caption": "All of them."}


@dataclass(frozen=True)
class Package:
    """A distribution."""

    name: str


@dataclass(frozen=True)
class Entry:
    """An entry point of a distribution, which loads what is given."""

    name: str
    value: str
    loaded: Any
    distribution: str

    @property
    def dist(self) -> Package:
        return Package(self.distribution)

    def load(self) -> Any:
        return self.loaded


@pytest.fixture
def announced(monkeypatch) -> Iterator[Any]:
    """Sets what entry points there are, for one test."""
    ours = [Entry(one.name, "", one, "headscope") for one in questions()]

    def announce(*entries: Entry, keep: bool = True) -> None:
        there = [*(ours if keep else ()), *entries]
        monkeypatch.setattr(plug_ins, "entry_points", lambda group: there)
        module._announced.cache_clear()

    yield announce
    monkeypatch.undo()
    module._announced.cache_clear()


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"name": "two words"}, "letters, digits"),
        (
            {"figures": (PicturePlan(**PICTURE | {"caption": ""}),)},
            "'weights' has no caption",
        ),
        ({"figures": (SimpleNamespace(**PICTURE),)}, "wanted a PicturePlan"),
        ({"terms": {"weight": "heavy"}}, "its term 'weight'"),
        ({"rules": {"sure": 0.5}}, "its rule 'sure'"),
        ({"rules": RULES}, "variable 'weight', which it does not have"),
        ({"claims": list}, "no rule for labels"),
        ({"terms": "no_such_module:TERMS"}, "no_such_module has no 'TERMS'"),
        ({"terms": "math:TERMS"}, "math has no 'TERMS'"),
    ],
)
def test_what_is_impossible_is_refused_with_its_reason(parts, says):
    with pytest.raises(InputError, match=says):
        check_question(Question(**{"name": "largest", **parts}))


def test_a_question_with_all_its_parts_is_possible():
    picture = PicturePlan(**PICTURE)
    check_question(
        Question(name="largest", figures=(picture,), terms=TERMS, rules=RULES, claims=list)
    )


def fails(*_: object) -> None:
    raise ZeroDivisionError("no heads")


@pytest.mark.parametrize(
    ("kind", "use"),
    [
        ("tables", all_tables),
        ("remarks", heads.remarks),
        ("places", heads.data),
        ("looks", lambda tree: example_views(tree, model="m")),
    ],
)
def test_a_part_of_a_plug_in_that_fails_is_left_out_and_the_rest_goes_on(announced, kind, use):
    plain, tree = (recorded(2, 3, groups=("entropy", "examples")) for _ in range(2))
    tree["mine"] = tree["entropy"].copy()
    alone = use(plain)
    announced(Entry("mine", "mine:QUESTION", Question(name="mine", **{kind: fails}), "mine"))
    with pytest.warns(UserWarning, match=f"'{kind}' of the plug-in 'mine' is left out: ZeroDiv"):
        made = use(tree)
    assert type(made) is type(alone)
    if kind == "tables":
        assert set(made) == {*alone, "mine"}  # and its tidy table


def test_a_name_that_is_taken_is_refused_wherever_it_is_announced(announced):
    with pytest.raises(InputError, match="two questions are called 'surface'"):
        register(Question(name="surface"))
    announced(Entry("mine", "mine:QUESTION", Question(name="surface"), "mine"))
    with pytest.warns(UserWarning, match="'mine' of mine is left out: another question is called"):
        names = [one.name for one in questions()]
    assert names.count("surface") == 1
    assert len(refused()) == 1


def test_what_is_no_question_is_left_out_and_the_rest_goes_on(announced):
    class Bare:
        name = "bare"

    announced(Entry("wrong", "a:b", 7, "theirs"), Entry("bare", "a:c", Bare, "theirs"))
    with pytest.warns(UserWarning, match="wanted a Question, or an Analysis class"):
        names = [one.name for one in questions()]
    assert {"surface", "bare"} <= set(names)


def test_a_headscope_that_is_not_installed_says_so(announced):
    announced(keep=False)
    with pytest.raises(HeadscopeError, match="on the path but not installed"):
        questions()
