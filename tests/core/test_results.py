"""Are tokens shown as a reader writes them?"""

from headscope.core.results import pieces


def test_a_piece_that_continues_a_word_has_a_hyphen_for_its_mark():
    tokens = ("[CLS]", "un", "##bel", "##", "[SEP]", "##a")
    assert pieces(tokens, [True, False, False, False, True, False]) == (
        "[CLS]",
        "un",
        "-bel",
        "##",
        "[SEP]",
        "##a",
    )


def test_what_is_written_with_number_signs_stays_as_it_is():
    assert pieces(("Ġ#", "###", "a"), [False] * 3) == ("Ġ#", "###", "a")  # no WordPiece
    assert pieces(("x", "###", "##y"), [False] * 3, ("x", "###", "y")) == ("x", "###", "-y")
    assert pieces((), []) == ()
