"""Does the package keep the rules of its house: short modules, short functions, one name each?"""

from __future__ import annotations

import ast
import io
import re
import runpy
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import headscope

ROOT = Path(headscope.__file__).parent
IN_THE_ROOT, LINES_OF_A_MODULE, LINES_OF_A_FUNCTION = 6, 400, 60
HOMONYMS = 0.03  # of all classes
LAID_OUT_BY_HAND = 50  # tables that the formatter leaves as they are


@cache
def modules():
    """The syntax trees of all modules by path."""
    return {
        path.relative_to(ROOT): ast.parse(path.read_text("utf-8")) for path in ROOT.rglob("*.py")
    }


def test_few_files_stand_in_the_root():
    assert len([path for path in modules() if len(path.parts) == 1]) <= IN_THE_ROOT


def test_no_module_is_longer_than_is_read_at_once():
    lines = {path: (ROOT / path).read_text("utf-8").count("\n") for path in modules()}
    assert {path: n for path, n in lines.items() if n > LINES_OF_A_MODULE} == {}


def test_no_function_is_longer_than_a_screen():
    functions = (
        (f"{path}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1)
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert {name: n for name, n in functions if n > LINES_OF_A_FUNCTION} == {}


def test_tables_of_data_alone_are_laid_out_by_hand():
    by_hand = {
        (str(path), number): line.partition("# fmt: ")[2]
        for path in modules()
        for number, line in enumerate((ROOT / path).read_text("utf-8").split("\n"), 1)
        if "# fmt: " in line
    }
    ends_of_tables = {
        (str(path), node.end_lineno)
        for path, tree in modules().items()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_data(node)
    }
    assert set(by_hand.values()) == {"skip"}
    assert by_hand.keys() <= ends_of_tables
    assert len(by_hand) <= LAID_OUT_BY_HAND


def is_data(statement):
    """Whether nothing is worked out in it: the only calls are of classes, and of the like."""
    parts = list(ast.walk(statement))
    calls = [part.func for part in parts if isinstance(part, ast.Call)]
    return all(isinstance(one, ast.Name) for one in calls) and not any(
        isinstance(part, ast.comprehension | ast.Lambda) for part in parts
    )


def test_a_name_of_a_class_means_one_thing():
    trees = modules().values()
    named = Counter(
        node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)
    )
    shared = {name: n for name, n in named.items() if n > 1}
    assert sum(shared.values()) <= HOMONYMS * sum(named.values()), shared


# Of other packages: what has no public name.
PRIVATE = {
    "_attn_implementation", "_attn_implementation_internal",  # of a configuration: to put it back
    "_can_set_attn_implementation",  # transformers: whether attention goes through its registry
    "_commit_hash",  # transformers: of a configuration from the hub
    "_hf_hook", "_skip_keys_device_placement",  # accelerate: whether a module is moved when it runs
    "_forward_hooks", "_forward_pre_hooks",  # torch: to run a layer again without them
    "_reorder_linear_weight", "_linear_pointwise",  # torch's operators: packed weights
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",  # others do not give the log-sum-exp
    "_processes", "_result_queue", "_writer",  # of an executor, which cannot be killed before 3.14
    "_exit",  # os: public
}  # fmt: skip


def test_private_names_of_other_packages_are_those_without_a_public_one():
    ours, used = set(), set()
    for node in (node for tree in modules().values() for node in ast.walk(tree)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name):
                ours.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                ours.add(name)
            case (
                ast.Attribute(attr=name)
                | ast.Call(
                    func=ast.Name(id="getattr" | "hasattr"),
                    args=[_, ast.Constant(value=str(name)), *_],
                )
            ):
                used.add(name)
    assert {name for name in used - ours - PRIVATE if re.match("_[a-z]", name)} == set()


# --- words ------------------------------------------------------------------------------------

UNCLEAR_NAMES = {"told", "asked", "given", "found"}  # say what it is: scores, requested, options, …
PUBLIC_NAMES = {("corpus/given_corpus.py", "corpus_of", "given")}  # keywords that users pass
UNCLEAR_PHRASES = (
    "for sure",
    "above, as is",
    "so many heads removed",
    "None: none but",
    "classes were told",
    "the logits that it takes",
    "what was seen to be there",
    "where not as many",
    "Nothing is left to do.",
    "of like length",
    "nothing there is touched",
    "another spec (",
    "no made prompts",
    "asked is",
)
# Where the report's sentences are not: in docstrings, comments and the pages.
UNCLEAR_PROSE = (
    r"held against",
    r"\bat (its|their) word\b",
    r"\banew\b",
    r"\bhangs on (?!its head)",
    r"\bso many\b",
    r"\b(is|are|was|were|be) told\b",
    r"\b(is|are) asked (of|it|what|the same)\b",
    r"\bas far as it lies\b",
    r"\b(its|their|and its|RoBERTa's) kin\b",
    r'^"""Of ',  # a docstring says what it gives before it says of what
)


def test_local_names_are_words_of_the_field():
    unclear = {
        (path.as_posix(), function.name, name)
        for path, tree in modules().items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in names_bound_in(function) & UNCLEAR_NAMES
    }
    assert unclear - PUBLIC_NAMES == set()


def names_bound_in(function):
    """Parameters and variables of a function, and of functions and lambdas in it."""
    nodes = list(ast.walk(function))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored | {n.arg for n in nodes if isinstance(n, ast.arg)}


def test_docstrings_comments_and_messages_are_plain_english():
    unclear = {
        (path.as_posix(), line, phrase)
        for path in modules()
        for line, text in texts_in(path)
        for phrase in UNCLEAR_PHRASES
        if phrase in text
    }
    assert unclear == set()


def test_docstrings_comments_and_pages_are_plain_english():
    prose = {
        (path.as_posix(), line): text
        for path in modules()
        for line, text in texts_in(path)
        if text.startswith(('"""', "#"))
    }
    docs = ROOT.parents[1] / "docs"
    for page in (docs.parent / "README.md", docs.parent / "CONTRIBUTING.md", *docs.glob("*.md")):
        text = page.read_text("utf-8")
        prose |= {(page.name, number): " ".join(p.split()) for number, p in paragraphs(text)}
    unclear = {
        (*place, phrase)
        for place, text in prose.items()
        for phrase in UNCLEAR_PROSE
        if re.search(phrase, text)
    }
    assert unclear == set()


def paragraphs(page):
    """Number and text of each paragraph of a page, without code and tables."""
    plain = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    parts = enumerate(plain.split("\n\n"), 1)
    return [(number, part) for number, part in parts if not part.lstrip().startswith("|")]


@cache
def texts_in(path):
    """Line and text of each string and comment of a module, on one line."""
    tokens = tokenize.generate_tokens(io.StringIO((ROOT / path).read_text("utf-8")).readline)
    return [
        (token.start[0], " ".join(token.string.split()))
        for token in tokens
        if token.type in (tokenize.STRING, tokenize.COMMENT)
    ]


def test_the_picture_of_the_rooms_has_every_room_in_the_order_of_the_contract():
    drawn = runpy.run_path(str(ROOT.parents[1] / "docs/rooms.py"))
    folders = {path.parts[0] for path in modules() if len(path.parts) > 1}
    assert drawn["HOLDS"].keys() == set(drawn["rooms"]()) == folders
    assert list(drawn["HOLDS"]) == drawn["rooms"]()
    height = {room: place for place, room in enumerate(drawn["rooms"]())}
    inner = {pair for pair in drawn["imports"]() if pair[1] in height}
    assert all(height[room] < height[other] for room, other in inner)
    assert not any(a not in drawn["WINGS"] and b in drawn["WINGS"] for a, b in inner)
