"""Report sections on heads on synthetic inputs: summary, sections, tables."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from headscope.claims.claim import Claim
from headscope.claims.head_labels import head_labels
from headscope.claims.headline import headline
from headscope.claims.reading import Reading
from headscope.claims.verdict import above, for_all
from headscope.core.head_names import names_of
from headscope.core.results import at, estimate, largest_first, shape
from headscope.core.wording import capital, fixed, number, percent
from headscope.experiments.circuits.claims import RULES
from headscope.experiments.circuits.verdicts import SURE, other_findings, verdict_table
from headscope.page.sections import OpeningPlan, heading_of

NAME = "circuits"
NAMED = 4  # heads that a sentence names
SHARES = ("copied_attention", "successor", "retrieval")
KINDS = ("induction", "previous_token", "duplicate_token")


def circuit_findings(run: Reading) -> list[str]:
    """All sentences that the results allow."""
    return [
        *(_kind_finding(run.tree, kind) for kind in RULES),
        *other_findings(run.tree),
        _path_finding(run),
        run.text(
            "Where random tokens come again so that the next can be known, the model gives it a "
            "probability of {told_again:%}."
        ),
        *_off_findings(run),
        _needle_finding(run),
    ]


def labelled(tree: xr.DataTree, kind: str) -> list[Claim]:
    """The labels of this kind, the largest number first."""
    every = (label for one in head_labels(tree).values() for label in one.labels)
    matches = [label for label in every if label.kind == kind]
    return sorted(matches, key=lambda label: (-label.value, label.layer, label.head))


def _kind_finding(tree: xr.DataTree, kind: str) -> str:
    """How many heads there are of a kind, and the strongest, each by the strongest of its labels
    of the kind.
    """
    strongest = dict[tuple[int, int], Claim]()
    for one in labelled(tree, kind):
        strongest.setdefault((one.layer, one.head), one)
    if not strongest:
        return ""
    heads = [
        f"{names_of(tree).head(*place)} {one.about and f'{one.about} '}"
        f"{percent(one.value, one.low, one.high)}"
        for place, one in strongest.items()
    ]
    many = f", {len(heads)} heads" * (len(heads) > 1)
    rest = f" and {len(heads) - NAMED} more" * (len(heads) > NAMED)
    return f"{capital(RULES[kind].title)}{many}: {', '.join(heads[:NAMED])}{rest}."


def _off_findings(run: Reading) -> list[str]:
    """Kinds of heads without which the model copies worse than without random heads."""
    dataset = run.data
    if "off_more" not in dataset:
        return []
    more, again = run("off_more"), run("off_loss.again")
    many = int(dataset.attrs["switch_off"])
    heads, others = (
        ("head", "a random one") if many == 1 else (f"{many} heads", f"{many} random ones")
    )
    verdicts = [above(*ends) for ends in zip(*for_all(more), strict=True)]
    worse, unsure = list[str](), list[str]()
    for one in np.argsort(-more.value, kind="stable").tolist():
        title, smallest = RULES[str(dataset["set"].values[one])].title, verdicts[one].smallest
        if verdicts[one].holds:
            these, random = (number(*at(again, one, off)) for off in (1, 2))
            worse.append(f"{title} {these} against {random}")
        elif np.isfinite(smallest):
            unsure.append(f"{title} ({fixed(smallest, 2)} nats would have shown)")
    costs = (
        f"Random tokens that come again cost {number(*at(again, 0, 0))} nats each, and more with "
        f"the best {heads} of a kind off than with {others} of the same layers: {'; '.join(worse)}."
    )
    cannot = (
        f"Whether they cost more with the best {heads} off than with {others}, these inputs cannot "
        f"tell: {'; '.join(unsure)}."
    )
    return [costs] * bool(worse) + [cannot] * bool(unsure)


def _needle_finding(run: Reading) -> str:
    dataset = run.data
    if "recall" not in dataset:
        return ""
    few = "" if "retrieval" in dataset else ": too few to tell which heads retrieve"
    runs = dataset.sizes["run"]
    opening = f"Of {runs} needles in a haystack the model tells {dataset.attrs['answered']}{few}."
    return " ".join([opening, *_steps(run), *_other_scores(run)])


def _steps(run: Reading) -> list[str]:
    """How many needles the model generates, and which heads copy in most of its steps."""
    dataset = run.data
    if "wrote" not in dataset.attrs:
        return []
    wrote = dataset.attrs["wrote"]
    if "retrieval_steps" not in dataset:
        return [f"Left to itself it writes {wrote}: too few to count steps."]
    share = estimate(dataset, "retrieval_steps")
    first = largest_first(share.value)[:NAMED]
    heads = (f"{run.names.head(*where)} {_plainly(*at(share, *where))}" for where in first)
    return [f"Left to itself it writes {wrote}; by its steps most: {', '.join(heads)}."]


def _other_scores(run: Reading) -> list[str]:
    """The top heads by the other scores of retrieval, and how far they agree with it."""
    sentences, dataset = [], run.data
    for name, words in (("qr_score", "QRHead’s score"), ("locos", "LOCOS")):
        if name in dataset and np.isfinite(values := dataset[name].values).any():
            most = ", ".join(run.names.head(*where) for where in largest_first(values)[:NAMED])
            rho = at(estimate(dataset, "retrieval_rho", other=name))
            agree = f"; rank correlation with retrieval {_plainly(*rho)}"
            sentences.append(f"By {words} most: {most}{agree * bool(np.isfinite(rho[0]))}.")
    return sentences


def _plainly(value: float, low: float, high: float) -> str:
    """`0.61 [0.53, 0.68]`, for a number that is not a share."""
    return fixed(value, 2) + f" [{fixed(low, 2)}, {fixed(high, 2)}]" * bool(np.isfinite(low))


def _path_finding(run: Reading) -> str:
    """The earlier head that the keys of the strongest induction heads read most."""
    dataset, heads = run.data, shape(run.tree)[1]
    readers_by_writer: dict[int, list[tuple[int, float]]] = {}
    for label in labelled(run.tree, "induction") if "composition" in dataset else ():
        reader = label.layer * heads + label.head
        for writer, score, over in pairs_of(dataset, reader, "key")[:1]:
            if over >= SURE:
                readers_by_writer.setdefault(writer, []).append((reader, score))
    if not readers_by_writer:
        return ""
    induces = run("score.induction").value.ravel()
    writer = max(
        readers_by_writer,
        key=lambda one: sum(induces[reader] for reader, _ in readers_by_writer[one]),
    )
    readers = readers_by_writer[writer]
    named = [run.names.unit(reader, heads) for reader, _ in readers]
    before = at(run("score.previous_token"), *divmod(writer, heads))
    least, most = (fixed(end(score for _, score in readers), 2) for end in (min, max))
    scores = least if least == most else f"{least} to {most}"
    return (
        f"The keys of {', '.join(named)} read most what {run.names.unit(writer, heads)} writes, "
        f"which gives {percent(*before)} to the previous token: K-composition {scores}, where "
        f"random rotations give {fixed(float(dataset.attrs['width']) ** -0.5, 2)}."
    )


def pairs_of(dataset: xr.Dataset, reader: int, way: str) -> list[tuple[int, float, float]]:
    """(writer, composition, standard deviations above random) of a reader, the strongest first."""
    one = dataset.sel(way=way).isel(reader=reader)
    score, above = (one[name].values.astype(float) for name in ("composition", "composition_above"))
    order = np.argsort(-np.nan_to_num(score, nan=-1.0), kind="stable")
    return [(int(w), float(score[w]), float(above[w])) for w in order if np.isfinite(score[w])]


def readers_of(dataset: xr.Dataset) -> list[int]:
    """Units of the strongest induction heads, whose pairs are reported."""
    scores = dataset["score"].sel(circuit="induction").values.ravel()
    return [int(unit) for unit in np.argsort(-scores, kind="stable")[:NAMED] if scores[unit] > 0]


def tables(run: Reading) -> dict[str, pd.DataFrame]:
    """`circuit_pairs`: the pairs of heads whose composition lies SURE or more above random.

    reader and writer (as papers count), way, composition, above (standard deviations), and the same
    of the projection kernel; NaN in older runs
    """
    dataset = run.data
    if "composition" not in dataset:
        return {}
    heads, rows = dataset.sizes["head"], []
    numbers: Sequence[int] = dataset["layer"].values.tolist()
    above = dataset["composition_above"].values
    names = ("composition", "composition_above", "projection_kernel", "projection_above")
    parts = [dataset[name].values if name in dataset else above * np.nan for name in names]
    for way, reader, writer in np.argwhere(np.nan_to_num(above) >= SURE).tolist():
        pair = [run.names.own(numbers[one // heads], one % heads) for one in (reader, writer)]
        values = [part[way, reader, writer] for part in parts]
        rows.append((*pair, str(dataset["way"].values[way]), *values))
    columns = ["reader", "writer", "way", "composition", "above", "kernel", "kernel_above"]
    return {"circuit_pairs": pd.DataFrame(rows, columns=columns)}


OPENING = OpeningPlan(
    heading=heading_of("Where heads of ", " look, and what they write"),
    lede=lambda run: headline(run.tree),
    id="circuits",
    tables=(verdict_table,),
)
