"""Circuits: what each head of a decoder does on synthetic inputs, and what it reads.

made_inputs (repeated tokens) ─────────────┐
weight_maps (W_Q, W_K, W_V, W_O, folded) ──┼─► head_scores ─► result ─► a run
prompts ─► direct_logits, patching (head_swaps) ─────────────────┘
"""

from headscope.claims.plan import PicturePlan
from headscope.claims.question import Question

CIRCUITS = Question(
    package=__name__, name="circuits", title="On made inputs", place=302,
    figures=(
        PicturePlan(
            name="circuits",
            title="Heads on made inputs",
            panels="figure:panels",
            caption="figure:caption",
            id="patterns-made",
            heading="Where do heads look when random tokens come again?",
            text="Tokens are random, so that nothing but their places and that they come again can "
            "draw attention. A head that induces looks at what came after the same token before, "
            "and copies it (Olsson et al. 2022).",
            columns=3,
        ),
        PicturePlan(
            name="circuit_paths",
            title="Which heads read which",
            panels="figure:path_panels",
            caption="figure:path_caption",
            id="pairs-of-heads",
            heading="Which heads read which?",
            text="An induction head needs an earlier one that tells each token what stood before "
            "it; its keys then read what that head wrote (K-composition, Elhage et al. 2021).",
            columns=3,
        ),
        PicturePlan(
            title="Related words",
            id="related-words",
            heading="Which heads turn a word into a related one?",
            text="By the weights alone: what a head that attends to a word writes for the logits. "
            "Where the plural, the opposite or the capital is among the few tokens raised or "
            "lowered most, the head may do this step (Elhelo and Geva 2025). Later layers, and "
            "what earlier ones add to the word, are left out.",
            tables=("relation_claims:relations_table",),
        ),
    ),
    card="relation_claims:CARD",
    predicts="rules:RULES",
    opening="section:OPENING",
    terms="claims:TERMS", labels="claims:LABELS", claims="claims:CLAIMS", marks="claims:MARKS",
    findings=("section:circuit_findings",), tables="section:tables",
    pages="prompt_page:write_prompts", shown={"table": (
        "score.induction", "score.previous_token", "score.duplicate_token", "copied",
        "weight_copying", "successor", "retrieval",
    )},
)  # fmt: skip

WRITES = Question(
    package=__name__,
    name="writes",
    title="What heads write",
    place=303,
    figures=(
        PicturePlan(
            name="writes",
            title="Heads and the answer",
            panels="written_answers:panels",
            caption="Each cell is one head, on {prompt_count} prompts ({prompts}, {n} independent "
            "items): the share of the logit difference between a prompt and its corrupted one that "
            "comes back when the head alone is patched, what one backward pass estimates of it, "
            "and what the head writes to the answer itself. Blue: for the answer; orange: against "
            "it.",
            id="written-answers",
            heading="Which heads write the answer, and which carry it?",
            text="Each prompt has a corrupted one of as many tokens, which takes another answer. "
            "What a head does for the answer is what comes back of their difference when it alone "
            "is as in the clean prompt (Wang et al. 2023); some of that it writes itself, the rest "
            "later heads make of it.",
            tables=("written_answers:heads_table",),
            columns=3,
        ),
    ),
    opening="section:OPENING",
    terms="written_answers:TERMS",
    labels="written_answers:LABELS",
    claims="written_answers:claims",
    rules="written_answers:RULES",
    findings=("written_answers:findings",),
    shown={"table": ("effect", "direct_share"), "card": ("effect", "direct_share")},
)
