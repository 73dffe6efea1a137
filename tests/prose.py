"""Sentences of a page's running text, and how long they are."""

import re

FENCED = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.DOTALL | re.MULTILINE)
NO_PROSE = ("#", "|", ":::", ":link", ":gutter", ":class", "%", "<", "---")  # how its lines begin
ITEM = re.compile(r"([-*]|\d+\.|:)\s+")
END = re.compile(r"(?<=[.!?])[”\")*]*\s+(?=[A-Z0-9`“\"(‘]|headscope )")


# Openings with the verb before its subject: "So is a folder", "Below each map are its links".
VERB = r"(is|are|was|were|stands?|lies?|comes?)"
INVERTED = re.compile(
    rf"Of |(So|Nor|Neither) ({VERB}|do|does|did|has|have|can) |"
    rf"Not \w+ {VERB} (a|an|the|its|their) |"
    rf"(Below|Beside|Above|Among|Behind|Beneath) [^,.;:]{{1,30}}? {VERB} (a|an|the|its|their|one) "
)


def sentences(page: str) -> list[str]:
    """The sentences outside code, tables, headings and directives; items of lists begin one."""
    blocks, block = [], list[str]()
    for line in FENCED.sub("", page).splitlines():
        words = line.strip()
        if not words or words.startswith(NO_PROSE) or ITEM.match(words):
            blocks.append(" ".join(block))
            words = ITEM.sub("", words, count=1) if ITEM.match(words) else ""
            block = []
        block.append(words)
    return [
        one for text in [*blocks, " ".join(block)] for one in END.split(_plain(text).strip()) if one
    ]


def inverted(sentence: str) -> bool:
    """Whether it opens with a verb before its subject, by the few openings that are sure."""
    return INVERTED.match(sentence) is not None


def longest_part(sentence: str) -> int:
    """Words of the sentence or of its longest aside in brackets; numbers and signs are none."""
    asides = re.findall(r"\(([^()]*)\)|\[([^][]*)\]", sentence)
    rest = re.sub(r"\([^()]*\)|\[[^][]*\]", " ", sentence)
    return max(_words(part) for part in [rest, *(a or b for a, b in asides)])


def _words(text: str) -> int:
    return sum(any(sign.isalpha() for sign in word) for word in text.split())


def _plain(text: str) -> str:
    """Without pictures, addresses of links and emphasis; code is one word each."""
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`[^`]+`", lambda code: f"`{re.sub(r'[^a-z]', '', code[0]) or 'x'}`", text)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("*", "")
