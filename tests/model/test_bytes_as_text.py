"""Is a token of a byte-level vocabulary shown as characters?"""

import pytest

from headscope.model.vocabulary import bytes_as_text


def written(raw: bytes) -> str:
    """The bytes as such a vocabulary writes them, by GPT-2's rule, one after the other."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), 256)]
    names, hidden = dict(zip(seen, map(chr, seen), strict=True)), 0
    for byte in range(256):
        if byte not in names:
            names[byte], hidden = chr(256 + hidden), hidden + 1
    return "".join(names[byte] for byte in raw)


@pytest.mark.parametrize("text", ["של", " שלום", "é", "你"])
def test_whole_characters_are_themselves(text):
    assert written(text.encode()) != text
    assert bytes_as_text(written(text.encode())) == text


def test_a_part_of_a_character_is_its_byte_and_no_other_character():
    first, second = "ש".encode()
    assert bytes_as_text(written(bytes([first]))) == r"\xd7"
    assert bytes_as_text(written(b" " + bytes([first]))) == r" \xd7"
    assert bytes_as_text(written("ל".encode() + bytes([first]))) == r"ל\xd7"
    assert bytes_as_text(written(bytes([second]))) == r"\xa9"


@pytest.mark.parametrize("name", ["word", "▁של", "<0xD7>", "א"])
def test_names_of_other_vocabularies_stay_as_they_are(name):
    assert bytes_as_text(name) == name
