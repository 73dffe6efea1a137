"""Made prompts: words and templates of our own, drawn by a seed.

Items come in couples: each is the other's corrupted prompt, and its answer the other's wrong one.
So what a head always writes, whatever it reads, cancels within a couple. No word whose reading
decides an answer is in two couples, so that couples are the independent items of every interval.
Words that the tokenizer splits are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from headscope.core.accumulators import generator
from headscope.errors import InputError
from headscope.experiments.circuits.prompts import (
    Prompt,
    PromptSet,
    another_item,
    compared_tokens,
    encode_prompts,
    input_ids,
    single,
    with_others,
)

NAMES = (
    "Aaron Adam Alan Alex Alice Amy Andre Andrew Andy Anna Anthony Arthur Austin Ben "
    "Blake Brandon Brian Bruce Carl Charles Charlie Chris Christian Christopher Connor Crystal "
    "Dan Daniel David Dean Dennis Edward Elizabeth Emily Eric Erica Frank Fred Gary George "
    "Georgia Grace Graham Grant Henry Jack Jacob Jake James Jamie Jane Jason Jay Jennifer Jeremy "
    "Jessica Jim Joe John Jonathan Joseph Josh Joshua Julia Justin Kate Keith Kelly Kevin Kim "
    "Kyle Laura Lee Leo Leon Lewis Lisa Louis Luke Maria Mark Martin Mary Matt Matthew Max "
    "Michael Michelle Mike Nick Oliver Oscar Patrick Paul Peter Philip Rachel Ray Richard Robert "
    "Roger Rose Ruby Russell Ryan Sam Samuel Sarah Scott Sean Simon Stephen Steven Stewart "
    "Thomas Tim Tom Tony Tyler Victoria Walter William"
)
PLACES = "store school park garden office station hospital restaurant library beach"
OBJECTS = "drink book ring ball letter key computer basket bone kiss"
IOI = (
    "When {a} and {b} went to the {place}, {s} gave a {object} to",
    "Then, {a} and {b} went to the {place}. {s} gave a {object} to",
    "After {a} and {b} had a long day at the {place}, {s} handed a {object} to",
    "While {a} and {b} were working at the {place}, {s} gave a {object} to",
)
MEN = (
    "Adam Albert Andrew Arthur Bob Brian Carl Charles David Dennis Edward Eric Frank Fred George "
    "Harry Henry Jack James John Joseph Keith Kevin Mark Martin Matthew Michael Paul Peter Philip "
    "Richard Robert Roger Simon Stephen Thomas Tom Walter William"
)
WOMEN = (
    "Alice Amy Angela Anna Anne Barbara Carol Caroline Catherine Diana Elizabeth Emily Emma Helen "
    "Jane Jennifer Jessica Julia Karen Kate Laura Linda Lisa Lucy Margaret Maria Martha Mary "
    "Michelle Nancy Patricia Rachel Rebecca Ruth Sarah Sophie Susan Victoria"
)
PRONOUN_FORMS = (
    "So {} is a really great friend, isn't",
    "I think that {} is a very good cook, isn't",
    "Then {} was quite late for school, wasn't",
)
THINGS = (  # their plural ends in -s, and "a" stands before them
    "bag ball basket bean bell belt book boot bottle bowl bucket button cable cake camera candle "
    "cap card chain clock coat coin comb cookie cord crown cup diamond doll drum fan flag flower "
    "fork frame hammer hat helmet hook jacket jar jewel kettle key knot label lamp lemon letter "
    "lid lock magnet map mask medal mirror mug nail napkin needle nut pen pencil phone picture "
    "pillow pin pipe plate poster pot pump purse puzzle ribbon ring robot rock rope rug ruler sack "
    "seed shell shirt shoe sign sock spoon stamp stick stone string sword tablet tent ticket tie "
    "tool toy tray tube vase wallet wheel whistle"
)
COLOURS = "red blue green black white yellow brown pink purple silver gold"
AGREEMENT_FORMS = ("The {} near the {}", "The {} behind the {}", "The {} of the {}")
VERBS = ("is are", "was were", "has have")
SUM_FORMS = ("The sum of {} and {} is", "{} + {} =", "If I add {} to {}, I get")
DOCSTRING = (
    'def {}(self, {}):\n    """A {} for a {}.\n\n'
    "    :param {}: the {}\n    :param {}: the {}\n    :param"
)
ANOTHER, THREE = "another item", "three names"  # other kinds of corrupted prompts
POOL = 4  # times as many prompts, of which the other items are drawn
ROUNDS = 4  # how often each couple is asked, in other words
EVENTS = (
    "war siege reign trial voyage campaign dispute expedition famine plague "
    "rebellion strike survey truce tour"
)
CENTURIES = range(11, 19)  # Hanna et al. 2023: years 1100 to 1899
ANTONYMS = (
    "hot cold, big small, up down, left right, fast slow, hard soft, high low, young old, "
    "rich poor, early late, light dark, open closed, strong weak, long short, wet dry, "
    "good bad, true false, black white, day night, happy sad, love hate, inside outside, "
    "north south, east west, full empty, clean dirty, male female, war peace, win lose, "
    "begin end, push pull, buy sell, give take, rise fall, import export, victory defeat, "
    "public private, cheap expensive, wide narrow, thick thin, deep shallow, "
    "front back, first last, summer winter, friend enemy, question answer, life death, "
    "increase decrease, positive negative, internal external, maximum minimum, simple complex"
)
CAPITALS = (
    "France Paris, Germany Berlin, Italy Rome, Spain Madrid, Russia Moscow, Japan Tokyo, "
    "China Beijing, Egypt Cairo, Greece Athens, Ireland Dublin, Austria Vienna, Norway Oslo, "
    "Poland Warsaw, Portugal Lisbon, Sweden Stockholm, Denmark Copenhagen, Finland Helsinki, "
    "Hungary Budapest, England London, Iraq Baghdad, Iran Tehran, Afghanistan Kabul, Cuba Havana, "
    "Canada Ottawa, Kenya Nairobi, Turkey Ankara, Belgium Brussels, Peru Lima, Chile Santiago, "
    "Syria Damascus, Lebanon Beirut, Ukraine Kiev, Thailand Bangkok, Australia Canberra, "
    "Indonesia Jakarta, Scotland Edinburgh, Vietnam Hanoi, Israel Jerusalem, Venezuela Caracas"
)
# --- the made sets ----------------------------------------------------------------------------


