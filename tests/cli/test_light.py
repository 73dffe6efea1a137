"""Do help, and importing headscope, stay free of everything heavy?"""

import json
import shutil
import sys

import pytest
from benchmarks.wrong_requests import NEED_A_MODEL, make_files, requests

from commands import headscope
from headscope.cli.main import COMMANDS

HEAVY = [
    "torch",
    "transformers",
    "numba",
    "numpy",
    "scipy",
    "sklearn",
    "xarray",
    "pandas",
    "matplotlib",
    "jinja2",
    "h5py",
    "spacy",
    "stanza",
]
CODE = """
import sys
from {module} import {name}
{call}
print(",".join(sorted(set(sys.modules) & set({heavy!r}))))
"""


# Commands one after the other, through the entry point: what each has imported by then.
COMMANDS_CODE = """
import contextlib, io, json, sys
from headscope.cli.main import main

imported = {{}}
for arguments in {arguments!r}:
    sys.argv, shown = ["headscope", *arguments], io.StringIO()
    with contextlib.redirect_stdout(shown):
        try:
            main()
        except SystemExit as end:
            assert (end.code or 0) == {code}, (arguments, end.code)
    assert shown.getvalue() or {code}, arguments
    imported[" ".join(arguments)] = sorted(set(sys.modules) & set({heavy!r}))
print(json.dumps(imported))
"""


def imported_by(lines, heavy, folder, ends=0):
    """What of the heavy libraries every command line has imported; all end with the same code."""
    arguments = [list(map(str, line)) for line in lines]
    code = COMMANDS_CODE.format(arguments=arguments, heavy=heavy, code=ends)
    done = headscope(cwd=folder, code=code)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_help_imports_nothing_heavy(tmp_path):
    lines = [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)]
    imported = imported_by(lines, HEAVY, tmp_path)
    assert len(imported) == len(lines)
    assert not {line: names for line, names in imported.items() if names}


def test_a_finished_run_is_told_and_reported_without_torch(short, tmp_path):
    shutil.copytree(short.path, tmp_path / "run")
    lines = [["head", "run", "L1H1"], ["report", "run"]]
    imported = imported_by(lines, ["torch", "transformers", "numba"], tmp_path)
    assert not {line: names for line, names in imported.items() if names}
    assert (tmp_path / "run/report.html").is_file()


def test_a_zoo_whose_models_are_named_twice_is_refused_without_torch(tmp_path):
    lines = [["zoo", "demo", "demo", "--demo", "-o", "zoo"]]
    imported = imported_by(lines, ["torch", "transformers", "numba"], tmp_path, ends=2)
    assert imported == {" ".join(lines[0]): []}


WRONG = """
atls | atlas demo --demo --limt 3 | patterns anotate | reproduce clark209
atlas demo --demo --device cud | atlas demo --demo --device cpu:x
atlas demo --demo --limit -3 | atlas demo --demo --seed -1
atlas demo --demo --analyses surfce | atlas demo --demo --analyses surface --relations nsubj
atlas demo --demo --set entropy.smoothing=2 | atlas demo --demo --set entropy.smoothin=0.1
atlas demo --demo --set flow.methods=rolout | atlas demo --demo --set features.language=xx
atlas demo --demo --relations nsubj,nsbj | atlas demo --text missing.txt
zoo demo --demo --analyses surfce | zoo demo --demo --device cud | zoo demo --demo --relations nsbj
compare demo demo --demo --limit 0 | compare demo demo --demo --relations nsbj
view demo TEXT --device cud | view demo TEXT --measure looks | view demo TEXT --heads 3
ablate demo --task rte --data missing | prune demo --task rte --data missing
importance demo --task rte --data missing | head missing L1H1 | report missing
study demo --tasks rte --data missing | study demo --tasks rte --variants plan
finetune demo --task rte --data missing | finetune ./missing --task rte
zoo no/such/model demo --demo | patterns apply no/such/model --demo
patterns train --labels missing
reproduce clark2019 --data text=missing.txt | reproduce clark2019 --substitutes missing
atlas demo --demo --max-length 513 | compare demo demo --demo --max-length 513
explain demo --demo --max-length 513 | explain demo --demo --shares 0
explain demo --demo --rules missing.json
evolve missing --demo | evolve 1=demo 1=demo --demo | evolve 1=demo --analyses surfce
trial missing --demo | trial demo --demo --inputs 3
importance demo --demo --max-length 513 | importance demo --demo --max-length 0
"""


