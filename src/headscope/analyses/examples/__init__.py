"""The question examples: what does every head do in a few inputs?"""

from headscope.core.question import Question

QUESTION = Question(
    name="examples", package=__name__, slow=True, place=200, measure="measure:Examples",
    looks="clearest_input:clearest_inputs",
)  # fmt: skip