def made_prompts(kind: str, tokenizer: Any, *, count: int = 64, seed: int = 0) -> PromptSet:
    """Prompts of a kind of MADE, drawn from the seed; as many as the tokenizer's words allow.

    count   at most; they come in couples of one item
    raises  InputError for a kind that is not known, or a tokenizer that splits most of its words
    """
    if kind not in MADE:
        raise InputError(f"no prompt set called {kind!r}; there are {', '.join(MADE)}")
    if count < 2:
        raise InputError(f"found {count} prompts; wanted at least 2: they come in couples")
    rng = generator(seed, "prompts", kind)
    pool = list(islice(MADE[kind](tokenizer, rng), POOL * count))
    prompts = pool[: count - count % 2]
    if not prompts:
        raise InputError(
            f"the tokenizer keeps too few words of {kind!r} whole; wanted another set of "
            f"{', '.join(MADE)}, or prompts of your own"
        )
    draw = generator(seed, "other corrupted prompts", kind)
    more = {ANOTHER: another_item(tokenizer, prompts, pool, draw)}
    more |= {THREE: _three_names(tokenizer, prompts, draw)} if kind == "ioi" else {}
    return encode_prompts(tokenizer, with_others(tokenizer, prompts, more), kind=kind)


Rng = np.random.Generator


