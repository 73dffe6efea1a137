"""Check that an analysis, ours or a plug-in's, keeps the contract of analyses.

Every check is one function below; the inputs and comparisons are in `run.contract_bench`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import getdoc
from typing import Any

import numpy as np
import torch

from headscope.errors import HeadscopeError, InputError
from headscope.model.batch import Batch
from headscope.model.layer import LayerView
from headscope.run.analysis import Analysis
from headscope.run.contract_bench import HEADS, LAYERS, Bench, State, copied, tiny_views
from headscope.run.known_analyses import NEEDS

MERGE_TOLERANCE = 1e-10  # float64 sums in another order
WIDE_TOLERANCE = 1e-4  # a whole forward pass in float32 against one in float64
_LOW, _HIGH = "_ci_low", "_ci_high"


@dataclass(frozen=True)
class PassedChecks:
    """The checks that an analysis has passed; printed, a line for each."""

    analysis: str
    checks: tuple[str, ...]  # what each of CHECKS says

    def __repr__(self) -> str:
        lines = [
            f"{self.analysis} keeps the contract of analyses; {len(self.checks)} checks passed:"
        ]
        return "\n".join([*lines, *(f"- {check}" for check in self.checks)])


def check_analysis(kind: type[Analysis], **options: Any) -> PassedChecks:
    """Check that an analysis keeps the contract of analyses.

    kind     an analysis class; it need not be registered
    options  its keyword options
    returns  the checks that it has passed
    raises   AssertionError, with a sentence that says what failed; InputError for one that reads a
             sample in passes, which has no sums to merge

    The contract is what the functions of CHECKS say. Batch size, order, padding and shards may
    change a result by 1e-5 at most (absolute plus relative).
    """
    if kind.sampled:
        raise InputError(
            f"{kind.name} reads a sample in several passes; wanted one that sees all inputs "
            "and adds to sums: the contract is of these"
        )
    bench = Bench(kind, options)
    for check in CHECKS:
        check(bench)
    said = (getdoc(check) or check.__name__ for check in CHECKS)
    return PassedChecks(bench.name, tuple(text.partition("\n\n")[0] for text in said))


def check_it_is_described(bench: Bench) -> None:
    """Name, needs, summary and source are given."""
    for word in ("name", "summary", "source"):
        bench.claim_text(f"{word} is", getattr(bench.kind, word, None))
    unknown = bench.kind.needs - NEEDS
    bench.claim(not unknown, f"needs {sorted(unknown)}; there are {sorted(NEEDS)}")


def check_result_is_labelled(bench: Bench) -> None:
    """Variables have names, units and sources, axes have labels."""
    result = bench.measured()
    bench.claim(len(result) > 0, "result() has no variables")
    for name, variable in result.items():
        for word in ("long_name", "units", "source"):
            bench.claim_text(f"{name!r} has {word}", variable.attrs.get(word))
    for dim, size in result.sizes.items():
        bench.claim(dim in result.indexes, f"the axis {dim!r} has no labels")
        wanted = {"layer": LAYERS, "head": HEADS}.get(str(dim))
        labels = result.indexes[dim].tolist()
        fault = f"{dim!r} is {labels}, wanted 0 … {size - 1}"
        bench.claim(wanted is None or labels == list(range(wanted)), fault)


def check_intervals_are_in_order(bench: Bench) -> None:
    """An interval has both ends, of the shape of its value, and none where there is no value."""
    result = bench.measured()
    for name in map(str, result):
        for end, other in ((_LOW, _HIGH), (_HIGH, _LOW)):
            stem = name.removesuffix(end)
            whole = stem == name or (stem in result and stem + other in result)
            bench.claim(
                whole, f"{name!r} stands alone, wanted {stem!r}, {stem + other!r} beside it"
            )
        if name + _LOW not in result:
            continue
        value, low, high = (result[name + end].values for end in ("", _LOW, _HIGH))
        shapes = value.shape == low.shape == high.shape
        bench.claim(shapes, f"the interval of {name!r} has another shape than its value")
        bench.claim(not (low > high).any(), f"an interval of {name!r} is upside down")
        absent = np.isnan(value) & ~(np.isnan(low) & np.isnan(high))
        bench.claim(not absent.any(), f"{name!r} is NaN where its interval is not")


def check_no_example_gives_no_number(bench: Bench) -> None:
    """Without examples all is NaN; 0 only where a variable without an interval counts something."""
    result = bench.result(bench.fresh(documents=0))
    for name, variable in result.items():
        counts = f"{name}{_LOW}" not in result
        absent = np.isnan(variable.values) | (counts & (variable.values == 0))
        bench.claim(bool(absent.all()), f"{name!r} holds numbers though no example was seen")


def check_one_document_has_no_interval(bench: Bench) -> None:
    """Intervals of one document are NaN: nothing is left without it. Those over heads are not."""
    analysis = bench.fresh(documents=1)
    bench.observe(analysis, [replace(e, document="a") for e in bench.examples])
    for name, variable in bench.result(analysis).items():
        if str(name).endswith((_LOW, _HIGH)) and "interval_over" not in variable.attrs:
            there = ~np.isnan(variable.values)
            bench.claim(not there.any(), f"{name!r} holds numbers though there is one document")


def check_batch_size_does_not_matter(bench: Bench) -> None:
    """1, 2, 3 or all examples at a time, short ones together with long ones, give one result."""
    for size in (2, 3, len(bench.examples)):
        what = f"a batch size of {size} instead of 1"
        bench.same_result(bench.measured(size=size), bench.measured(size=1), what)


def check_order_does_not_matter(bench: Bench) -> None:
    """Examples in reverse, or sorted by length as a run sorts them, give the same result."""
    for order in (bench.examples[::-1], sorted(bench.examples, key=len)):
        result = bench.result(bench.run(order, size=3))
        bench.same_result(result, bench.measured(), "the order of examples")


def check_padding_does_not_matter(bench: Bench) -> None:
    """Noise in the rows of padding changes nothing."""
    size = len(bench.examples)
    result = bench.result(bench.run(bench.examples, size=size, refill=True))
    bench.same_result(result, bench.measured(size=size), "what stands in padding")


def check_shards_do_not_matter(bench: Bench) -> None:
    """Merged parts give the whole; merging is associative, commutative, and leaves its argument."""
    cuts = (bench.examples[:3], bench.examples[3:4], bench.examples[4:])
    a, b, c = (bench.run(part, size=2) for part in cuts)
    before = copied(b)
    left = _merged(bench, _merged(bench, a, b), c)
    bench.same_state(b.state(), before, "merge() with an analysis", tolerance=0)
    bench.same_result(bench.result(left), bench.measured(size=2), "cutting into shards")
    for other, what in (
        (_merged(bench, a, _merged(bench, b, c)), "merging in another order"),
        (_merged(bench, c, _merged(bench, b, a)), "merging from the other side"),
        (_merged(bench, left, bench.fresh()), "merging with one that saw nothing"),
    ):
        bench.same_state(other.state(), left.state(), what, tolerance=MERGE_TOLERANCE)


def _merged(bench: Bench, one: Analysis, other: Analysis) -> Analysis:
    both = bench.copy(one)
    with bench.doing("merge()"):
        both.merge(other)
    return both


def check_float64_gives_the_same(bench: Bench) -> None:
    """Compiled loops read float32 on the host; what torch does for other types must agree."""
    result = bench.result(bench.run(bench.examples, size=3, dtype=torch.float64))
    what = "float64 instead of float32"
    bench.same_result(result, bench.measured(), what, tolerance=WIDE_TOLERANCE)


def check_long_inputs_give_the_same(bench: Bench) -> None:
    """Where whole maps are not needed, a result does not depend on whether they are made."""
    if not bench.kind.whole_maps:
        result = bench.result(bench.run(bench.examples, size=3, whole=1))
        bench.same_result(result, bench.measured(), "reading inputs without whole maps")


def check_state_is_the_whole_state(bench: Bench) -> None:
    """A state that is saved and loaded half-way continues bit for bit; result() changes nothing."""
    first, second = bench.examples[:3], bench.examples[3:]
    whole = bench.run(first, size=3)
    saved = copied(whole)
    bench.claim(bool(saved), "keeps nothing in accumulators: use self.sums(…) in __init__")
    other = bench.copy(whole)
    bench.same_state(other.state(), saved, "saving and loading")
    for analysis in (whole, other):
        bench.observe(analysis, second)
    bench.same_state(other.state(), whole.state(), "saving and loading half-way")
    result = bench.result(whole)
    what = "saving and loading half-way (something is kept outside the accumulators?)"
    bench.same_result(bench.result(other), result, what, tolerance=0)
    bench.same_state(other.state(), whole.state(), "result()")
    bench.same_result(bench.result(whole), result, "calling result() twice", tolerance=0)


def check_state_of_another_shape_is_refused(bench: Bench) -> None:
    """A shard of another run is not read as one of this run."""
    saved = copied(bench.fresh())
    for name, array in saved.items():
        longer = np.zeros((*array.shape[:-1], array.shape[-1] + 1), array.dtype)
        rest = {other: saved[other] for other in saved if other != name}
        _refused(bench, {**rest, name: longer}, f"{name!r} of another shape")
        _refused(bench, rest, f"no {name!r}")


def _refused(bench: Bench, state: State, what: str) -> None:
    try:
        bench.fresh().load(state)
    except HeadscopeError:
        return
    bench.claim(False, f"load() takes a state with {what}, wanted a HeadscopeError")


def check_inputs_are_not_changed(bench: Bench) -> None:
    """Layers and batches stay as they were: other analyses read the same tensors."""
    batch = bench.batch(bench.examples)
    views = tiny_views(batch, dtype=torch.float32)
    before = _copy_of_inputs(views, batch)
    bench.show(bench.fresh(), views, batch)
    after = _copy_of_inputs(views, batch)
    for name, array in before.items():
        same = array.tobytes() == after[name].tobytes()
        bench.claim(same, f"changes the {name} that it was shown; work on a copy")


TOKENS = ("is_cls", "is_sep", "is_punctuation", "categories", "query_classes")
OF_BATCH = ("input_ids", "segment_ids", "mask", "groups", "lengths", *TOKENS)
OF_VIEW = ("attention", "queries", "keys", "values", "residual", "output", "value_norm", "gram")


def _copy_of_inputs(views: list[LayerView], batch: Batch) -> State:
    seen: dict[str, Any] = {f"batch's {name}": getattr(batch, name) for name in OF_BATCH}
    for view in views:
        where = f"of layer {view.index}"
        seen |= {f"{name} {where}": getattr(view, name) for name in OF_VIEW}
        seen[f"projection {where}"] = view.projection.weight
        seen[f"entropy {where}"] = view.entropy(batch)
        seen[f"column sums {where}"] = view.column_sums(batch)
    return {
        name: np.array(array.numpy() if isinstance(array, torch.Tensor) else array)
        for name, array in seen.items()
    }


CHECKS: tuple[Callable[[Bench], None], ...] = (
    check_it_is_described,
    check_state_is_the_whole_state,
    check_result_is_labelled,
    check_intervals_are_in_order,
    check_inputs_are_not_changed,
    check_batch_size_does_not_matter,
    check_order_does_not_matter,
    check_padding_does_not_matter,
    check_shards_do_not_matter,
    check_no_example_gives_no_number,
    check_one_document_has_no_interval,
    check_float64_gives_the_same,
    check_long_inputs_give_the_same,
    check_state_of_another_shape_is_refused,
)
