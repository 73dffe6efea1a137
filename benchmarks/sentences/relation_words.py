"""What a relation is called in sentences, and which one it is: `direct object → verb` is `obj`."""

NAMES = {
    "verb": {
        "subject": "nsubj", "passive subject": "nsubj:pass", "clausal subject": "csubj",
        "clausal passive subject": "csubj:pass", "direct object": "obj",
        "indirect object": "iobj", "oblique": "obl", "agent": "obl:agent",
        "time": "obl:tmod", "adverbial noun phrase": "obl:npmod", "expletive": "expl",
        "auxiliary": "aux", "passive auxiliary": "aux:pass", "subordinator": "mark",
        "adverbial clause": "advcl", "clausal complement": "ccomp",
        "open clausal complement": "xcomp", "particle": "compound:prt", "vocative": "vocative",
    },
    "noun": {
        "determiner": "det", "predeterminer": "det:predet", "adjective": "amod",
        "nominal modifier": "nmod", "possessor": "nmod:poss", "numeral": "nummod",
        "compound modifier": "compound", "case marker": "case", "apposition": "appos",
        "clausal modifier": "acl", "relative clause": "acl:relcl",
    },
    "modified word": {"adverb": "advmod"},
    "predicate": {"copula": "cop"},
    "first conjunct": {"conjunct": "conj"},
    "conjunct": {"conjunction": "cc", "preconjunction": "cc:preconj"},
    "first word": {"fixed expression": "fixed", "name part": "flat"},
    "main clause": {"parataxis": "parataxis"},
}  # fmt: skip


def read(words: str) -> tuple[str, str]:
    """`verb → its direct object` -> obj, head_to_dependent; KeyError for words that are none."""
    if words.startswith("any word") or words == "head → its dependent":
        clean = "but roots" in words
        way = "dependent_to_head" if words.startswith("any") else "head_to_dependent"
        return "all but root and punctuation" if clean else "all", way
    one, other = words.split(" → ")
    if other in NAMES and one in NAMES[other]:
        return NAMES[other][one], "dependent_to_head"
    return NAMES[one][other.removeprefix("its ")], "head_to_dependent"
