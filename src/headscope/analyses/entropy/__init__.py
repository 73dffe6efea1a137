"""The question entropy: how widely does a head spread its attention?"""

from headscope.claims.plan import LayerMarks, PicturePlan
from headscope.claims.question import Option, Question, some_left
from headscope.claims.terms import CLARK, terms_of

QUESTION = Question(
    name="entropy",
    package=__name__,
    title="Entropy",
    place=20,
    measure="measure:Entropy",
    summary="how widely each head spreads its attention",
    source=f"{CLARK}, §3.3",
    needs=frozenset({"attention"}),
    options={"smoothing": Option(0.0, check_value=some_left)},
    shown={"table": ("entropy.all", "entropy.cls")}
    | dict.fromkeys(("overview", "card", "change"), ("entropy.all",)),
    compared="How widely they attend",
    terms=terms_of(
        f"{CLARK}, §3.3",
        {
            "entropy": (
                "entropy",
                "How widely a head spreads its attention, in nats: 0 when all of it "
                "goes to one token, ln n when n tokens get the same.",
            ),
            "uniform": (
                "uniform attention",
                "What a head would show that gave every token of the input the same attention; the "
                "reference for entropy is the mean of ln n over inputs.",
            ),
        },
    ),
    labels={("entropy", "all"): "entropy, all tokens", ("entropy", "cls"): "entropy, [CLS] only"},
    figures=(
        PicturePlan(
            name="entropy_by_layer",
            title="How widely each layer looks",
            panels=tuple(
                LayerMarks(
                    title=title,
                    needs=f"entropy.{query}",
                    series={query: ""},
                    label="entropy (nats)",
                    even="uniform",
                    height=0.66,
                )
                for query, title in (("all", "From all tokens"), ("cls", "From {cls} only"))
            ),
            caption="Each mark is one head: the entropy of its attention in nats, mean over "
            "tokens, then inputs; high is broad, low is focused; the line is the layer mean, the "
            "dashed line uniform attention; whiskers are {intervals}; {over:entropy}. "
            "After Clark et al. (2019), Figure 4.",
            text="Entropy tells a head that averages over the whole input from one that picks "
            "single tokens. Marks near the dashed line are close to uniform attention.",
            finding="The entropy of a mean head is {entropy.all:.2f} of {uniform:.2f} nats.",
        ),
    ),
    claims="claims:CLAIMS",
    common=True,
    shares=("entropy",),
)
