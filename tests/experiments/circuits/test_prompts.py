"""Are made prompts coupled, of equal length, drawn by the seed, and answered by one token?"""

from __future__ import annotations

import pytest

from experiments.circuits.decoders import english, english_decoder, words
from headscope.errors import CorpusError, InputError
from headscope.experiments.circuits import made_prompts as M
from headscope.experiments.circuits import prompts as P
from headscope.experiments.circuits.direct_logits import prompt_set
from headscope.experiments.circuits.own_prompts import read_prompts


@pytest.mark.parametrize("kind", M.MADE)
def test_made_prompts_come_in_couples_that_swap_their_answers(kind):
    made = M.made_prompts(kind, english(), count=24)
    made.need_pairs()
    again, other = (M.made_prompts(kind, english(), count=24, seed=s) for s in (0, 1))
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
    said = [word for item in items for word in item.split()]
    assert len(said) == len(set(said)) == 2 * len(items)  # no word is in two couples


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
    with pytest.raises(InputError, match="the tokenizer splits all answers of"):
        M.made_prompts("capitals", words())
    with pytest.raises(InputError, match="no prompt set called 'iou'; there are ioi"):
        M.made_prompts("iou", words())
    with pytest.raises(InputError, match=r"makes of the answer ' blurb' 1 token \('\[UNK\]'\)"):
        P.encode_prompts(english(), [P.Prompt("The year", " blurb", " 1")])
    with pytest.raises(CorpusError, match="found no prompts"):
        P.encode_prompts(english(), [])


def test_a_table_of_prompts_is_read(tmp_path):
    path = tmp_path / "mine.tsv"
    path.write_text("prompt\tanswer\twrong\tcorrupted\nhot is\tcold\tsmall\tbig is\n", "utf-8")
    (prompt,) = read_prompts(path, english()).prompts
    assert prompt == P.Prompt("hot is", " cold", " small", "big is")
    asked = prompt_set(english_decoder("GPT-2"), str(path), count=1, seed=0)
    assert asked.prompts == (prompt,)  # as every function takes it
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
