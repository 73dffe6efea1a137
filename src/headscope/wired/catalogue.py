"""Heads of every kind that a label rule exists for, and heads that look like them and are not.

Each function gives the variants of one kind, for log-odds `s` of a match. Heads that find nothing
to match rest on a special token, or attend evenly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from headscope.wired.features import (
    ASKED,
    ASKING,
    BESIDE,
    ENTITY,
    HEAD_SLOT,
    LATE,
    ONE,
    SALIENCE,
    SEGMENT,
    SLOT,
    SPECIAL,
    WORD,
    Feature,
    entity_of,
    flag,
    head_slot_of,
    lacks,
    not_relation,
    one_hot,
    special,
)
from headscope.wired.heads import TAKES, TAKES_NOTHING, TAKES_WORDS, Head, Match, Said, Value
from headscope.wired.language import SLOTS, Form

Variants = Callable[[float], Iterator[Head]]
RELATIONS = ("nsubj", "obj", "det", "amod", "advmod", "obl", "conj")
UP, DOWN = "dependent_to_head", "head_to_dependent"
CLS, SEP = special("[CLS]"), special("[SEP]")
VERB, PRONOUN = flag("VERB", lambda form: form.tag == "VERB"), flag("PRON", lambda f: f.tag == "PRON")
NOUN = flag("NOUN", lambda form: form.tag == "NOUN")
STOP = flag("PUNCT", lambda form: form.tag == "PUNCT")
NOT_STOP = lacks("PUNCT", lambda form: form.tag == "PUNCT")
ORDERLY = {"nsubj", "obj"}  # their words may be elements of a frame, and subjects pair with verbs


def to(feature: Feature, weight: float) -> Match:
    """All tokens look for it."""
    return Match(ONE, feature, weight)


# --- where heads look --------------------------------------------------------------------------


def neighbours(s: float) -> Iterator[Head]:
    """The previous token, the next one, the token itself: of all tokens, and of all but stops."""
    for kind, offset in (("previous", -1), ("next", 1), ("self", 0)):
        yield Head(f"{kind} token", reach={offset: s}, said=(Said(kind),))
        yield Head(
            f"{kind} token, stops rest", (Match(STOP, SEP, 2 * s),), {offset: s}, TAKES_NOTHING,
            said=(Said(kind),),
        )  # fmt: skip
    yield Head("same form, itself first of all", (Match(WORD, WORD, s), Match(SPECIAL, SPECIAL, s)),
               {0: 1.0}, said=(Said("self"),))  # fmt: skip


def nearby(s: float) -> Iterator[Head]:
    """Three tokens on either side, or before alone, each the same."""
    yield Head("three on either side", reach=dict.fromkeys(range(-3, 4), s), said=(Said("nearby"),))
    yield Head("three before", reach=dict.fromkeys((-3, -2, -1), s), said=(Said("nearby"),))
    yield Head("next but one, or two", reach={2: s, 3: s}, said=(Said("nearby"),))


def opening_and_separator(s: float) -> Iterator[Head]:
    """[CLS], [SEP], both: with something taken from there, or nothing (a sink)."""
    for kind, match in (("cls", (to(CLS, s),)), ("sep", (to(SEP, s),)),
                        ("special", (to(CLS, s), to(SEP, s)))):  # fmt: skip
        yield Head(f"reads {kind}", match, said=(Said(kind),), decoy=("sink",))
        yield Head(f"rests on {kind}", match, value=TAKES_WORDS, said=(Said("sink", (kind,)),),
                   decoy=(kind,))  # fmt: skip
    yield Head("reads cls, but verbs nothing", (to(CLS, s), Match(VERB, CLS, -s)),
               said=(Said("cls"),), decoy=("sink",))  # fmt: skip
    yield Head("rests on sep, stops on themselves", (to(SEP, s), Match(STOP, STOP, 2 * s)),
               value=TAKES_WORDS, said=(Said("sink", ("sep",)),), decoy=("sep",))  # fmt: skip


def punctuation(s: float) -> Iterator[Head]:
    """Stops and commas, from everywhere or from words alone."""
    yield Head("stops and commas", (to(STOP, s),), said=(Said("punctuation"),))
    yield Head("stops and commas, which look at themselves",
               (to(STOP, s),), {0: s / 2}, TAKES_NOTHING, said=(Said("punctuation"),))  # fmt: skip


def widths(s: float) -> Iterator[Head]:
    """Evenly everywhere; on a few tokens of no kind; a constant share on [CLS] or [SEP]."""
    yield Head("evenly", said=(Said("broad"),))
    yield Head("evenly, nothing taken", value=TAKES_NOTHING, said=(Said("broad"),))
    salient = Head("a few forms of no kind", (to(SALIENCE, 6 * s),), said=(Said("narrow"),),
                   decoy=("feature", "dependency"))  # fmt: skip
    yield salient
    yield Head("a few forms of no kind, stops rest", (*salient.matches, Match(STOP, CLS, 9 * s)),
               value=TAKES_NOTHING, said=salient.said, decoy=salient.decoy)  # fmt: skip
    for name, feature, beside in (("cls", CLS, (-1, 1)), ("sep", SEP, (-2, 1))):
        share = s + math.log(0.4)
        rest = dict.fromkeys(beside, s + math.log(0.3))
        yield Head(f"40 % on {name}", (to(feature, share),), rest, said=(Said("threshold_sink"),))


def segments(s: float) -> Iterator[Head]:
    """The own sentence, the other one, the same word elsewhere; of pairs."""
    own, other = Match(SEGMENT, SEGMENT, s), Match(BESIDE, SEGMENT, s)
    no_specials = (to(CLS, -s), to(SEP, -s))
    for kind, match in (("own_segment", own), ("other_segment", other)):
        yield Head(kind, (match,), said=(Said(kind),))
        yield Head(f"{kind}, words alone", (match, *no_specials), value=TAKES_NOTHING,
                   said=(Said(kind),))  # fmt: skip


def same_word(s: float) -> Iterator[Head]:
    """The same form elsewhere, with or without itself."""
    same = Match(WORD, WORD, 2 * s)
    yield Head("same form elsewhere", (same, to(SEP, 1.4 * s)), {0: -3 * s},
               said=(Said("same_token"),))  # fmt: skip
    yield Head("same form", (same, Match(SPECIAL, SPECIAL, s)), value=TAKES_NOTHING,
               said=(Said("same_token"),), also=(Said("self"),))  # fmt: skip


# --- language ----------------------------------------------------------------------------------


def relations(s: float) -> Iterator[Head]:
    """The syntactic head, or the dependent, of one relation: else evenly, or at rest."""
    for name in RELATIONS:
        own = head_slot_of(name, _of(name))
        yield _relation(name, UP, (Match(own, SLOT, s),))
        yield _relation(name, DOWN, (Match(SLOT, own, s),))
        rest = (Match(own, SLOT, s), Match(not_relation(name), SEP, s))
        yield _relation(name, UP, rest, "else rests", TAKES_WORDS)


def _of(name: str) -> Callable[[Form], bool]:
    return lambda form: form.relation == name


def _relation(
    name: str, way: str, matches: tuple[Match, ...], how: str = "", value: Value = TAKES
) -> Head:
    said, also = [Said("dependency", (f"{name} {way}",))], [Said("feature")]
    if name == "nsubj":
        said += [Said("pair", ("subject_to_verb" if way == UP else "verb_to_subject",))]
    if name in ORDERLY:
        also += [Said("frames")]
    if name in ("obj", "nsubj", "obl"):
        also += [Said("pair")] * (name != "nsubj")
    return Head(
        f"{name} {way}{', ' * bool(how)}{how}", matches, value=value, said=tuple(said),
        also=tuple(also),
    )  # fmt: skip


def coreference(s: float) -> Iterator[Head]:
    """Mentions of the same entity: of all mentions, or from pronouns to nouns."""
    of_nouns = entity_of("NOUN", lambda form: form.tag == "NOUN")
    of_pronouns = entity_of("PRON", lambda form: form.tag == "PRON")
    also = (Said("feature"), Said("pair", ("pronoun_to_noun", "noun_to_pronoun")))
    yield Head("same entity", (Match(ENTITY, ENTITY, s),), {0: -2 * s},
               said=(Said("coreference"),), also=also)  # fmt: skip
    yield Head("pronoun to noun of its entity", (Match(of_pronouns, of_nouns, s),),
               said=(Said("coreference", ("pronoun", "all")),), also=also)  # fmt: skip


def frames(s: float) -> Iterator[Head]:
    """From the elements of a frame to the word that evokes it, and back."""
    own = head_slot_of("element", lambda form: form.framed and form.tag != "VERB")
    also = (Said("feature"), Said("pair"), *(Said("dependency", (f"{one} {way}",))
            for one in ORDERLY for way in (UP, DOWN)))  # fmt: skip
    yield Head("element to target", (Match(own, SLOT, s),), said=(Said("frames"),), also=also)
    yield Head("target to element", (Match(SLOT, own, s),), said=(Said("frames"),), also=also)


def kinds_of_words(s: float) -> Iterator[Head]:
    """Nouns, verbs, pronouns, subjects, objects, negation: from everywhere."""
    decoy = ("dependency", "pair", "frames", "coreference")
    kinds: dict[str, Callable[[Form], bool]] = {
        "noun": lambda form: form.tag == "NOUN", "verb": lambda form: form.tag == "VERB",
        "pronoun": lambda form: form.tag == "PRON", "subject": _of("nsubj"), "object": _of("obj"),
        "negation": lambda form: form.text == "not",
    }  # fmt: skip
    for kind, holds in kinds.items():
        key = flag(f"kind {kind}", holds)
        yield Head(f"to {kind}", (to(key, s),), said=(Said("feature", (kind,)),), decoy=decoy)
        yield Head(f"to {kind}, else rests", (to(key, s), to(SEP, s / 2)), value=TAKES_WORDS,
                   said=(Said("feature", (kind,)),), decoy=decoy)  # fmt: skip


def pairs(s: float) -> Iterator[Head]:
    """From pronouns to the most salient noun, and back."""
    def salient(name: str, tag: str) -> Feature:
        code = SALIENCE.code
        assert code is not None
        return Feature(name, code=lambda text, form, seed: code(text, form, seed)
                       * (form is not None and form.tag == tag))  # fmt: skip

    noun, pronoun = salient("salient noun", "NOUN"), salient("salient pronoun", "PRON")
    for name, query, key in (("pronoun_to_noun", PRONOUN, noun), ("noun_to_pronoun", NOUN, pronoun)):
        yield Head(name, (Match(query, key, 6 * s),), said=(Said("pair", (name,)),),
                   also=(Said("feature"),), decoy=("coreference",))  # fmt: skip


# --- decoys ------------------------------------------------------------------------------------


def decoys(s: float) -> Iterator[Head]:
    """Heads that look like others and are not."""
    language = ("dependency", "coreference", "frames", "pair", "feature")
    yield Head("hashed pairs", (Match(ASKING, ASKED, 4 * s),), decoy=language)
    yield Head("hashed pairs, else rests", (Match(ASKING, ASKED, 4 * s), to(SEP, 1.5 * s)),
               decoy=language)  # fmt: skip
    yield Head("previous token, of the first twelve alone", (Match(LATE, SEP, 2 * s),), {-1: s},
               decoy=("previous",))  # fmt: skip
    first = flag("root", _of("root"))
    yield Head("main verb from everywhere", (to(first, s),), said=(Said("feature", ("verb",)),),
               decoy=("dependency", "pair", "frames"))  # fmt: skip
    yield Head("amod to noun; others find theirs with hardly any weight",
               (Match(HEAD_SLOT, SLOT, s), Match(not_relation("amod"), SEP, 2 * s)),
               said=(Said("dependency", (f"amod {UP}",)),), decoy=("dependency",))  # fmt: skip
    yield Head("two before", reach={-2: s}, also=(Said("nearby"),), decoy=("dependency",))
    yield from _roles(s)


def _roles(s: float) -> Iterator[Head]:
    """Two roles in one head by trigger; one role shared by two heads."""
    subject, determiner = head_slot_of("nsubj", _of("nsubj")), head_slot_of("det", _of("det"))
    yield Head(
        "subject to verb, determiner to noun",
        (Match(subject, SLOT, s), Match(determiner, SLOT, s)),
        said=(Said("dependency", (f"nsubj {UP}",)), Said("dependency", (f"det {UP}",))),
        also=(Said("pair", ("subject_to_verb",)), Said("frames"), Said("feature")),
    )
    nouns, pronouns = (entity_of(tag, lambda form, tag=tag: form.tag == tag)  # type: ignore[misc]
                       for tag in ("NOUN", "PRON"))  # fmt: skip
    yield Head(
        "pronoun to antecedent, adjective to noun",
        (Match(pronouns, nouns, s), Match(head_slot_of("amod", _of("amod")), SLOT, s)),
        said=(Said("dependency", (f"amod {UP}",)), Said("coreference", ("pronoun", "all"))),
        also=(Said("pair"), Said("feature")),
    )
    for part, slots in (("one", {0}), ("other", {1, 2})):
        some = one_hot(f"head slot of nsubj, {part}", SLOTS,
                       lambda form, slots=slots: form.head_slot
                       if form.relation == "nsubj" and form.head_slot in slots else -1)  # type: ignore[misc]  # fmt: skip
        yield Head(f"subject to {part} verbs", (Match(some, SLOT, s),),
                   also=(Said("dependency", (f"nsubj {UP}",)), Said("pair", ("subject_to_verb",)),
                         Said("frames"), Said("feature")))  # fmt: skip


SENTENCES: tuple[Variants, ...] = (
    neighbours, nearby, opening_and_separator, punctuation, widths, same_word, relations,
    coreference, frames, kinds_of_words, pairs, decoys,
)  # fmt: skip
PAIRS: tuple[Variants, ...] = (segments, same_word, neighbours, opening_and_separator, widths)


def deck(family: str, corpus: str, s: float) -> Iterator[Head]:
    """All variants of all kinds that a family and a kind of corpus allow.

    corpus  "sentences" or "pairs"
    """
    del family
    for variants in SENTENCES if corpus == "sentences" else PAIRS:
        yield from variants(s)
