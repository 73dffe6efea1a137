"""Check that the files of a run folder are complete and unchanged.

A checksum shows damage, and files of another run. It is no signature: anyone who changes a file can
write a new checksum.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headscope.core.inside import digest_inside, is_inside, names_inside
from headscope.core.whole_file import DRAFT
from headscope.errors import RunFolderError
from headscope.run.manifest_file import MANIFEST, RESULTS
from headscope.run.settings import fingerprint
from headscope.run.store import RunFolder, open_run
from headscope.run.written_files import LIST, written_files

OK, NOTE, BAD = "ok", "note", "BAD"
Line = tuple[str, str, str]  # verdict, what was looked at, what was found
FOLDERS = ("tables", "figures")  # that a report fills


def check_folder(path: str | Path) -> Iterator[Line]:
    """A line for each part of a run folder; nothing is written."""
    folder = RunFolder(path)
    try:
        manifest = folder.manifest()
    except RunFolderError as error:
        yield BAD, "manifest", str(error).partition(";")[0]
        yield NOTE, "the rest", "not checked: only the manifest says what belongs to the run"
        return
    if manifest is None:
        yield BAD, "manifest", f"there is none: nothing says what {RESULTS} was computed from"
    else:
        yield from _manifest(manifest)
    yield _results(folder, manifest)
    if manifest is not None:
        yield _shards(folder, manifest)
    yield from _beside(folder)


def _manifest(manifest: dict[str, Any]) -> Iterator[Line]:
    yield OK, "manifest", "its checksum is that of its content"
    named, own = manifest["fingerprint"], fingerprint(manifest["spec"])
    if named == own:
        yield OK, "spec", f"fingerprint {own[:12]}"
    else:
        yield BAD, "spec", f"its fingerprint is {own[:12]}, and the manifest names {named[:12]}"


def _results(folder: RunFolder, manifest: dict[str, Any] | None) -> Line:
    there = is_inside(folder.path, RESULTS)
    digest = None if manifest is None else manifest.get("results_sha256")
    if manifest is not None and not digest:
        return NOTE, "results", _unfinished(folder, manifest)
    fault = f"{RESULTS} is gone" if not there else _wrong(folder, manifest)
    if fault:
        return BAD, "results", fault
    return OK, "results", f"{RESULTS} has the recorded hash"


def _unfinished(folder: RunFolder, manifest: dict[str, Any]) -> str:
    if inside := sorted(folder.path.glob(f"*/*/{MANIFEST}")):
        return f"of {len(inside)} runs; check each: headscope doctor {inside[0].parent}"
    return f"the run is not finished; go on with it: {manifest.get('command') or 'its command'}"


def _wrong(folder: RunFolder, manifest: dict[str, Any] | None) -> str:
    """What is wrong with existing results; "" if nothing is."""
    try:
        run = open_run(folder.path)
    except RunFolderError as error:
        return str(error).partition(";")[0]
    if manifest is None:
        return f"{RESULTS} can be read; no hash of it is left"
    if (of := str(run.tree.attrs.get("spec_fingerprint", ""))) != manifest["fingerprint"]:
        return f"{RESULTS} belongs to another run ({of[:12]})"
    lacking = sorted({str(name) for name in manifest.get("analyses", ())} - set(run))
    return f"{RESULTS} lacks {', '.join(lacking)}" if lacking else ""


def _shards(folder: RunFolder, manifest: dict[str, Any]) -> Line:
    folder.owner = manifest["fingerprint"]
    whole, damaged = folder.shards()
    wanted = manifest.get("shards", 0)
    if damaged:
        names = ", ".join(damaged[:3]) + (", …" if damaged[3:] else "")
        fault = f"{len(damaged)} damaged or of another run ({names})"
        return BAD, "shards", f"{fault}; run the command again: they are computed anew"
    finished = manifest.get("results_sha256")
    if not (wanted and (whole or not finished)):
        return OK, "shards", "none is kept: the run is finished" if wanted else "the run has none"
    verdict = OK if len(whole) == wanted or finished else NOTE
    return verdict, "shards", f"{len(whole)} of {wanted} there, each of this run and whole"


def _beside(folder: RunFolder) -> Iterator[Line]:
    """Tables, figures and pages, which can be made again from the results."""
    listed, damaged = written_files(folder.path)
    if damaged:
        yield (
            BAD,
            "list",
            f"{LIST}, which names tables, figures and pages, is not as it was written",
        )
    names = names_inside(folder.path)
    for what in FOLDERS:
        own = {name: digest for name, digest in listed.items() if name.startswith(f"{what}/")}
        there = {name for name in names if name.startswith(f"{what}/")}
        drafts = {name for name in there if DRAFT in name}
        yield _against(folder, what, own, len(there - own.keys() - drafts))
    pages = {name: digest for name, digest in listed.items() if not name.startswith(FOLDERS)}
    if pages or is_inside(folder.path, "report.html"):
        yield _against(folder, "report", pages or {"report.html": ""}, 0)
    else:
        yield NOTE, "report", f"there is none: headscope report {folder.path}"
    if drafts := {name for name in names if DRAFT in name}:
        yield NOTE, "drafts", f"{len(drafts)}, of a killed process; the next run removes them"


def _against(folder: RunFolder, what: str, own: dict[str, str], others: int) -> Line:
    """Files of one kind, compared with their digests.

    own  the digest of each by name; "" in a list of an older version, which had none
    """
    now = {name: digest_inside(folder.path, name) for name in own}
    gone = [name for name in own if not now[name]]
    changed = [name for name in own if now[name] and own[name] not in ("", now[name])]
    text = f"{len(own) - len(gone)} of {len(own)} listed files are there"
    if changed:
        text += f", {len(changed)} not as written ({', '.join(changed[:3])})"
    elif not all(own.values()):
        text += ", not hashed"
    text += f", {others} that the run did not write" if others else ""
    text += "; headscope report makes them again" if gone or changed else ""
    return BAD if changed else NOTE if gone or others else OK, what, text
