"""Packs the scripts, styles and templates of all pages into one file of the wheel.

They are small and many: one by one they take 60 kB more. A checkout reads them as they are.
"""

import bz2
import json
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Called by hatchling; the wheel's `exclude` in pyproject.toml leaves out what is packed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds `headscope/page/assets.json.bz2`: the text of each file by PACKAGE/NAME."""
        if version == "editable":
            return
        source = Path(self.root, "src")
        texts = {
            f"{'.'.join(file.relative_to(source).parts[:-2])}/{file.name}": file.read_text("utf-8")
            for file in sorted(source.rglob("assets/*"))
        }
        self.folder = tempfile.TemporaryDirectory()
        packed = Path(self.folder.name, "assets.json.bz2")
        packed.write_bytes(bz2.compress(json.dumps(texts, ensure_ascii=False).encode()))
        build_data["force_include"][str(packed)] = "headscope/page/assets.json.bz2"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Removes what the wheel was made of."""
        if version != "editable":
            self.folder.cleanup()
