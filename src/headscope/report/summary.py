"""What does a notebook show of a run: what was run on what, and what was found?"""

from __future__ import annotations

import jinja2
import xarray as xr

from headscope.core.results import printable
from headscope.draw.caption_words import over
from headscope.report import facts, heads

SHOWN = 5
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


def run_summary(tree: xr.DataTree, manifest: facts.Manifest) -> str:
    """A small piece of HTML without styles, scripts or requests; names in it are escaped."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    rows = {fact.label: fact.value for fact in facts.facts(tree, manifest)}
    opening = heads.opening_of(tree)
    return environment.from_string(_TEMPLATE).render(
        title=printable(tree.attrs.get("title", "headscope atlas")),
        findings=[] if opening is None else opening.findings(tree),
        model=printable(tree.attrs.get("model", "a model")),
        size=rows["Architecture"],
        n=over(tree),
        analyses=rows.get("Analyses", ""),
        telling=heads.telling(tree, count=SHOWN),
    )
