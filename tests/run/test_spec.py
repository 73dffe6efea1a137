"""Is every wrong request refused early, and does a fingerprint name exactly what matters?"""

import dataclasses

import pytest

import headscope as hs
from headscope.errors import InputError
from headscope.run.execution import Execution
from headscope.run.settings import CorpusSettings, Settings, differences, fingerprint


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"analyses": ("entropi",)},
            r"no analysis called 'entropi'; did you mean 'entropy'\? there are .*entropy",
        ),
        ({"analyses": "entropy"}, "wanted several names"),
        ({"analyses": (1,)}, "wanted several names"),
        ({"analyses": ()}, "leave analyses out to run all"),
        ({"options": {"entropi": {}}}, "'entropi', which is not run"),
        ({"analyses": ("surface",), "options": {"entropy": {}}}, "'entropy', which is not run"),
        (
            {"options": {"entropy": {"smooth": 1}}},
            r"no option 'smooth'; did you mean 'smoothing'\? there are: smoothing",
        ),
        ({"options": {"entropy": {"smoothing": 2.0}}}, "options of entropy: smoothing"),
        ({"options": {"entropy": {"smoothing": "much"}}}, "options of entropy"),
        ({"options": {"norms": {"cancellation": "no"}}}, "options of norms: cancellation"),
        ({"max_length": 0}, "max_length is 0; wanted a whole number, at least 1"),
        ({"max_length": 12.5}, "max_length is 12.5"),
        ({"long": "cut"}, "long is 'cut'; wanted one of window, skip, error"),
        ({"segment_ids": "ones"}, "segment_ids is 'ones'; wanted one of auto, zeros"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
        ({"batch_tokens": None}, "batch_tokens is None"),
        ({"shard_tokens": -1}, "shard_tokens is -1"),
        ({"limit": 0}, "limit is 0"),
        ({"limit": True}, "limit is True"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": "0"}, "seed is '0'"),
        ({"replicates": -1}, "replicates is -1; wanted a whole number, at least 0"),
    ],
)
def test_wrong_settings_are_refused_before_any_model(wrong, says):
    with pytest.raises(InputError, match=says):
        Settings(**wrong)


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"threads": 0}, {"linears": "fastest"}])
def test_a_wrong_way_of_running_is_refused(wrong):
    with pytest.raises(InputError, match="wanted"):
        Execution(**wrong)


def test_several_names_may_come_in_a_list():
    assert Settings(analyses=["entropy", "surface"]).analyses == ("entropy", "surface")


def test_settings_or_their_fields_but_not_both():
    with pytest.raises(InputError, match=r"found settings=.* and limit beside it"):
        hs.atlas("demo", "text", settings=Settings(), limit=3)
    with pytest.raises(InputError, match=r"no setting called 'limits'; did you mean .limit"):
        hs.atlas("demo", "text", limits=3)
    with pytest.raises(InputError, match="settings is a dict"):
        hs.atlas("demo", "text", settings={"limit": 3})


def test_options_that_several_analyses_have_are_given_once():
    both = CorpusSettings(analyses=["dependency", "entropy"], measure="weighted_norm")
    assert both.options == {"dependency": {"measure": "weighted_norm"}}
    assert (
        Settings.of(both).as_dict()
        == Settings(analyses=("dependency", "entropy"), options=both.options).as_dict()
    )
    with pytest.raises(
        InputError, match=r"no requested analysis has this option; add .*dependency"
    ):
        CorpusSettings(analyses=["entropy"], measure="weighted_norm")
    with pytest.raises(InputError, match=r"contradicts --set dependency\.measure=attention"):
        CorpusSettings(options={"dependency": {"measure": "attention"}}, measure="weighted_norm")


OTHER = {
    "analyses": ("entropy",), "options": {"entropy": {"smoothing": 1e-4}}, "max_length": 64,
    "long": "skip", "segment_ids": "zeros", "word_tokens": "text", "batch_tokens": 64,
    "shard_tokens": 64, "limit": 1, "seed": 1, "replicates": 3, "whole_maps": 64,
}  # fmt: skip


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(Settings)])
def test_every_setting_is_part_of_the_fingerprint(name):
    changed = Settings(**{name: OTHER[name]})
    assert fingerprint(changed.as_dict()) != fingerprint(Settings().as_dict())


def test_a_fingerprint_does_not_depend_on_the_order_of_keys():
    assert fingerprint({"a": 1, "b": {"c": 2, "d": 3}}) == fingerprint(
        {"b": {"d": 3, "c": 2}, "a": 1}
    )


def test_nothing_of_how_to_run_is_among_the_settings():
    names = {f.name for f in dataclasses.fields(Settings)}
    assert not names & {f.name for f in dataclasses.fields(Execution)}


def test_differences_name_the_place_the_old_and_the_new():
    old = {"settings": Settings(seed=0).as_dict(), "frequency": None}
    new = {"settings": Settings(seed=1, limit=2).as_dict(), "frequency": "ab" * 40}
    found = differences(old, new)
    assert found[1:] == ["settings.limit: null, now 2", "settings.seed: 0, now 1"]
    assert found[0].startswith('frequency: null, now "abab')
    assert len(found[0]) < 100
    assert differences(old, old) == []
