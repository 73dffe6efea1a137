"""The question examples: what does every head do in a few inputs?"""

from headscope.analyses.language import MEASURE, PIECES
from headscope.claims.question import Question

QUESTION = Question(
    name="examples",
    package=__name__,
    slow=True,
    place=200,
    measure="measure:Examples",
    summary="attention within a few inputs, to look at",
    source="Clark et al. 2019, §4.2",
    needs=frozenset({"attention"}),
    options={"pieces": PIECES, "measure": MEASURE},
    looks="clearest_input:clearest_inputs",
)
