"""Does the package keep the rules of its house: short modules, short functions, one name each?"""

from __future__ import annotations

import ast
import re
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
