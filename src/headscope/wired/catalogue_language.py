"""Heads that know the language: relations, coreference, frames, kinds of words, pairs; two roles in
one head, one role in two; and what looks like them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headscope.wired.catalogue import NOUN, PRONOUN, UNKNOWING, Rests, of_tag, to
from headscope.wired.features import (
    ENTITY,
    HEAD_SLOT,
    SALIENCE,
    SLOT,
    Feature,
    entity_of,
    flag,
    head_slot_of,
    lacks,
    not_relation,
    one_hot,
)
from headscope.wired.heads import TAKES, TAKES_WORDS, Match, Said, Value, WiredHead
from headscope.wired.language import SLOTS, Form

RELATIONS = ("nsubj", "obj", "det", "amod", "advmod", "obl", "conj")
UP, DOWN = "dependent_to_head", "head_to_dependent"
CORE = ("nsubj", "obj")  # their words may be elements of a frame


def of_relation(name: str) -> Callable[[Form], bool]:
    """Whether a form has this relation to its head."""
    return lambda form: form.relation == name


def relations(s: float, rests: Rests) -> Iterator[WiredHead]:
    """The syntactic head, or the dependent, of one relation: else evenly, or at rest."""
    for name in RELATIONS if not rests.causal else ("conj",):  # whose head stands before
        own = head_slot_of(name, of_relation(name))
        yield _relation(name, UP, (Match(own, SLOT, s),))
        if not rests.causal:
            yield _relation(name, DOWN, (Match(SLOT, own, s),))
        rest = (Match(own, SLOT, s), Match(not_relation(name), rests.idle, s))
        yield _relation(name, UP, rest, "else rests", TAKES_WORDS)


def _relation(
    name: str, way: str, matches: tuple[Match, ...], how: str = "", value: Value = TAKES
) -> WiredHead:
    said, also = [Said("dependency", (f"{name} {way}",))], [Said("feature")]
    also += [Said("sink")] * (value is TAKES_WORDS)  # of the special token on which it rests
    if name == "nsubj":
        said += [Said("pair", ("subject_to_verb" if way == UP else "verb_to_subject",))]
    if name in CORE:
        also += [Said("frames")]
    if name in ("obj", "nsubj", "obl"):
        also += [Said("pair")] * (name != "nsubj")
    return WiredHead(
        f"{name} {way}{', ' * bool(how)}{how}",
        matches,
        value=value,
        said=tuple(said),
        also=tuple(also),
    )


def coreference(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Mentions of the same entity: of all mentions, or from pronouns to nouns."""
    of_pronouns = entity_of("PRON", of_tag("PRON"))
    also = (Said("feature"), Said("pair", ("pronoun_to_noun", "noun_to_pronoun")))
    yield WiredHead(
        "same entity",
        (Match(ENTITY, ENTITY, s),),
        {0: -2 * s},
        said=(Said("coreference"),),
        also=also,
    )
    yield WiredHead(
        "pronoun to its entity",
        (Match(of_pronouns, ENTITY, s),),
        {0: -2 * s},
        said=(Said("coreference", ("pronoun", "all")),),
        also=also,
    )


def frames(s: float, rests: Rests) -> Iterator[WiredHead]:
    """From the elements of a frame to the word that evokes it, and back."""
    own = head_slot_of("element", lambda form: form.framed and form.tag != "VERB")
    also = (
        Said("feature"),
        Said("pair"),
        *(Said("dependency", (f"{one} {way}",)) for one in CORE for way in (UP, DOWN)),
    )
    yield WiredHead("element to target", (Match(own, SLOT, s),), said=(Said("frames"),), also=also)
    yield WiredHead("target to element", (Match(SLOT, own, s),), said=(Said("frames"),), also=also)


