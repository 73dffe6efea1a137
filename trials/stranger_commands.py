"""The commands that read a run folder, on one of a stranger: what they say, write and show.

Each runs in a fork, where it may hang or be killed. Nothing that they say or write may hold what
lies outside or what the stranger has planted, nothing outside may change, and in the run folder
nothing but by `report`. A browser opens every kind of page that they write.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trials.forked import Ended, forked, headscope
from trials.pages import without_pictures
from trials.stranger import SECRET

MADE = "made"  # beside the run: what they write
COMMANDS = {
    "status": ("status", "run"),
    "doctor": ("doctor", "run"),
    "head": ("head", "run", "L1H2", "-o", f"{MADE}/card.html"),
    "export": ("export", "run", "-o", f"{MADE}/site"),
    "report": ("report", "run"),
}
PAGES = {
    "head": (f"{MADE}/card.html",),
    "export": tuple(f"{MADE}/site/{n}.html" for n in ("index", "heads", "report", "views/01")),
    "report": ("run/report.html",),
}
Running = Callable[[Sequence[str], Path], Ended]
LONGEST = 60.0  # seconds of a command; on a sound run none takes three
# What could act: scripts by their content, handlers, and addresses.
ACTIVE = """() => [...document.querySelectorAll("*")].flatMap(one => [
  ...[...one.attributes].filter(a => a.name.startsWith("on")).map(a => `${a.name}=${a.value}`),
  ...["src", "href", "action", "data", "srcdoc"].map(name => one.getAttribute(name))
    .filter(value => value && /^[a-z]*:|^[/][/]/i.test(value)),
  ...(one.localName === "script" && !/json/.test(one.type) ? [one.textContent] : []),
  ...(["base", "iframe", "object", "embed", "form"].includes(one.localName) ? [one.localName] : []),
])"""
INTERNAL = ("Traceback", "failed with", "error of headscope", "--debug")
TOLD = "cannot be shown"  # what a refusal of odd results says, which may be an error of ours


@dataclass
class Come:
    """What came of a command.

    refused  why it does nothing with the folder; "" where it does
    said     what it printed
    pages    text of each page that it wrote or served, by name
    active   what could act in them
    wrong    what must not be
    """

    refused: str = ""
    said: str = ""
    pages: dict[str, str] = field(default_factory=dict)
    active: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def differs(self, usual: Come) -> bool:
        """Whether the folder made it do anything else than a sound one."""
        return bool(self.refused or (self.said, self.pages) != (usual.said, usual.pages))


def apart(arguments: Sequence[str], place: Path) -> Ended:
    """How a command ends that runs in a fork of this process, in a place; it draws no pictures."""
    with without_pictures():
        return with_pictures(arguments, place)


def with_pictures(arguments: Sequence[str], place: Path) -> Ended:
    """The same, with pictures, which take most of its time."""
    return forked(lambda: headscope(arguments, place), place.parent / "streams", patience=LONGEST)


def commanded(browser: Any, name: str, place: Path, run: Running) -> Come:
    """What comes of a command on the folder `run` of a place, beside `outside`."""
    before = states(place)
    ended = run(COMMANDS[name], place)
    refused = ended.err.strip() or "no" if ended.code else ""
    come = Come(refused, ended.out, wrong=list(misbehaved(ended)))
    after = states(place)
    changed = {file for file in before.keys() | after if before.get(file) != after.get(file)}
    strange = sorted(file for file in changed if not own(name, file, place))
    come.wrong += [f"{file.relative_to(place)} was changed" for file in strange]
    come.wrong += [f"{file.relative_to(place)} holds {words}" for file, words in held_by(changed)]
    for page in PAGES.get(name, ()) if ended.code == 0 else ():
        if (place / page).is_file():
            look_at(browser, come, place / page)
    return come


def own(command: str, file: Path, place: Path) -> bool:
    """Whether a file is one that a command may write."""
    return place / MADE in file.parents or (command == "report" and place / "run" in file.parents)


def misbehaved(ended: Ended) -> Iterator[str]:
    """What no command may do, whatever it reads."""
    said = ended.out + ended.err
    if ended.code is None:
        yield f"hangs: {ended.err[-2000:]}"
    elif ended.code not in (0, 1, 2) or (TOLD not in said and any(one in said for one in INTERNAL)):
        yield f"ends in {ended.code}: {said[-500:]}"
    if SECRET in said:
        yield "says what lies outside"
    if raw := [c for c in said if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]:
        yield f"writes {raw[:5]} to the terminal"


def held_by(files: set[Path]) -> Iterator[tuple[Path, str]]:
    """Files that hold what they must not."""
    for file in sorted(files):
        with suppress(OSError):
            content = b"" if file.is_symlink() or not file.is_file() else file.read_bytes()
            for found in (SECRET, "PLANTED"):
                if found.encode() in content:
                    yield file, found


def states(place: Path) -> dict[Path, tuple[int, ...]]:
    """What tells that a file was written to, made or deleted; nothing is followed."""
    files = (file for file in place.rglob("*") if not file.is_dir() or file.is_symlink())
    status = {file: file.lstat() for file in files}
    return {file: (s.st_ino, s.st_size, s.st_mtime_ns) for file, s in status.items()}


def look_at(browser: Any, come: Come, file: Path) -> None:
    """A page from the disk: what could act in it, what it asks for, what its scripts come to."""
    page, own = browser.new_page(), file.as_uri()
    page.set_default_timeout(1000 * LONGEST)
    page.on("dialog", lambda dialog: (come.wrong.append("dialog"), dialog.dismiss()))
    page.on("pageerror", lambda error: come.wrong.append(f"{file.name}, script: {error}"[:200]))
    page.on("request", lambda sent: sent.url == own or come.wrong.append(f"asks {sent.url}"[:200]))
    page.goto(own)
    page.evaluate("() => document.querySelectorAll('details').forEach(d => d.open = true)")
    come.pages[file.name] = page.evaluate("() => document.documentElement.textContent")
    come.active |= set(page.evaluate(ACTIVE))
    page.close()
