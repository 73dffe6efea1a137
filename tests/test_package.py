"""Is what is built what should be installed: small, whole, the same again, and typed?

Wheel and source distribution are built once, in this process: no network, no isolation.
"""

from __future__ import annotations

import ast
import email
import re
import tarfile
import tomllib
import zipfile
from importlib.metadata import requires
from pathlib import Path
from types import SimpleNamespace

import pytest

import headscope

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
MOST = 2_040_000
TRAINING = "headscope/experiments/map_classifier/data/"  # the maps that they learned from
USERS = ("annotate", "large", "data", "train", "serve", "cluster", "translate")  # extras for users
LINK = re.compile(r"\]\(([^)]+)\)")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path, Path]:
    """The source distribution, a wheel of the checkout, and a wheel of the source distribution."""
    hatchling = pytest.importorskip("hatchling.build", reason="needs hatchling (make installs it)")
    pytest.importorskip("hatch_fancy_pypi_readme")
    folder = tmp_path_factory.mktemp("built")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        patch.chdir(ROOT)
        source = folder / hatchling.build_sdist(str(folder))
        wheel = folder / hatchling.build_wheel(str(folder))
        with tarfile.open(source) as packed:
            packed.extractall(folder, filter="data")
        patch.chdir(folder / source.name.removesuffix(".tar.gz"))
        again = folder / "again" / hatchling.build_wheel(str(folder / "again"))
    return source, wheel, again


@pytest.fixture(scope="module")
def metadata(built):
    with zipfile.ZipFile(built[1]) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(wheel.read(name))


def test_the_source_distribution_gives_the_same_wheel_byte_for_byte(built):
    _, wheel, again = built
    assert wheel.read_bytes() == again.read_bytes()


def test_the_wheel_is_small_and_holds_what_runs(built):
    source, wheel, _ = built
    assert wheel.stat().st_size <= MOST
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        file.relative_to(ROOT / "src").as_posix()
        for file in (ROOT / "src").rglob("*")
        if file.is_file()
        and file.suffix not in (".pyc", ".nbi", ".nbc")
        and file.parent.name != "assets"
    }
    assert {name for name in ours - names if not name.startswith(TRAINING)} == set()
    assert not [name for name in names if name.startswith(TRAINING)]
    assert {"headscope/py.typed", "headscope/__init__.pyi"} <= names
    with tarfile.open(source) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    assert f"src/{TRAINING}labelled.npz" in inside
    assert {"tests/test_package.py", "CITATION.cff", "hatch_build.py"} <= inside
    assert "constraints-oldest.txt" in inside


def test_pages_are_made_of_the_same_files_from_the_wheel(built, monkeypatch):
    """They are one file there: `hatch_build.py` packs them."""
    from headscope.page import shell

    def in_wheel(package: str) -> zipfile.Path:
        return zipfile.Path(built[1], package.replace(".", "/") + "/")

    files = [file for file in (ROOT / "src").rglob("assets/*") if file.is_file()]
    assert len(files) > 50
    shell._packed.cache_clear()
    monkeypatch.setattr(shell, "resources", SimpleNamespace(files=in_wheel))
    try:
        for file in files:
            package = ".".join(file.parent.parent.relative_to(ROOT / "src").parts)
            assert shell.asset(file.name, package) == file.read_text("utf-8")
        assert shell.template("site.html.j2", "headscope.views", "headscope.report")
        with pytest.raises(FileNotFoundError):
            shell.asset("none.js", "headscope.views")
    finally:
        shell._packed.cache_clear()


def test_the_readme_on_an_index_leads_out_of_it(metadata):
    text, links = metadata.get_payload(), []
    for link in LINK.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        assert link.startswith(("https://", "#")), link
        links.append(link)
    raw = [link for link in links if "/raw/main/docs/images/" in link]
    assert raw
    for link in links:
        _, _, path = link.partition("/main/")
        assert not path or (ROOT / path.partition("#")[0]).exists(), link


def test_who_and_where_is_told(metadata):
    assert metadata["Author"] == "headscope developers"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Version"] == headscope.__version__
    places = dict(line.split(", ") for line in metadata.get_all("Project-URL"))
    assert set(places) == {"Homepage", "Documentation", "Source", "Issues", "Changelog"}
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {headscope.__version__}\n" in citation


def test_the_constraints_are_the_lower_bounds():
    extras = PROJECT["project"]["optional-dependencies"]
    users = [one for name in USERS for one in extras[name]]
    bounds = dict(one.split(">=") for one in PROJECT["project"]["dependencies"] + users)
    lines = (ROOT / "constraints-oldest.txt").read_text("utf-8").splitlines()
    oldest = dict(line.split("==") for line in lines if not line.startswith("#"))

    def whole(version: str) -> list[int]:
        return [*map(int, version.split(".")), 0, 0][:3]

    assert {name: whole(of) for name, of in oldest.items()} == {
        name: whole(of) for name, of in bounds.items()
    }
    assert len(requires("headscope") or []) >= len(bounds)


@pytest.mark.parametrize(
    "module", [headscope, headscope.corpus, headscope.plugins, headscope.prompts]
)
def test_type_checkers_know_every_public_name(module):
    stub = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text("utf-8"))
    known = {
        alias.asname: node.module
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    rooms = dict.fromkeys(getattr(module, "_ROOMS", ()), "headscope")
    assert known == module._WHERE | getattr(module, "_OF_RUNS", {}) | rooms


def test_without_the_training_maps_it_is_said_where_they_are(monkeypatch, tmp_path):
    from headscope.errors import InputError
    from headscope.experiments.map_classifier import labelled_maps

    monkeypatch.setattr(labelled_maps, "_maps_folder", lambda: tmp_path)
    with pytest.raises(InputError, match=r"source distribution.*--without-bundled"):
        labelled_maps.bundled_labels()
