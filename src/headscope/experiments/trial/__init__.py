"""Trial: does what a label says matter where it says so, and not elsewhere?

labels of a run ─► hypotheses ─┐
corpus ─► queries (where) ─────┼─► moving (attention) ─► outputs ─► result ─► verdicts beside labels
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question

TRIAL = Question(
    package=__name__,
    name="trial",
    title="Labels tried",
    place=16,
    figures=(
        PicturePlan(
            name="trial",
            title="What labels say, tried",
            panels="figure:panels",
            caption="figure:caption",
            heading="Does what labels say matter?",
            text="Where a label says that a head looks, the weight is moved to where the head "
            "rests, and the output is compared with that of the whole model. A label is confirmed "
            "where this changes more than the same elsewhere: in the same head by another query, "
            "or at other tokens, and in other heads of the layer.",
            finding="verdicts:lead",
            tables=("section:table",),
            absent="Its labels were not tried: headscope trial RUN does that.",
        ),
    ),
    lead="verdicts:lead",
    terms="terms:TERMS",
    labels="terms:LABELS",
    trials="verdicts:outcomes",
    findings=("section:findings",),
    tables="section:tables",
)
