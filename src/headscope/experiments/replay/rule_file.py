"""Rules of the user's own, from a JSON file: a hypothesis on heads, tried beside ours.

    {"heads": {"L4H10": {"rest": "the first token",
                         "rules": [{"rule": "the previous token", "weight": 0.9}]}}}

No code is run from a file. In Python a rule may be an `AttentionRule` instead of a name.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.core.head_names import Head, head_named
from headscope.core.whole_file import sha256_of
from headscope.errors import InputError, unknown

if TYPE_CHECKING:
    from headscope.claims.attention_rule import AttentionRule

LARGEST = 1 << 20  # bytes of a file
MOST = 20  # rules of a head
FORM = (
    '{"heads": {"L4H10": {"rest": "the first token", '
    '"rules": [{"rule": "the previous token", "weight": 0.9}]}}}'
)


@dataclass(frozen=True)
class OwnRules:
    """What a user thinks that one head does.

    rules    names, or rules themselves
    weights  of each, above 0; together at most 1
    rest     name of where it rests; "" for the first token
    """

    rules: tuple[str | AttentionRule, ...]
    weights: tuple[float, ...]
    rest: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its rules."""
        return tuple(rule if isinstance(rule, str) else rule.name for rule in self.rules)


def read_rules(source: str | Path | Mapping[str, Any] | None) -> dict[Head, OwnRules]:
    """(layer, head) -> the user's rules; the layer by the model's own number, from 0.

    source  a file, what it holds, or None: no rules
    raises  InputError for anything that is not of the form; names are not looked up here
    """
    if source is None:
        return {}
    where = "rules" if isinstance(source, Mapping) else str(source)
    content = source if isinstance(source, Mapping) else _loaded(Path(source))
    heads = content.get("heads") if isinstance(content, Mapping) else None
    if not isinstance(heads, Mapping) or not heads or set(content) != {"heads"}:
        raise InputError(f"{where} holds no heads; wanted {FORM}")
    own: dict[Head, OwnRules] = {}
    for name, each in heads.items():
        head = head_named(name)
        if head in own:
            raise InputError(f"{where} names the head {name} twice; wanted it once")
        own[head] = _of_head(f"{where}, head {name}", each)
    return own


def digest_of_rules(own: Mapping[Head, OwnRules]) -> str:
    """Hex sha256 of the names and weights; "" for none."""
    if not own:
        return ""
    return sha256_of(
        json.dumps([head, one.names, one.weights, one.rest]) + "\x1e"
        for head, one in sorted(own.items())
    )


def _loaded(file: Path) -> Any:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"{file} cannot be read ({error.strerror}); wanted a JSON file") from error
    if len(content) > LARGEST:
        raise InputError(f"{file} holds more than {LARGEST:,} bytes; wanted {FORM}")
    try:
        return json.loads(content.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is no JSON ({str(error)[:200]}); wanted {FORM}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"found {twice!r} twice in one place; wanted it once")
    return made


def _of_head(where: str, each: Any) -> OwnRules:
    if not isinstance(each, Mapping):
        raise InputError(f"{where}: found {_shown(each)}; wanted rules, as in {FORM}")
    _known(where, each, ("rest", "rules"))
    rest, rules = each.get("rest", ""), each.get("rules", ())
    if not isinstance(rest, str):
        raise InputError(f"{where}: its rest is {_shown(rest)}; wanted the name of one")
    if isinstance(rules, str | Mapping) or not isinstance(rules, Sequence) or len(rules) > MOST:
        raise InputError(f"{where}: found {_shown(rules)}; wanted a list of at most {MOST} rules")
    pairs = [_rule(where, one) for one in rules]
    return OwnRules(tuple(rule for rule, _ in pairs), tuple(weight for _, weight in pairs), rest)


def _rule(where: str, one: Any) -> tuple[str | AttentionRule, float]:
    if not isinstance(one, Mapping):
        raise InputError(f'{where}: found {_shown(one)}; wanted {{"rule": …, "weight": …}}')
    _known(where, one, ("rule", "weight"))
    rule, weight = one.get("rule"), one.get("weight", 1.0)
    if not isinstance(rule, str):
        from headscope.claims.attention_rule import AttentionRule

        if not isinstance(rule, AttentionRule):
            raise InputError(f"{where}: its rule is {_shown(rule)}; wanted the name of one")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1:
        raise InputError(f"{where}: a weight is {_shown(weight)}; wanted more than 0, at most 1")
    assert math.isfinite(weight)
    return rule, float(weight)


def _known(where: str, one: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in one:
        if name not in names:
            raise InputError(f"{where}: {unknown('entry', str(name), names)}")


def _shown(value: object) -> str:
    return f"{value!r:.60}"
