"""How is a small FrameNet release written, laid out as ICSI ships it?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

SPACE = 'xmlns="http://framenet.icsi.berkeley.edu"'
HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


@dataclass
class Sentence:
    """One exemplar: phrases are looked up in the text, pairs are offsets as FrameNet counts them.

    elements  name and phrase of each frame element of rank 1; `rank2` likewise
    unsaid    names of frame elements that are only understood
    """

    number: int
    text: str
    target: str | tuple[int, int] | list[str]
    elements: Iterable[tuple[str, str | tuple[int, int]]] = ()
    rank2: Iterable[tuple[str, str]] = ()
    unsaid: Iterable[str] = ()

    def xml(self) -> str:
        targets = self.target if isinstance(self.target, list) else [self.target]
        return f"""<sentence sentNo="0" ID="{self.number}">
<text>{escape(self.text)}</text>
<annotationSet status="UNANN" ID="1">
<layer rank="1" name="BNC"><label end="0" start="0" name="PNP"/></layer>
</annotationSet>
<annotationSet status="MANUAL" ID="2">
<layer rank="1" name="FE">
{self._labels(self.elements)}
{"".join(f'<label itype="INI" name={quoteattr(n)}/>' for n in self.unsaid)}
</layer>
<layer rank="2" name="FE">{self._labels(self.rank2)}</layer>
<layer rank="1" name="Target">{self._labels([("Target", t) for t in targets])}</layer>
</annotationSet>
</sentence>
"""

    def _labels(self, named: Iterable[tuple[str, str | tuple[int, int]]]) -> str:
        rows = []
        for name, phrase in named:
            start, end = phrase if isinstance(phrase, tuple) else self._found(phrase)
            rows.append(f'<label end="{end}" start="{start}" name={quoteattr(name)}/>')
        return "\n".join(rows)

    def _found(self, phrase: str) -> tuple[int, int]:
        start = self.text.index(phrase)
        return start, start + len(phrase) - 1


@dataclass
class Unit:
    """One lexical unit; without sentences it is listed, and its file is not there."""

    number: int
    name: str
    frame: str = "Feeling"
    sentences: list[Sentence] = field(default_factory=list)

    def xml(self) -> str:
        sentences = "".join(sentence.xml() for sentence in self.sentences)
        return (
            f'{HEAD}<lexUnit {SPACE} name={quoteattr(self.name)} ID="{self.number}" '
            f"frame={quoteattr(self.frame)}>\n"
            '<header><frame><FE name="Feeler" type="Core"/></frame></header>\n'
            f'<subCorpus name="all">\n{sentences}</subCorpus>\n</lexUnit>\n'
        )


FEELING = [("Feeler", "Core"), ("Object", "Core"), ("Time", "Peripheral")]


def write_release(
    folder: Path,
    units: Iterable[Unit],
    *,
    frames: dict[str, list[tuple[str, str]]] | None = None,
    core_sets: Iterable[str] = ("Object",),
) -> Path:
    """A release of these units and frames {name: [(frame element, coreType)]}."""
    frames = {"Feeling": FEELING} if frames is None else frames
    for name in ("frame", "lu"):
        (folder / name).mkdir(parents=True)
    units = list(units)
    listed = "".join(
        f'<lu hasAnnotation="true" frameName={quoteattr(u.frame)} name={quoteattr(u.name)} '
        f'ID="{u.number}"/>\n'
        for u in units
    )
    listed += '<lu hasAnnotation="false" frameName="Feeling" name="never.v" ID="999"/>\n'
    (folder / "luIndex.xml").write_text(f"{HEAD}<luIndex {SPACE}>\n{listed}</luIndex>", "utf-8")
    index = "".join(f"<frame name={quoteattr(name)}/>\n" for name in frames)
    (folder / "frameIndex.xml").write_text(
        f"{HEAD}<frameIndex {SPACE}>\n{index}</frameIndex>", "utf-8"
    )
    sets = "".join(f'<FEcoreSet><memberFE name="{name}"/></FEcoreSet>' for name in core_sets)
    for name, elements in frames.items():
        rows = "".join(f'<FE coreType="{kind}" name="{element}"/>' for element, kind in elements)
        (folder / "frame" / f"{name}.xml").write_text(
            f"{HEAD}<frame {SPACE} name={quoteattr(name)}>{rows}{sets}</frame>", "utf-8"
        )
    for unit in units:
        if unit.sentences:
            (folder / "lu" / f"lu{unit.number}.xml").write_text(unit.xml(), "utf-8")
    return folder
