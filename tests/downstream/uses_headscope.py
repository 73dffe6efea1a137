"""What a program that installed headscope sees of its types; `make types` checks it.

Nobody runs it. mypy reads headscope here as any installed package: only because of its py.typed.
"""

from pathlib import Path
from typing import assert_type

import pandas as pd
import xarray as xr

import headscope as hs

run = hs.open_run("atlas-demo")
assert_type(run, hs.Run)
assert_type(run["entropy"], xr.Dataset)
assert_type(run.find("direct object"), pd.DataFrame)
assert_type(hs.cite(run).bibtex, str)
assert_type(hs.export_site(run, "site", overwrite=True), Path)
assert_type(hs.load("demo"), hs.Model)
hs.open_run(3)  # type: ignore[arg-type]
hs.no_such_name  # type: ignore[attr-defined] # noqa: B018
