"""Our docstrings as reStructuredText, and the place of a type that a signature names.

A docstring is plain text: names in `backquotes`, lists in two columns (`name   what it is`),
formulas and examples indented.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

TERM = re.compile(r"(\S.*?) {2,}(\S.*)")
DEFAULT = re.compile(r"<function <lambda>>|<[a-z ]+>")


def _escaped(text: str) -> str:
    """A line of plain text, its code marked, nothing else of it a mark."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        f"`{part}`" if part.startswith("`") else re.sub(r"([\\*|_])", r"\\\1", part)
        for part in parts
    )


def _paragraph(lines: list[str]) -> list[str]:
    """One paragraph: indented, in columns, or running text."""
    if all(line.startswith("    ") for line in lines):
        return ["::", "", *lines, ""]
    if not TERM.fullmatch(lines[0]):
        return [*map(_escaped, lines), ""]
    out = []
    for line in lines:
        found = TERM.fullmatch(line)
        if found and not line.startswith(" "):
            out += [f"``{found[1]}``", f"    {_escaped(found[2])}"]
        else:
            out += [f"    {_escaped(line.strip())}"]
    return [*out, ""]


def _as_rest(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    text = "\n".join(lines).strip("\n")
    parts = [part.splitlines() for part in re.split(r"\n\s*\n", text) if part.strip()]
    lines[:] = [line for part in parts for line in _paragraph(part)]


def _readable(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, gives: Any
) -> tuple[str | None, Any]:
    """Without the arguments of what nobody makes (`autoclass:: View()`) and odd defaults."""
    if what == "class" and signature == "()":
        return "", None
    return signature and DEFAULT.sub("...", signature), gives


def _by_its_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: nodes.Element
) -> nodes.Element | None:
    """`headscope.run.store.Run`, as a signature has it, is on the page as `headscope.Run`."""
    if node.get("refdomain") != "py":
        return None
    name, domain = node["reftarget"].rpartition(".")[2], env.domains.python_domain
    found = [whole for whole in domain.objects if whole.rpartition(".")[2] == name]
    types = [whole for whole in found if domain.objects[whole].objtype in ("class", "type")]
    if len(types) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", types[0], node, contnode)


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to autodoc and to references that are not found."""
    app.connect("autodoc-process-docstring", _as_rest)
    app.connect("autodoc-process-signature", _readable)
    app.connect("missing-reference", _by_its_name)
    return {"parallel_read_safe": True}