def _couples(words: Sequence[Any], rng: Rng) -> list[tuple[Any, Any]]:
    """Pairs of words in random order; each word once."""
    order = [words[at] for at in rng.permutation(len(words))]
    return list(zip(order[::2], order[1::2], strict=False))


def _kept(tokenizer: Any, words: str, before: str) -> list[str]:
    """Those of the words that are one token after a text."""
    return [word for word in words.split() if single(tokenizer, before, f" {word}")]


def _others(words: Sequence[str], taken: Sequence[str], rng: Rng) -> list[str]:
    """The other words in random order."""
    others: list[str] = rng.permutation([word for word in words if word not in taken]).tolist()
    return others


def _swapped(tokenizer: Any, couple: Sequence[Prompt], item: str) -> Iterator[Prompt]:
    """Two prompts, each the corrupted one of the other; none of unequal length."""
    prompts = [
        replace(one, corrupted=two.text, wrong=two.answer, item=item)
        for one, two in (couple, couple[::-1])
    ]
    texts = [one.text for one in couple]
    try:
        compared = [compared_tokens(tokenizer, text, prompts[0]) for text in texts]
    except InputError:
        return
    if compared[0] == compared[1] and len({len(input_ids(tokenizer, text)) for text in texts}) == 1:
        yield from prompts


