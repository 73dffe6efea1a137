"""Makes the recorded runs anew: `python record.py` in this folder, after a change of a schema.

They are real: the demo on its corpus, with frames of the FrameNet beside the checkout; the same on
one document; a GPT-2 of random weights. Numbers keep three digits and maps 8 steps, to be small.
"""

from __future__ import annotations

import bz2
import tempfile
from pathlib import Path

import numpy as np
import xarray as xr
from tokenizers import ByteLevelBPETokenizer
from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

import headscope as hs
from conftest import SHARED
from headscope.claims.length_bands import BANDS
from model.families.tiny import sharpened
from recorded import ALONE, DECODER, ENCODER, sized, write

STEPS, BITS, FEWER_BITS = 8, 9, 4
ROUGH = (  # with fewer bits
    "value_norm",
    "separation",
    "neuron_importance",
    "typical_score",
    "profile",
    "uniform_profile",
    "distance_quantile",
    "mean_distance",
    "before",
    "sink_rate",
    "sink_share",
    "sink_share_of",
    "reference",
    "beside",
    "weight_above",
)
# Of four sentences, three texts and two pairs, and of two typical maps of a head.
FEW = {"example": slice(0, 4), "input": [0, 1, 2, -2, -1], "rank": slice(0, 2)}


def slim(tree: xr.DataTree) -> xr.DataTree:
    """The same with few inputs and rounded numbers: what is 0 of their digits takes no room."""
    made = tree.map_over_datasets(_rounded)
    made.attrs = tree.attrs
    return made


def _rounded(dataset: xr.Dataset) -> xr.Dataset:
    made = dataset.isel({dim: at for dim, at in FEW.items() if dim in dataset.dims})
    for name, values in made.data_vars.items():
        rough = str(name).removesuffix("_ci_low").removesuffix("_ci_high") in ROUGH
        if values.dtype == np.float32 and not rough:  # maps
            made[name] = values.copy(data=np.round(values.values * STEPS) / np.float32(STEPS))
        elif values.dtype.kind == "f":
            bits = FEWER_BITS if rough else BITS
            fraction, exponent = np.frexp(values.values)
            short = np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits)
            made[name] = values.copy(data=short.astype(values.dtype))
    return made


def decoder() -> hs.Model:
    """A GPT-2 of three layers of four heads, and a tokenizer of the corpus."""
    plain = ByteLevelBPETokenizer()
    packed = Path(hs.__file__).parent / "corpus/demo.conllu.bz2"
    lines = bz2.decompress(packed.read_bytes()).decode().splitlines(keepends=True)
    plain.train_from_iterator(lines, vocab_size=500)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain._tokenizer, model_max_length=128)
    config = GPT2Config(vocab_size=500, n_positions=128, n_embd=32, n_layer=3, n_head=4)
    return hs.load(sharpened(GPT2Model(config)).eval(), tokenizer=tokenizer)


def record() -> None:
    """Runs, slims and writes all three."""
    demo, corpus = hs.load("demo"), hs.demo_corpus()
    frames = hs.corpus.FramesCorpus(SHARED / "data" / "framenet15")
    with tempfile.TemporaryDirectory() as folder:

        def run(name, model, corpus, **more):
            return hs.atlas(model, corpus, output=Path(folder, name), control="none", **more)

        sources = {ENCODER: (demo, {}), ALONE: (demo, {"limit": 1})}
        sources[DECODER] = (decoder(), {"limit": 5})
        made = {}
        for kind, (model, more) in sources.items():
            run(kind, model, corpus, **more)
            with xr.open_datatree(Path(folder, kind, "atlas.nc"), engine="h5netcdf") as tree:
                made[kind] = tree.load().filter(lambda node: BANDS not in node.path)
            asked = {"limit": 1 if kind == ALONE else 100, "analyses": ("frames",)}
            of_frames = run(f"{kind}-frames", model, frames, **asked)
            made[kind]["frames"] = xr.DataTree(of_frames["frames"].load())
        for kind in (ALONE, DECODER):  # twelve heads are enough
            made[kind] = sized(made[kind], 3, 4).filter(lambda node: node.name != "patterns")
        write({kind: slim(tree) for kind, tree in made.items()})


if __name__ == "__main__":
    record()
