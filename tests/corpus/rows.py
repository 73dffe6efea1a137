"""How are small treebanks written in tests?"""


def row(number, form, head, relation="dep", *, misc="_", upos="X", xpos="_"):
    """One line of CoNLL-U."""
    return f"{number}\t{form}\t_\t{upos}\t{xpos}\t_\t{head}\t{relation}\t_\t{misc}"


def sentence(*rows, comments=()):
    """Comments, rows and the blank line behind them."""
    return "\n".join([*comments, *rows]) + "\n\n"


def entities(*marks, heads=None, comments=(), tags=()):
    """A sentence w1 w2 … with these `Entity=` marks; the first word is the root by default.

    tags  pairs of upos and xpos
    """
    heads = heads or [0] + [1] * (len(marks) - 1)
    tags = tags or [("X", "_")] * len(marks)
    rows = [
        row(n, f"w{n}", head, misc=f"Entity={mark}" if mark else "_", upos=upos, xpos=xpos)
        for n, (mark, head, (upos, xpos)) in enumerate(zip(marks, heads, tags, strict=True), 1)
    ]
    return sentence(*rows, comments=comments)
