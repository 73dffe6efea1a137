"""Do help, and importing headscope, stay free of everything heavy?"""

import sys

import pytest

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


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], *([c, "--help"] for c in COMMANDS)]
)
def test_help_imports_nothing_heavy(arguments, tmp_path):
    call = (
        f"sys.argv = {['headscope', *arguments]!r}\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    code = CODE.format(module="headscope.cli.main", name="main", call=call, heavy=HEAVY)
    done = headscope(cwd=tmp_path, code=code)
    assert done.returncode == 0, done.stderr
    *shown, imported = done.stdout.splitlines()
    assert imported == ""
    assert shown


def test_importing_headscope_imports_nothing_heavy(tmp_path):
    code = CODE.format(module="headscope", name="__version__, __all__", call="", heavy=HEAVY)
    done = headscope(cwd=tmp_path, code=code)
    assert (done.returncode, done.stdout) == (0, "\n"), done.stderr


def test_every_public_name_can_be_had():
    import headscope as hs

    for name in hs.__all__:
        assert getattr(hs, name) is not None
    assert set(hs.__all__) <= set(dir(hs))
    with pytest.raises(AttributeError, match="headscope has no 'atals'; public are Analysis"):
        _ = hs.atals


def test_it_runs_as_a_module(tmp_path):
    done = headscope("--version", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("headscope, version ")
    assert sys.version_info >= (3, 11)