def _ioi(tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """Indirect object identification: who gives is swapped, which alone decides the answer."""
    couples = _couples(_kept(tokenizer, NAMES, "Then she gave it to"), rng)
    for at in range(len(couples) * len(IOI)):
        a, b = couples[at % len(couples)]
        first, second = (a, b) if rng.integers(2) else (b, a)
        place, object_ = (str(rng.choice(words.split())) for words in (PLACES, OBJECTS))
        form = IOI[rng.integers(len(IOI))]
        prompts = [
            Prompt(
                form.format(a=first, b=second, s=s, place=place, object=object_),
                f" {to}",
                "",
                form=form,
            )
            for s, to in ((first, second), (second, first))
        ]
        yield from _swapped(tokenizer, prompts, f"{a} {b}")


def _three_names(tokenizer: Any, prompts: Sequence[Prompt], rng: Rng) -> list[str]:
    """Each prompt of IOI with three other names in place of its three (Wang et al. 2023)."""
    names = _kept(tokenizer, NAMES, "Then she gave it to")

    def renamed(text: str, own: list[str]) -> str:
        between = re.split(rf"\b(?:{'|'.join(own)})\b", text)
        return "".join(map("".join, zip(between, [*_others(names, own, rng)[:3], ""], strict=True)))

    return [renamed(prompt.text, prompt.item.split()) for prompt in prompts]


def _greater_than(tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """Greater-than: two first years; a year after both is right, one between them only for the
    earlier.

    So the later year is clean and the earlier corrupted. Where numbers are cut into digits the next
    digit is the answer: then there are ten tokens, and few couples.
    """
    tokens = _year_tokens(tokenizer, "The war lasted from the year 1745 to the year 17")
    couples = _couples(list(tokens), rng)
    for one, other in couples * len(CENTURIES):
        early, late = sorted(int(rng.choice(tokens[token])) for token in (one, other))
        event, century = str(rng.choice(EVENTS.split())), int(rng.choice(CENTURIES))
        clean, corrupted = (
            f"The {event} lasted from the year {century}{start:02} to the year {century}"
            for start in (late, early)
        )
        years_of = _year_tokens(tokenizer, clean)
        right = tuple(text for text, years in years_of.items() if min(years) > late)
        wrong = tuple(
            text for text, years in years_of.items() if early < min(years) and max(years) <= late
        )
        alike = len(input_ids(tokenizer, clean)) == len(input_ids(tokenizer, corrupted))
        if right and wrong and alike:
            yield Prompt(clean, right, wrong, corrupted, f"{one} {other}")


def _year_tokens(tokenizer: Any, text: str) -> dict[str, list[int]]:
    """The tokens that can follow a century, each with its years."""
    before = input_ids(tokenizer, text)
    years: dict[str, list[int]] = {}
    for year in range(100):
        whole = input_ids(tokenizer, f"{text}{year:02}")
        if len(whole) > len(before) and np.array_equal(whole[: len(before)], before):
            token = tokenizer.decode(whole[len(before) : len(before) + 1])
            years.setdefault(token, []).append(year)
    return {
        token: some for token, some in years.items() if token and single(tokenizer, text, token)
    }


def _words(forms: Sequence[str], pairs: str, tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """Pairs of words whose prompts have equal length, each with its own partner as the answer."""
    known: dict[int, list[tuple[str, str]]] = {}
    for one in pairs.split(", "):
        word, answer = one.split()
        text = forms[0].format(word)
        if single(tokenizer, text, f" {answer}"):
            known.setdefault(len(input_ids(tokenizer, text)), []).append((word, answer))
    couples = [couple for some in known.values() for couple in _couples(some, rng)]
    for form in forms:
        for couple in couples:
            prompts = [Prompt(form.format(word), f" {to}", "", form=form) for word, to in couple]
            yield from _swapped(tokenizer, prompts, " ".join(word for word, _ in couple))


def _pronouns(tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """Gendered pronouns: the name of a man or of a woman, in a question that takes a pronoun."""
    sexes = (rng.permutation(_kept(tokenizer, names, "I met")) for names in (MEN, WOMEN))
    couples = list(zip(*sexes, strict=False))
    for form in PRONOUN_FORMS:
        for man, woman in couples:
            prompts = [
                Prompt(form.format(name), word, "", form=form)
                for name, word in ((man, " he"), (woman, " she"))
            ]
            yield from _swapped(tokenizer, prompts, f"{man} {woman}")


def _induction(tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """Random words, of which A comes again; what came after it changes places with another word."""
    words = _kept(tokenizer, THINGS, "I see a")
    triples = list(zip(*[iter(rng.permutation(words).tolist())] * 3, strict=False))
    for a, *both in triples * ROUNDS:
        others = _others(words, (a, *both), rng)
        ends = rng.integers(1, 4, 3).cumsum()
        if len(others) < ends[2]:
            return
        first, second, third = (some.tolist() for some in np.split(others, ends)[:3])
        order = 1 if rng.integers(2) else -1
        prompts = []
        for after, away in (both, both[::-1]):
            one, two = [[a, after], [away]][::order]
            text = " ".join([*first, *one, *second, *two, *third, a])
            prompts.append(Prompt(text, f" {after}", ""))
        yield from _swapped(tokenizer, prompts, " ".join((a, *both)))


def _docstring(tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """A function whose docstring has come to the third argument, which changes places with the
    fourth.
    """
    words = _kept(tokenizer, THINGS, "def call(self,")
    for both in _couples(words, rng) * ROUNDS:
        others = _others(words, both, rng)
        if len(others) < 7:
            return
        name, one, two, *more = others[:7]
        prompts = [
            Prompt(
                DOCSTRING.format(
                    name, ", ".join((one, two, *order)), *more[:2], one, more[2], two, more[3]
                ),
                f" {order[0]}",
                "",
            )
            for order in (both, both[::-1])
        ]
        yield from _swapped(tokenizer, prompts, " ".join(both))


def _arithmetic(tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """Sums of two numbers of two digits; the other prompt has another second number."""
    couples = _couples(range(20, 100), rng)
    for form in SUM_FORMS:
        for sums in couples:
            first = int(rng.integers(10, min(sums) - 9))
            prompts = [
                Prompt(form.format(first, one - first), f" {one}", "", form=form) for one in sums
            ]
            yield from _swapped(tokenizer, prompts, " ".join(map(str, sums)))


def _colours(tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """Three coloured things, of which one is asked about; in the other prompt another one."""
    things, colours = _kept(tokenizer, THINGS, "I see a red"), _kept(tokenizer, COLOURS, "Answer:")
    for couple in _couples(things, rng) * ROUNDS:
        shown = [*couple, *_others(things, couple, rng)][:3]
        if len(shown) < 3 or len(colours) < 3:
            return
        seen = dict(zip(shown, rng.permutation(colours), strict=False))
        one, two, three = (f"a {seen[thing]} {thing}" for thing in rng.permutation(shown))
        text = f"On the table, I see {one}, {two} and {three}. What colour is the"
        prompts = [Prompt(f"{text} {thing}? Answer:", f" {seen[thing]}", "") for thing in couple]
        yield from _swapped(tokenizer, prompts, " ".join(couple))


def _agreement(tokenizer: Any, rng: Rng) -> Iterator[Prompt]:
    """A subject of one or of many, another noun of either number, and the verb."""
    known = _kept(tokenizer, THINGS, "The")
    nouns = [noun for noun in known if single(tokenizer, "The", f" {noun}s")]
    for noun in rng.permutation(nouns).tolist() * ROUNDS:
        form, verbs = str(rng.choice(AGREEMENT_FORMS)), str(rng.choice(VERBS)).split()
        near = "".join([*_others(nouns, [noun], rng)[:1], *"s" * rng.integers(2)])
        prompts = [
            Prompt(form.format(subject, near), f" {verb}", "", form=form)
            for subject, verb in zip((noun, f"{noun}s"), verbs, strict=True)
        ]
        yield from _swapped(tokenizer, prompts, f"{noun} {noun}s")


ANTONYM_FORMS = ("The opposite of {} is", "The antonym of {} is")
CAPITAL_FORMS = ("The capital of {} is", "The capital city of {} is called")
WORDS = {"antonyms": ANTONYMS, "capitals": CAPITALS}
MADE: Mapping[str, Callable[[Any, Rng], Iterator[Prompt]]] = {
    "ioi": _ioi,
    "greater-than": _greater_than,
    "antonyms": lambda tokenizer, rng: _words(ANTONYM_FORMS, ANTONYMS, tokenizer, rng),
    "capitals": lambda tokenizer, rng: _words(CAPITAL_FORMS, CAPITALS, tokenizer, rng),
    "gendered-pronouns": _pronouns,
    "induction": _induction,
    "docstring": _docstring,
    "arithmetic": _arithmetic,
    "colours": _colours,
    "agreement": _agreement,
}


def few_shots(task: str, tokenizer: Any, *, shots: int, count: int, seed: int) -> PromptSet:
    """Few-shot prompts; the corrupted ones have shuffled answers in the examples.

    task    "antonyms" or "capitals"; no question is asked twice
    raises  InputError for another task, or too few words that the tokenizer keeps whole
    """
    if task not in WORDS:
        raise InputError(f"no task {task!r} shown by examples; there are {', '.join(WORDS)}")
    known = [
        (word, answer)
        for word, answer in (one.split() for one in WORDS[task].split(", "))
        if single(tokenizer, f"Q: {word}\nA:", f" {answer}")
    ]
    if shots < 2 or len(known) < shots + 2:
        raise InputError(
            f"found {shots} examples before each question, and {len(known)} words of {task!r} "
            "that the tokenizer keeps whole; wanted at least 2 examples and 2 words more"
        )
    rng, prompts = generator(seed, "examples", task), []
    for at in rng.permutation(len(known))[:count]:
        word, answer = known[at]
        others = rng.choice(np.delete(np.arange(len(known)), at), shots, replace=False)
        questions = [known[one][0] for one in others]
        answers = [known[one][1] for one in others]
        texts = [
            "".join(f"Q: {q}\nA: {a}\n\n" for q, a in zip(questions, answers_shown, strict=True))
            + f"Q: {word}\nA:"
            for answers_shown in (answers, answers[1:] + answers[:1])
        ]
        prompts.append(Prompt(texts[0], f" {answer}", f" {answers[0]}", texts[1], item=word))
    return encode_prompts(tokenizer, prompts, kind=f"{task}, {shots} examples")