def kinds_of_words(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Nouns, verbs, pronouns, subjects, objects, negation: from everywhere."""
    decoy = ("dependency", "pair", "frames", "coreference")
    kinds: dict[str, Callable[[Form], bool]] = {
        "noun": of_tag("NOUN"),
        "verb": of_tag("VERB"),
        "pronoun": of_tag("PRON"),
        "subject": of_relation("nsubj"),
        "object": of_relation("obj"),
        "negation": lambda form: form.text == "not",
    }
    for kind, holds in kinds.items():
        key = flag(f"kind {kind}", holds)
        yield WiredHead(f"to {kind}", (to(key, s),), said=(Said("feature", (kind,)),), decoy=decoy)
        yield WiredHead(
            f"to {kind}, else rests",
            (to(key, s), to(rests.idle, s / 2)),
            value=TAKES_WORDS,
            said=(Said("feature", (kind,)),),
            decoy=decoy,
        )


def pairs(s: float, rests: Rests) -> Iterator[WiredHead]:
    """From pronouns to the most salient noun, and back."""

    def salient(name: str, tag: str) -> Feature:
        code = SALIENCE.code
        assert code is not None
        return Feature(
            name,
            code=lambda text, form, seed: (
                code(text, form, seed) * (form is not None and form.tag == tag)
            ),
        )

    noun, pronoun = salient("salient noun", "NOUN"), salient("salient pronoun", "PRON")
    for name, query, key in (
        ("pronoun_to_noun", PRONOUN, noun),
        ("noun_to_pronoun", NOUN, pronoun),
    ):
        yield WiredHead(
            name,
            (Match(query, key, 6 * s),),
            said=(Said("pair", (name,)),),
            also=(Said("feature"),),
            decoy=("coreference",),
        )


def roles(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Two roles in one head by trigger; one role shared by two heads."""
    subject, determiner, adjective = (
        head_slot_of(name, of_relation(name)) for name in ("nsubj", "det", "amod")
    )
    yield WiredHead(
        "subject to verb, determiner to noun",
        (Match(subject, SLOT, s), Match(determiner, SLOT, s)),
        said=(Said("dependency", (f"nsubj {UP}",)), Said("dependency", (f"det {UP}",))),
        also=(Said("pair", ("subject_to_verb",)), Said("frames"), Said("feature")),
        roles=0,
    )
    pronouns = entity_of("PRON", of_tag("PRON"))
    yield WiredHead(
        "pronoun to antecedent, adjective to noun",
        (Match(pronouns, ENTITY, s), Match(adjective, SLOT, s)),
        {0: -2 * s},
        said=(Said("dependency", (f"amod {UP}",)), Said("coreference", ("pronoun", "all"))),
        also=(Said("pair"), Said("feature")),
        roles=0,
    )
    for part, slots in (("one", {0}), ("other", {1, 2})):
        some = one_hot(f"head slot of nsubj, {part}", SLOTS, _subject_of(slots))
        yield WiredHead(
            f"subject to {part} verbs",
            (Match(some, SLOT, s),),
            also=(
                Said("dependency", (f"nsubj {UP}",)),
                Said("pair", ("subject_to_verb",)),
                Said("frames"),
                Said("feature"),
            ),
        )


def two_roles(s: float, rests: Rests) -> Iterator[WiredHead]:
    """Two roles in one head by trigger, each about half of what it gathers; other queries rest."""
    own = {name: head_slot_of(name, of_relation(name)) for name in ("nsubj", "obj", "det", "amod")}
    pair_of_nouns = {"NOUN": "noun_to_pronoun", "PRON": "pronoun_to_noun"}
    ups = [Said("dependency", (f"{name} {UP}",)) for name in ("nsubj", "det", "obj", "amod")]
    subject, determiner, direct, adjective = ups
    kinds: dict[str, tuple[tuple[Match, ...], Feature, tuple[Said, ...]]] = {
        "subject to verb, determiner to noun": (
            (Match(own["nsubj"], SLOT, s), Match(own["det"], SLOT, s)),
            not_relation("nsubj", "det"),
            (subject, determiner),
        ),
        "object to verb, adjective to noun": (
            (Match(own["obj"], SLOT, s), Match(own["amod"], SLOT, s)),
            not_relation("obj", "amod"),
            (direct, adjective),
        ),
        "verb to subject, determiner to noun": (
            (Match(SLOT, own["nsubj"], s), Match(own["det"], SLOT, s)),
            lacks("VERB DET", lambda form: form.tag in ("VERB", "DET")),
            (Said("dependency", (f"nsubj {DOWN}",)), determiner),
        ),
        "noun to pronouns, pronoun to nouns": (
            (Match(NOUN, PRONOUN, s), Match(PRONOUN, NOUN, s)),
            lacks("NOUN PRON", lambda form: form.tag in pair_of_nouns),
            tuple(Said("pair", (name,)) for name in pair_of_nouns.values()),
        ),
    }
    for name, (matches, others, said) in kinds.items():
        rest = Match(others, rests.idle, s)
        yield WiredHead(
            f"{name}, else rests", (*matches, rest), value=TAKES_WORDS, said=said, roles=2
        )


def _subject_of(slots: set[int]) -> Callable[[Form], int]:
    return lambda form: (
        form.head_slot if form.relation == "nsubj" and form.head_slot in slots else -1
    )


def looking_alike(s: float, rests: Rests) -> Iterator[WiredHead]:
    """The main verb, whoever asks; relations that are found with hardly any weight."""
    yield WiredHead(
        "main verb from everywhere",
        (to(flag("root", of_relation("root")), s),),
        said=(Said("feature", ("verb",)),),
        decoy=UNKNOWING[:4],
    )
    if not rests.causal:
        yield WiredHead(
            "amod to noun; others find theirs with hardly any weight",
            (Match(HEAD_SLOT, SLOT, s), Match(not_relation("amod"), rests.idle, 2 * s)),
            said=(Said("dependency", (f"amod {UP}",)),),
            decoy=("dependency",),
        )
