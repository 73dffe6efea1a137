"""Circuits: which heads and feed-forward layers together answer prompts, and how faithfully.

layer_parts (what adds to the stream, and what reads it) ─► nodes (passes that change either)
       ┌───────────────────────────────────────────────────────┘
       └─► paired_passes ─► node_attribution (EAP-IG), node_sets ──┬─► finding ─► result ─► discover
                        └─► edge_attribution, edge_sets ───────────┘
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question

DISCOVERY = Question(
    package=__name__,
    name="discovery",
    title="The circuit",
    place=301,  # its sentence opens the page
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
        PicturePlan(
            name="circuit_edges",
            title="The strongest edges",
            panels="figure:edge_panels",
            caption="figure:edge_caption",
            id="circuit-edges",
            heading="Along which edges does the answer come?",
            text="An edge goes from what a node adds to the stream to one later reader: the "
            "queries, keys or values of a head, a feed-forward layer, or the logits.",
            absent="Edges were not asked for: --edges.",
            columns=1,
            wide=True,
        ),
    ),
    opening="section:OPENING",
    terms="section:TERMS",
    labels="section:LABELS",
    findings=("section:findings",),
)
