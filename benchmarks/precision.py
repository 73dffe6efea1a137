"""How many words a head finds the syntactic head of in half precision, beside float32.

python -m benchmarks.precision MODEL TREEBANK.conllu --limit 30   # documents
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
import xarray as xr

import headscope as hs

LEAST = 25  # words of a relation whose accuracy is told


def main(arguments: Sequence[str] | None = None) -> str:
    """Run the analysis once for each precision, print how far it is from float32."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("treebank")
    parser.add_argument("--limit", type=int, default=30, help="documents at most")
    asked = parser.parse_args(arguments)
    corpus = hs.corpus.TreebankCorpus([asked.treebank])
    settings = hs.Settings(analyses=("dependency",), limit=asked.limit, replicates=0)
    found = {
        dtype: hs.atlas(hs.load(asked.model, dtype=dtype), corpus, settings=settings)["dependency"]
        for dtype in ("float32", "float16", "bfloat16")
    }
    wide = found.pop("float32")
    text = "\n".join(f"{dtype}: {compared(wide, half)}" for dtype, half in found.items())
    print(text)
    return text


def compared(wide: xr.Dataset, half: xr.Dataset) -> str:
    """In words: cells with another number of words found, by how many, and other best heads."""
    asked = wide["count"].values  # [relation]
    often = asked >= LEAST
    off = np.abs(found_words(half) - found_words(wide))  # [layer, head, direction, relation]
    most = np.unravel_index(int(off.argmax()), off.shape)
    apart = float((off / np.maximum(asked, 1))[..., often].max())
    best = [
        np.stack([one[f"best_{part}"].values for part in ("layer", "head", "direction")])
        for one in (wide, half)
    ]
    other = int((best[0] != best[1]).any(0)[often].sum())
    return (
        f"{int((off > 0).sum())} of {off.size} cells differ, by {int(off[most])} of "
        f"{int(asked[most[-1]]):,} words at most; accuracy by {100 * apart:.1f} points at most, of "
        f"relations with {LEAST} words or more; {other} of {int(often.sum())} best heads are others"
    )


def found_words(dependency: xr.Dataset) -> np.ndarray:
    """[layer, head, direction, relation] how many words each head finds the head of."""
    accuracy = dependency["accuracy"].transpose("layer", "head", "direction", "relation").values
    return np.rint(np.nan_to_num(accuracy) * dependency["count"].values)


if __name__ == "__main__":
    main()