def test_what_is_wrong_is_refused_and_analyses_are_listed_before_torch_is_imported(tmp_path):
    heavy = ["torch", "transformers", "numba", "sklearn", "matplotlib", "scipy"]
    lines = [line.split() for line in WRONG.replace("\n", "|").split("|") if line.strip()]
    places = {
        "atlas",
        "zoo",
        "compare",
        "reproduce",
        "ablate",
        "prune",
        "importance",
        "finetune",
        "study",
        "explain",
        "trial",
        "evolve",
    }
    lines = [[*line, *(["-o", "out"] if line[0] in places else [])] for line in lines]
    imported = imported_by(lines, heavy, tmp_path, ends=2)
    assert len(imported) == len(lines)
    assert not {line: names for line, names in imported.items() if names}
    imported = imported_by([["analyses"], ["analyses", "--json"]], [*heavy, "xarray"], tmp_path)
    assert imported == {"analyses": [], "analyses --json": []}
    assert not list(tmp_path.iterdir())


def test_of_a_hundred_wrong_requests_none_waits_for_torch(tmp_path, monkeypatch):
    """How long they take is measured by the benchmark: here it is seen what they import."""
    make_files(tmp_path)
    lines = [line.split() for line in requests() if line not in NEED_A_MODEL]
    heavy = ["torch", "transformers", "numba", "sklearn", "matplotlib", "scipy"]
    imported = imported_by(lines, heavy, tmp_path, ends=2)
    assert len(imported) == len(lines) >= 95
    assert not {line: names for line, names in imported.items() if names}


WITHOUT_NUMBERS = """
atlas demo --demo --set entropy.smoothin=0.1 | atlas demo --demo --shard 3/2
zoo demo --demo --analyses surfce | atlas demo --text missing.txt
"""
WITHOUT_TABLES = "atlas demo --demo --relations nsbj | patterns train --labels missing"


@pytest.mark.parametrize(
    ("requests", "heavy"),
    [(WITHOUT_NUMBERS, HEAVY), (WITHOUT_TABLES, ["xarray", "pandas", "pyarrow"])],
)
def test_names_of_options_and_files_are_checked_without_numbers_or_tables(
    requests, heavy, tmp_path
):
    lines = [[*line.split(), "-o", "out"] for line in requests.replace("\n", "|").split("|")]
    imported = imported_by([line for line in lines if line[2:]], heavy, tmp_path, ends=2)
    assert not {line: names for line, names in imported.items() if names}


def test_importing_headscope_imports_nothing_heavy(tmp_path):
    code = CODE.format(module="headscope", name="__version__, __all__", call="", heavy=HEAVY)
    done = headscope(cwd=tmp_path, code=code)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_every_public_name_can_be_had():
    import headscope as hs

    for name in hs.__all__:
        assert getattr(hs, name) is not None
    assert set(hs.__all__) <= set(dir(hs))
    with pytest.raises(
        AttributeError, match="headscope has no 'atals'; its public names are Execution"
    ):
        _ = hs.atals
    with pytest.raises(AttributeError, match=r"no 'TextCorpus'; wanted headscope\.corpus\.TextC"):
        _ = hs.TextCorpus
    for name in hs.plugins.__all__:
        assert getattr(hs.plugins, name) is not None
    with pytest.raises(AttributeError, match=r"headscope\.plugins has no 'Clam'; its public names"):
        _ = hs.plugins.Clam


def test_it_runs_as_a_module(tmp_path):
    done = headscope("--version", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("headscope, version ")
    assert sys.version_info >= (3, 11)
