"""Are made prompts coupled, of equal length, drawn by the seed, and answered by one token?"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from experiments.circuits.decoders import (
    TOKENIZERS,
    english,
    english_decoder,
    made_tokenizer,
    words,
)
from headscope.errors import CorpusError, InputError
from headscope.experiments.circuits import made_prompts as M
from headscope.experiments.circuits import prompts as P
from headscope.experiments.circuits.direct_logits import prompt_set
from headscope.experiments.circuits.own_prompts import read_prompts


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("kind", M.MADE)
def test_made_prompts_come_in_couples_that_swap_their_answers(kind, tokenizer):
    cuts = made_tokenizer(tokenizer)
    if (kind, tokenizer) == ("greater-than", "WordPiece"):  # digits that go on have no own text
        with pytest.raises(InputError, match="keeps too few words of 'greater-than' whole"):
            M.made_prompts(kind, cuts)
        return
    made = M.made_prompts(kind, cuts, count=24)
    made.need_pairs()
    again, other = (M.made_prompts(kind, cuts, count=24, seed=s) for s in (0, 1))
    assert made.prompts == again.prompts != other.prompts
    by_text = {prompt.text: prompt for prompt in made.prompts}
    for prompt, right, wrong in zip(made.prompts, made.right, made.wrong, strict=True):
        assert not set(right) & set(wrong)
        if kind != "greater-than":
            twin = by_text[prompt.corrupted]
            assert (twin.answer, twin.wrong, twin.item) == (
                prompt.wrong,
                prompt.answer,
                prompt.item,
            )
    items = set(made.items)
    words_of = [item.split() for item in items]
    said = [word for some in words_of for word in some]
    assert len(said) == len(set(said))  # no word is in two couples
    assert {len(some) for some in words_of} == {3 if kind == "induction" else 2}


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("kind", [kind for kind in M.MADE if kind != "greater-than"])
def test_other_kinds_of_corrupted_prompts_are_as_long_and_answered_otherwise(kind, tokenizer):
    made = M.made_prompts(kind, made_tokenizer(tokenizer), count=24)
    assert set(made.others) == {M.ANOTHER, *[M.THREE] * (kind == "ioi")}
    made.need_pairs()
    every = {
        one.text: one for one in M.made_prompts(kind, made_tokenizer(tokenizer), count=96).prompts
    }
    for prompt in made.prompts:
        texts = dict(prompt.others)
        other = every[texts[M.ANOTHER]]
        assert other.answer != prompt.answer
        assert (other.form, other.item) != (prompt.form, prompt.item) == (other.form, prompt.item)
        if kind == "ioi":
            a, b = prompt.item.split()
            three = texts[M.THREE].split()
            apart = [
                (one, two)
                for one, two in zip(prompt.text.split(), three, strict=True)
                if one != two
            ]
            assert [one.strip(",.") in (a, b) for one, _ in apart] == [True] * 3
            assert len({two.strip(",.") for _, two in apart} - {a, b}) == 3


def test_a_kind_that_some_prompts_lack_is_left_out_and_a_longer_text_refused():
    cuts = words()
    one, two = (
        P.Prompt("w5 w6", " w7", " w8", "w5 w9", "a"),
        P.Prompt("w6 w6", " w7", " w8", "w6 w9", "b"),
    )
    own = replace(one, others=(("kind", "w9 w9"),))
    assert not P.encode_prompts(cuts, [own, two]).others
    assert list(P.encode_prompts(cuts, [own, own]).others) == ["kind"]
    long = replace(one, others=(("kind", "w9 w9 w9"),))
    with pytest.raises(InputError, match="'w9 w9 w9' as 3; wanted texts of the same length"):
        P.encode_prompts(cuts, [long, long]).need_pairs()


def tokens(cuts, text):
    ids = cuts(text)["input_ids"]
    return ids[:-1] if ids[-1] == cuts.sep_token_id else ids


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("kind", [kind for kind in M.MADE if kind != "greater-than"])
def test_one_token_decides_the_first_in_which_both_continuations_differ(kind, tokenizer):
    cuts = made_tokenizer(tokenizer)
    made = M.made_prompts(kind, cuts, count=24)
    sides = zip(made.prompts, made.clean, made.corrupted, made.right, made.wrong, strict=True)
    several = 0
    for prompt, clean, corrupted, right, wrong in sides:
        ends = [tokens(cuts, prompt.text + end) for end in (prompt.answer, prompt.wrong)]
        at = next(at for at, (one, two) in enumerate(zip(*ends, strict=False)) if one != two)
        assert [*clean.input_ids, *right] == ends[0][: at + 1]
        assert [*clean.input_ids, *wrong] == ends[1][: at + 1]
        twin = tokens(cuts, prompt.corrupted + prompt.wrong)
        assert [*corrupted.input_ids, *wrong] == twin[: at + 1]
        several += sum(len(end) > len(tokens(cuts, prompt.text)) + 1 for end in ends)
    assert bool(several) == (kind == "arithmetic" and tokenizer != "byte-level BPE")
    assert all(note.startswith(f"{several} answers have several") for note in made.notes)
    assert len(made.notes) == bool(several)


def after_the_same(text):
    *words_of, last = text.split()
    return words_of[words_of.index(last) + 1]


def next_argument(text):
    arguments = re.search(r"\(self, (.*)\)", text).group(1).split(", ")
    return arguments[text.count(":param") - 1]


def asked_colour(text):
    colours = {thing: colour for colour, thing in re.findall(r"an? (\w+) (\w+)", text)}
    return colours[re.search(r"is the (\w+)\?", text).group(1)]


def agreeing(text):
    plural = text.split()[1].endswith("s")
    return ("are", "were", "have") if plural else ("is", "was", "has")


HERS = {"Emily", "Jane", "Laura", "Lisa", "Mary", "Rachel", "Ruth", "Sarah", "Susan", "Alice"}
HIS = {"Brian", "Charles", "David", "Frank", "James", "John", "Kevin", "Mark", "Paul", "Peter"}
ANSWERED_BY = {
    "induction": after_the_same,
    "docstring": next_argument,
    "arithmetic": lambda text: str(sum(map(int, re.findall(r"\d+", text)))),
    "colours": asked_colour,
    "agreement": agreeing,
    "gendered-pronouns": lambda text: (
        ["he"] * any(f" {name} " in text for name in HIS)
        + ["she"] * any(f" {name} " in text for name in HERS)
    ),
}


@pytest.mark.parametrize("kind", ANSWERED_BY)
def test_whoever_knows_the_rule_answers_all_prompts(kind):
    known = 0
    for prompt in M.made_prompts(kind, english(), count=64).prompts:
        if answers := ANSWERED_BY[kind](prompt.text):
            answers = [answers] if isinstance(answers, str) else answers
            assert prompt.answer[1:] in answers
            assert prompt.wrong[1:] not in answers
            known += 1
    assert known == 64 or (kind == "gendered-pronouns" and known >= 12)


def test_an_induction_prompt_holds_both_words_and_only_their_places_decide():
    for prompt in M.made_prompts("induction", english(), count=40).prompts:
        assert sorted(prompt.text.split()) == sorted(prompt.corrupted.split())
        assert prompt.text.split().count(prompt.wrong.strip()) == 1


def test_ioi_gives_to_who_does_not_give():
    for prompt in M.made_prompts("ioi", english(), count=40).prompts:
        words_of = prompt.text.replace(".", " ").replace(",", " ").split()
        gives, to = prompt.wrong.strip(), prompt.answer.strip()
        assert (words_of.count(gives), words_of.count(to)) == (2, 1)


def test_later_years_are_right_and_those_between_wrong():
    for prompt in M.made_prompts("greater-than", english(), count=40).prompts:
        early, late = (int(t.split(" to ")[0][-2:]) for t in (prompt.corrupted, prompt.text))
        assert early < late
        assert all(int(token) * 10 > late for token in prompt.answer)  # digits are cut
        assert all(int(token) * 10 > early for token in prompt.wrong)
        assert all(int(token) * 10 + 9 <= late for token in prompt.wrong)


def test_words_that_the_tokenizer_does_not_keep_whole_are_left_out_or_refused():
    with pytest.raises(InputError, match="the tokenizer keeps too few words of"):
        M.made_prompts("capitals", words())
    with pytest.raises(InputError, match="no prompt set called 'iou'; there are ioi"):
        M.made_prompts("iou", words())
    with pytest.raises(InputError, match=r"makes of the answer ' blurb' 1 token \('\[UNK\]'\)"):
        P.encode_prompts(english(), [P.Prompt("The year", " blurb", " 1")])
    with pytest.raises(InputError, match=r"makes of the answer '' 0 tokens \('year'\); wan"):
        P.encode_prompts(english(), [P.Prompt("The year", "", " 1")])
    with pytest.raises(CorpusError, match="found no prompts"):
        P.encode_prompts(english(), [])


def test_a_table_of_prompts_is_read(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("prompt\tanswer\twrong\tcorrupted\nhot is\tcold\tsmall\tbig is\n", "utf-8")
    (prompt,) = read_prompts(path, english()).prompts
    assert prompt == P.Prompt("hot is", " cold", " small", "big is")
    asked = prompt_set(english_decoder("GPT-2"), str(path), count=1, seed=0)
    assert asked.prompts == (prompt,)  # as every function takes it
    path.write_text(
        "prompt\tanswer\twrong\tcorrupted\tcorrupted: year\nhot is\tcold\tsmall\tbig is\tyear is\n",
        "utf-8",
    )
    (prompt,) = read_prompts(path, english()).prompts
    assert prompt.others == (("year", "year is"),)
    path.write_text("prompt\tanswer\nhot is\tcold\n", "utf-8")
    with pytest.raises(CorpusError, match="has no column 'wrong'; wanted prompt, answer, wrong"):
        read_prompts(path, english())
    path.write_text("prompt\tanswer\twrong\nhot is\t\tbig\n", "utf-8")
    with pytest.raises(CorpusError, match="line 2: an empty cell"):
        read_prompts(path, english())
    path.write_text("prompt\tanswer\twrong\tcorrupted\nhot is\tcold\tbig\tbig\n", "utf-8")
    with pytest.raises(InputError, match="as 2 tokens and its corrupted prompt 'big' as 1; wanted"):
        read_prompts(path, english()).need_pairs()


def test_answers_of_several_tokens_are_compared_in_the_first_that_differs():
    digits = english()

    def ids(text):
        return P.input_ids(digits, text).tolist()

    made = P.encode_prompts(
        digits,
        [
            P.Prompt("The year", " 1745", " 1732", "The war"),
            P.Prompt("The year", (" 38", " 39"), " 31", "The war"),
            P.Prompt("The year", " 7", " 8 1", "The war"),
        ],
    )
    shared = [" 17", " 3", ""]
    for side, text in ((made.clean, "The year"), (made.corrupted, "The war")):
        assert [one.input_ids.tolist() for one in side] == [ids(text + more) for more in shared]
    right, wrong = ([digits.decode(one) for one in side] for side in (made.right, made.wrong))
    assert (right, wrong) == (["4", "8 9", "7"], ["3", "1", "8"])
    assert made.notes == (
        "6 answers have several tokens: the first that tells right from wrong was compared",
    )
    made.need_pairs()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(" 17", " 17"), (" 1", " 17"), (" 17", " 1"), ((" 38", " 4"), " 31"), ((" 1", " 17"), " 12")],
)
def test_answers_that_no_token_tells_apart_are_refused(right, wrong):
    with pytest.raises(InputError, match=r"does not tell the answer ' .*' from the wrong one"):
        P.encode_prompts(english(), [P.Prompt("The year", right, wrong)])
    with pytest.raises(InputError, match="has no answer, or no wrong one; wanted both"):
        P.encode_prompts(english(), [P.Prompt("The year", right, ())])
