"""Do labels say in inputs of which lengths they hold?"""

import pytest

from headscope.claims.claim import Claim
from headscope.claims.length_bands import place_of, where_it_holds
from headscope.claims.plan import LabelRule

RULE = LabelRule("x", number="x", least=0.5, source="ours")
WORDS = LabelRule("x", number="x", least=0.0, source="ours", words=True)
SHORT, LONGER, LONG = "up to 16", "17 to 32", "129 to 512"


def claim(low, high, reference=0.1):
    value = (low + high) / 2
    return Claim(1, 2, "x", 0.5, "x", "x 60 %", "does x", value, low, high, reference, 9, "surface")


def where(rule=RULE, **numbers):
    of = {
        band: {place_of(one): one}
        for band, ends in zip((SHORT, LONGER, LONG), numbers.values(), strict=False)
        for one in (claim(*ends),)
    }
    return where_it_holds(claim(0.6, 0.7), rule, of)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        (((0.6, 0.7), (0.6, 0.7), (0.6, 0.7)), "up to 32 or 129 to 512 tokens"),
        (((0.6, 0.7), (0.6, 0.7), (0.1, 0.2)), "up to 32 tokens"),
        (((0.6, 0.7), (0.1, 0.2), (0.6, 0.7)), "up to 16 or 129 to 512 tokens"),
        (((0.1, 0.2), (0.6, 0.7), (0.6, 0.7)), "17 to 32 or 129 to 512 tokens"),
        (((0.6, 0.7), (0.4, 0.6), (0.1, 0.2)), "up to 16 tokens"),  # cannot tell: not named
        (((0.4, 0.6), (0.4, 0.6), (0.4, 0.6)), "up to 32 or 129 to 512 tokens"),
        (((0.1, 0.2), (0.1, 0.2), (0.1, 0.2)), "not up to 32 or 129 to 512 tokens"),
    ],
)
def test_a_share_of_attention_is_said_of_the_lengths_that_were_read(numbers, words):
    assert where(**dict(zip("abc", numbers, strict=True))) == words


def test_what_a_head_knows_of_words_is_said_of_all_lengths_where_it_is_the_same():
    assert not where(WORDS, a=(0.6, 0.7), b=(0.65, 0.75))
    assert where(WORDS, a=(0.6, 0.7), b=(0.02, 0.08)) == "up to 16 tokens"  # below its baseline
    assert where(WORDS, a=(0.8, 0.9), b=(0.6, 0.7)) == "up to 32 tokens"  # falls with the length


def test_a_run_that_tells_no_lengths_apart_says_nothing_of_them():
    assert not where()


def test_the_length_stands_in_label_and_sentence():
    named = claim(0.6, 0.7).only("up to 32 tokens")
    assert named.label == "x 60 %, up to 32 tokens"
    assert named.sentence == "does x, in inputs of up to 32 tokens"
    assert named.short == "x 65 %, up to 32 tokens"
    assert (
        claim(0.6, 0.7)
        .only("not 33 to 64 tokens")
        .sentence.endswith("does x, not in inputs of 33 to 64 tokens")
    )
