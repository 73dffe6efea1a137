"""Circuits: which heads and feed-forward layers together answer prompts, and how faithfully.

feed_forward ─► nodes (what adds to the stream, and passes that replace it) ─► paired_passes
                                        ┌─────────────────────────────────────────┘
node_attribution (EAP-IG), node_sets ─► finding (choose, then try) ─► result ─► discover
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question

DISCOVERY = Question(
    package=__name__,
    name="discovery",
    title="The circuit",
    place=304,
    figures=(
        PicturePlan(
            name="circuit",
            title="The circuit of the prompts",
            panels="figure:panels",
            caption="figure:caption",
            id="circuit",
            heading="Which heads together are the circuit, and how faithful is it?",
            text="A circuit is faithful where the network still tells the answer from the wrong "
            "one although every other head and feed-forward layer gives what it gives in the "
            "corrupted prompt. Prompts that did not choose the circuit try it.",
            tables=("section:members_table", "section:areas_table"),
            columns=3,
        ),
    ),
    terms="section:TERMS",
    labels="section:LABELS",
    findings=("section:findings",),
)
