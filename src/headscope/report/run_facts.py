"""What was run on what, in words: the facts at the top of a report, and a notebook's summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2
import xarray as xr

from headscope.core.results import printable, shape
from headscope.draw.caption_words import over
from headscope.report import heads

Manifest = Mapping[str, Any]
SUMMED_UP = 5  # telling heads of a summary
_TEMPLATE = """<div>
<p><b>{{ title }} of {{ model }}</b>: {{ size }}; {{ n }}; {{ analyses }}.</p>
{% for sentence in findings %}
<p>{{ sentence }}</p>
{% endfor %}
{% if telling %}
<table>
<tbody>
{% for head in telling %}
<tr><th scope="row">{{ head.name }}</th><td>{{ head.sentence }}</td></tr>
{% endfor %}
</tbody>
</table>
{% endif %}
</div>
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row: `label`, `value`; code marks what is to be set as code."""

    label: str
    value: str
    code: bool = False


def facts(tree: xr.DataTree, manifest: Manifest) -> list[Fact]:
    """The rows of the table at the top of a report; what is not known is left out."""
    model, counts = _part(manifest, "model"), _part(manifest, "counts")
    attrs = {str(key): value for key, value in tree.attrs.items()}
    layers, heads = shape(tree)
    rows = [
        Fact("Model", _text(model.get("name") or attrs.get("model"))),
        Fact("Revision", _text(model.get("revision") or attrs.get("revision")), code=True),
        Fact("Weights, sha256", _text(model.get("sha256") or attrs.get("model_sha256")), code=True),
        Fact("Architecture", _architecture(model, attrs, layers, heads)),
        Fact("Corpus", _text(attrs.get("corpus") or _part(manifest, "corpus").get("kind"))),
        Fact("Read", _read(counts, attrs)),
        Fact("Left out", _left_out(counts, attrs)),
        Fact("Analyses", ", ".join(map(str, manifest.get("analyses") or tree.children))),
        Fact("Intervals", _intervals(attrs)),
        Fact("Linear layers", _text(manifest.get("linears"))),
        Fact("Made", _made(manifest, attrs)),
        Fact("Spec fingerprint", _fingerprint(manifest, attrs), code=True),
    ]
    return [row for row in rows if row.value]


def files(manifest: Manifest) -> list[Fact]:
    """The files of the corpus with their sha256."""
    found = _part(manifest, "corpus").get("files") or []
    return [Fact(_text(file.get("name")), _text(file.get("sha256")), code=True) for file in found]


def settings(manifest: Manifest) -> list[Fact]:
    """The spec, one row per setting."""
    return [
        Fact(_text(key), _text(value), code=True) for key, value in _part(manifest, "spec").items()
    ]


def versions(manifest: Manifest) -> list[Fact]:
    """Name and version of the software."""
    found = _part(manifest, "versions").items()
    return [Fact(_text(key), _text(value), code=True) for key, value in found]


def command(manifest: Manifest) -> str:
    """The command line that gives the same run; '' where the manifest has none."""
    return _text(manifest.get("command"))


def run_summary(tree: xr.DataTree, manifest: Manifest) -> str:
    """What a notebook shows of a run: a small piece of HTML without styles, scripts or requests."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    rows = {fact.label: fact.value for fact in facts(tree, manifest)}
    opening = heads.opening_of(tree)
    return environment.from_string(_TEMPLATE).render(
        title=printable(tree.attrs.get("title", "headscope atlas")),
        findings=[] if opening is None else opening.findings(tree),
        model=printable(tree.attrs.get("model", "a model")),
        size=rows["Architecture"],
        n=over(tree),
        analyses=rows.get("Analyses", ""),
        telling=heads.telling(tree, count=SUMMED_UP),
    )


def _architecture(model: Manifest, attrs: Manifest, layers: int, heads: int) -> str:
    name = _text(model.get("architecture") or attrs.get("architecture"))
    size = f"{layers} layers × {heads} heads"
    return f"{name}, {size}" if name else size


def _read(counts: Manifest, attrs: Manifest) -> str:
    parts = []
    of_task = attrs.get("counted") == "examples"  # each of which is a document
    for word in ("documents", "examples", "tokens")[of_task:]:
        number = counts.get(word, attrs.get(word))
        if number is not None:
            number = int(number)
            parts.append(f"{number:,} {word[:-1] if number == 1 else word}")
    return ", ".join(parts)


def _left_out(counts: Manifest, attrs: Manifest) -> str:
    skipped = int(counts.get("skipped", attrs.get("skipped", 0)) or 0)
    windowed = int(counts.get("windowed", attrs.get("windowed", 0)) or 0)
    reasons = counts.get("reasons") or {}
    why = ", ".join(f"{_text(reason)}: {_total(entry)}" for reason, entry in dict(reasons).items())
    if not skipped and not windowed:
        return "nothing"
    words = f"{skipped:,} skipped" + (f" ({why})" if why and skipped else "")
    return f"{words}; {windowed:,} cut into windows because too long"


def _total(entry: object) -> str:
    """How many were left out for one reason: {"total": 3, "first": […]}."""
    return _text(entry.get("total", 0) if isinstance(entry, Mapping) else entry)


def _intervals(attrs: Manifest) -> str:
    replicates = attrs.get("replicates")
    many = f", {int(replicates):,} replicates" if replicates else ""
    seed = f", seed {attrs['seed']}" if "seed" in attrs else ""
    return f"95 %, bootstrap over {attrs.get('counted', 'documents')}{many}{seed}"


def _made(manifest: Manifest, attrs: Manifest) -> str:
    version = _text(attrs.get("headscope_version"))
    date = _text(manifest.get("created") or attrs.get("created"))
    return ", ".join(filter(None, [date, f"headscope {version}" if version else ""]))


def _fingerprint(manifest: Manifest, attrs: Manifest) -> str:
    return _text(manifest.get("fingerprint") or attrs.get("spec_fingerprint"))


def _part(manifest: Manifest, key: str) -> Manifest:
    part = manifest.get(key)
    return part if isinstance(part, Mapping) else {}


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (dict, list, tuple, bool)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return printable(value)
