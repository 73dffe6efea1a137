"""Is a file of rules read as it is meant, and anything else refused in clear words?"""

from __future__ import annotations

import json

import pytest

from headscope.errors import InputError
from headscope.experiments.replay.rule_file import LARGEST, digest_of_rules, read_rules

GOOD = {
    "heads": {
        "L4H10": {
            "rest": "the first token",
            "rules": [{"rule": "the previous token", "weight": 0.9}],
        },
        "0.0": {"rules": []},
    }
}


def written(folder, content):
    file = folder / "rules.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_a_file_gives_the_rules_of_each_head(tmp_path):
    own = read_rules(written(tmp_path, json.dumps(GOOD)))
    assert own == read_rules(GOOD)
    assert list(own) == [(3, 9), (0, 0)]
    assert own[3, 9].names == ("the previous token",)
    assert own[3, 9].weights == (0.9,)
    assert (own[0, 0].rules, own[0, 0].rest) == ((), "")
    assert read_rules(None) == {}
    assert digest_of_rules(own) == digest_of_rules(dict(reversed(own.items())))
    assert digest_of_rules(own) != digest_of_rules({(3, 9): own[3, 9]})
    assert digest_of_rules({}) == ""


def head(text):
    return '{"heads": {"L1H1": ' + text + "}}"


RULE = '{"rule": "the previous token", "weight": %s}'
HOSTILE = {
    "no JSON": (b"\xff\xfe\x00", "is no JSON"),
    "deep": (b"[" * 100_000, "is no JSON|holds no heads"),
    "long": (b" " * (LARGEST + 1), "holds more than"),
    "a number": ("7", "holds no heads"),
    "no heads": ('{"heads": {}}', "holds no heads"),
    "another entry": ('{"heads": {"L1H1": {}}, "x": 1}', "holds no heads"),
    "no head": ('{"heads": {"first": {}}}', "found the head 'first'"),
    "twice": ('{"heads": {"L1H1": {}, "L1H1": {}}}', "'L1H1' twice"),
    "twice otherwise": ('{"heads": {"L1H1": {}, "0.0": {}}}', "names the head 0.0 twice"),
    "a list": (head("[]"), "wanted rules, as in"),
    "a typo": (head('{"rule": []}'), "no entry called 'rule'; did you mean 'rules'"),
    "rules are text": (head('{"rules": "the previous token"}'), "wanted a list of at most 20"),
    "many": (head('{"rules": [' + ", ".join([RULE % 0.01] * 21) + "]}"), "a list of at most 20"),
    "a rule is text": (head('{"rules": ["the previous token"]}'), 'wanted {"rule"'),
    "a rule is code": (head('{"rules": [{"rule": {"__import__": "os"}}]}'), "wanted the name"),
    "rest": (head('{"rest": ["x"]}'), "wanted the name of one"),
    "NaN": (head('{"rules": [%s]}' % (RULE % "NaN")), "a weight is nan"),
    "infinite": (head('{"rules": [%s]}' % (RULE % "1e999")), "a weight is inf"),
    "negative": (head('{"rules": [%s]}' % (RULE % "-0.1")), "a weight is -0.1"),
    "true": (head('{"rules": [%s]}' % (RULE % "true")), "a weight is True"),
    "text": (head('{"rules": [%s]}' % (RULE % '"1"')), "a weight is '1'"),
    "large": (head('{"rules": [%s]}' % (RULE % ("9" * 5000))), "is no JSON"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_clear_words(name, tmp_path):
    content, words = HOSTILE[name]
    with pytest.raises(InputError, match=words) as raised:
        read_rules(written(tmp_path, content))
    assert len(str(raised.value)) < 700


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    for place in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read_rules(place)
