"""Is everything on the site? That its links lead somewhere, `make site` itself finds out."""

import re
from fnmatch import fnmatch
from pathlib import Path

import headscope as hs
from headscope.cli.main import COMMANDS

DOCS = Path(__file__).resolve().parents[1] / "docs"
ROOT_PAGE = DOCS / "index.md"


def entries(page: Path) -> list[str]:
    """What the toctrees of a page name, relative to docs, with their wildcards."""
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line and line[0] != ":"]
    return [str((page.parent / line).resolve().relative_to(DOCS)) for line in lines]


def test_every_page_stands_in_one_toctree() -> None:
    pages = [page for page in DOCS.rglob("*.md") if page != ROOT_PAGE]
    named = [entry for page in [ROOT_PAGE, *pages] for entry in entries(page)]
    places = {page: str(page.relative_to(DOCS).with_suffix("")) for page in pages}
    times = {place: sum(fnmatch(place, e) for e in named) for place in places.values()}
    assert {place: n for place, n in times.items() if n != 1} == {}
    assert len(pages) > 50


def test_the_reference_has_every_public_name_once() -> None:
    text = "\n".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
    documented = re.findall(
        r"^\.\. auto(?:class|function|data):: (\w+)(?:\(.*\))?$", text, re.MULTILINE
    )
    listed = re.findall(r"^   (\w+)$", text, re.MULTILINE)
    rooms = {"corpus", "plugins", "prompts", "wired"}
    readers = [name for name in hs.corpus.__all__ if name.endswith(("Corpus", "Filters"))]
    others = [*hs.prompts.__all__, *hs.plugins.__all__, *hs.plugins.wired.__all__]
    public = sorted([*hs.__all__, *readers, *others])
    wanted = [name for name in public if name not in rooms | {"Corpus"}]
    assert sorted(documented) == wanted
    assert sorted(listed) == wanted
    assert len(hs.__all__) <= 40


def test_every_command_has_its_page_and_stands_in_the_list_of_all() -> None:
    page = (DOCS / "reference/commands.md").read_text("utf-8")
    blocks = re.findall(r"```\{commands\}\n(.*?)```", page, re.DOTALL)
    assert sorted(" ".join(blocks).split()) == sorted(COMMANDS)
    for name in COMMANDS:
        text = (DOCS / f"reference/commands/{name}.md").read_text("utf-8")
        assert text == f"# headscope {name}\n\n```{{command}} {name}\n```\n"


def test_the_first_screen_shows_the_product_how_to_install_it_and_the_first_command() -> None:
    first = ROOT_PAGE.read_text("utf-8").partition("::::{grid}")[0]
    assert "$ pip install headscope" in first
    assert (
        f'$ headscope view demo "{shown_sentence()}" -o ' in first
    )  # the line that makes the page below
    assert "```{first-view}" in first


def shown_sentence() -> str:
    """The sentence that the build shows."""
    (sentence,) = re.findall(r'^first_view = "(.+)"$', (DOCS / "conf.py").read_text("utf-8"), re.M)
    return sentence


def test_every_picture_of_the_gallery_has_its_question_and_command() -> None:
    cards = ROOT_PAGE.read_text("utf-8").split(":::{grid-item-card} ")[1:]
    shown = [card for card in cards if "![" in card]
    assert len(shown) >= 10
    for card in shown:
        question, _, rest = card.partition("\n")
        assert question.endswith("?")
        assert f"![{question}](images/" in rest
        assert re.search(r"^`headscope \w+ .+`$", rest, re.MULTILINE), question
