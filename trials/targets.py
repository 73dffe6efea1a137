"""What is read in the trial: for each reader its samples, and how a folder with one is read."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Files = dict[str, bytes]
Reading = Callable[[Path], object]
CARDS = 50  # of so many run folders one is asked for a card, which takes half a second

CONLL2012 = """#begin document (bc/x); part 000
bc/x 0 0 John NNP (TOP(S(NP(NP* - - - Ann * (ARG0* (0|(1
bc/x 0 1 's POS *) - - - Ann * * 1)
bc/x 0 2 car NN *) - - - Ann * *) 0)
bc/x 0 3 broke VBD (VP*))) break 01 1 Ann * (V*) -

bc/x 0 0 He PRP (TOP(S(NP*) - - - Ann * (1)
bc/x 0 1 left VBD (VP*))) - - - Ann * -

#end document
"""
TREE = """# newdoc id = d
# sent_id = s1
1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
2\tca\tcan\tNOUN\tMD\t_\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tit\t_\t_\t_\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

# sent_id = s2
1\tcats\t_\tNOUN\tNNS\t_\t2\tnsubj:pass\t_\t_
2\tsat\t_\tVERB\tVBD\t_\t0\troot\t_\t_
"""
ENTITIES = """# global.Entity = eid-etype-head-other
# newdoc id = u
1\tAnn\t_\tPROPN\t_\t_\t2\tnsubj\t_\tEntity=(e1-person-1-
2\tsaw\t_\tVERB\t_\t_\t0\troot\t_\tEntity=(e2[1/2]-x-1-)e1)|SpaceAfter=No
3\ther\t_\tPRON\t_\t_\t2\tobj\t_\tEntity=(e1)
"""
GAP = """ID\tText\tPronoun\tPronoun-offset\tA\tA-offset\tA-coref\tB\tB-offset\tB-coref\tURL
g\tAnn, Eve: she\tshe\t10\tAnn\t0\tTRUE\tEve\t5\tFALSE\tu
"""
TEXT = b""" = Title = \n
The cat sat. The cats sat, a cat.

 = = Part = = \nIt ran!  "No?" the cat.
"""
SEGMENTS = b"""{"id": "a", "document": "d", "text_a": "the cat", "text_b": "a cat"}
{"id": 2, "tokens": ["[CLS]", "the", "cat", "[SEP]"]}
"""
RTE = "index\tsentence1\tsentence2\tlabel\n" + "".join(
    f"{n}\tthe cat {n}\ta cat\t{'entailment' if n % 2 else 'not_entailment'}\n" for n in range(6)
)
OWN = "text,label\n" + "".join(f'"the, cat {n}",{"ab"[n % 2]}\n' for n in range(6))
ROWS = "".join(json.dumps({"text": f"cat {n}", "label": n % 2}) + "\n" for n in range(6)).encode()
FRAMES: Files = {
    "luIndex.xml": b"""<?xml version="1.0" encoding="UTF-8"?>
<luIndex xmlns="http://framenet.icsi.berkeley.edu">
<lu hasAnnotation="true" ID="1" name="love.v"/></luIndex>""",
    "frameIndex.xml": b"""<frameIndex xmlns="http://framenet.icsi.berkeley.edu">
<frame name="Feel"/></frameIndex>""",
    "frame/Feel.xml": b"""<frame xmlns="http://framenet.icsi.berkeley.edu" name="Feel">
<FE name="Feeler" coreType="Core"/><FE name="Time" coreType="Peripheral"/></frame>""",
    "lu/lu1.xml": b"""<lexUnit
xmlns="http://framenet.icsi.berkeley.edu" name="love.v" ID="1" frame="Feel">
<subCorpus name="all"><sentence sentNo="0" ID="7"><text>Ann loves cats .</text>
<annotationSet status="MANUAL" ID="2"><layer rank="1" name="FE">
<label end="2" start="0" name="Feeler"/></layer>
<layer rank="1" name="Target"><label end="8" start="4" name="Target"/></layer></annotationSet>
</sentence></subCorpus></lexUnit>""",
}
VECTORS = b"the 0.1 0.2 0.3\ncat 1 2 3\nthe cat 4 5e-1 6\n"
BINARY = b"2 3\nthe " + np.ones(3, "<f4").tobytes() + b"\ncat " + np.zeros(3, "<f4").tobytes()
GOLD: Files = {
    "x.src": b"das Haus ist\nja\n",
    "x.tgt": b"the house is\nyes\n",
    "x.talp": b"1-1 2-2 3p3\n1-1\n",
}
BLOCKS = b"SENT: 0\nS 1 1\nP 3 3\nSENT: 1\nS 1 1\n"
RANKS = b"1 500 3\n2 80 5\n3 80 0\n"
RECORD: dict[str, Any] = {
    "model": {"name": "demo", "start": "new head"},
    "task": {"name": "rte", "metrics": ["accuracy"]},
    "data": {"train": {"examples": 4}, "dev": {"examples": 4}},
    "settings": {"epochs": 1, "seed": 0},
    "metrics": {w: {"accuracy": 0.5, "ci_low": 0.4, "ci_high": 0.6} for w in ("before", "after")},
    "layers": [
        {"layer": n, "gradient_norm": 1.0, "relative_change": 0.1, "rate": 2e-5} for n in (0, 1)
    ],
}


def samples(name: str, work: Path) -> dict[str, Files]:
    """By name, the samples of a reader: file name → content.

    work  a folder with `run` and `models`, where a run folder and model folders are read from
    """
    if name == "run":
        return {"run": _content(work / "run")}
    if name == "model":
        return {folder.name: _content(folder) for folder in sorted((work / "models").iterdir())}
    made = SAMPLES[name]
    return made() if callable(made) else made


def _content(folder: Path) -> Files:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _tables() -> dict[str, Files]:
    import pyarrow as pa
    from pyarrow import parquet

    sink = io.BytesIO()
    columns = {"text": [f"cat {n}" for n in range(6)], "label": [n % 2 for n in range(6)]}
    parquet.write_table(pa.table(columns), sink)
    contents = {
        "dev.tsv": RTE.encode(),
        "dev.csv": OWN.encode(),
        "dev.jsonl": ROWS,
        "dev.parquet": sink.getvalue(),
    }
    return {name: {name: content} for name, content in contents.items()}


def _vectors() -> dict[str, Files]:
    kinds = {
        "text": VECTORS,
        "header": b"2 3\nthe 1 2 3\ncat 4 5 6\n",
        "binary": BINARY,
        "gzip": gzip.compress(VECTORS, mtime=0),
    }
    return {name: {"vectors": content} for name, content in kinds.items()}


def _session() -> dict[str, Files]:
    maps = io.BytesIO()
    np.savez_compressed(maps, sizes=np.array([3, 2]), weights=np.ones(13, np.float16))
    rows = (
        "number,model,sha256,text,document,example,layer,head,boundary,special,punctuation\n"
        "0,m,ab,t,d,e,0,0,-1,0 2,1\n1,m,ab,t,d,e,0,1,1,0,\n"
    )
    labels = b"number,label\n0,vertical\n1,diagonal\n1,undo\n1,1\n"
    return {
        "session": {
            "maps.npz": maps.getvalue(),
            "provenance.csv": rows.encode(),
            "labels-a.csv": labels,
        }
    }


SAMPLES: dict[str, dict[str, Files] | Callable[[], dict[str, Files]]] = {
    "text": {"text": {"text.txt": TEXT}},
    "treebank": {"tree": {"tree.conllu": TREE.encode()}},
    "coref": {
        "conll": {"c.conll": CONLL2012.encode()},
        "corefud": {"c.conllu": ENTITIES.encode()},
        "gap": {"c.tsv": GAP.encode()},
    },
    "frames": {"release": FRAMES},
    "segments": {"segments": {"s.jsonl": SEGMENTS}},
    "table": _tables,
    "vectors": _vectors,
    "alignment": {"lines": GOLD, "blocks": {**GOLD, "x.talp": BLOCKS}},
    "session": _session,
    "ranks": {"ranks": {"ranks.txt": RANKS}},
    "training": {"record": {"finetuned.json": json.dumps(RECORD).encode()}},
}


# --- how each is read -------------------------------------------------------------------------


def _only(folder: Path) -> Path:
    return next((path for path in sorted(folder.rglob("*")) if path.is_file()), folder / "gone")


@cache
def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *"abcdefghijklmnopqrstuvwxyz0123456789.,",
    ]
    words += [f"##{letter}" for letter in words[5:]] + ["the", "cat", "##s"]
    words += "сот猫고القब"  # a letter of several scripts
    core = Tokenizer(models.WordPiece({w: n for n, w in enumerate(words)}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer()
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def _encoded(corpora: Iterable[Any]) -> None:
    from headscope.corpus import Encoder
    from headscope.errors import HeadscopeError

    refusal = None
    for corpus in corpora:
        encoder = Encoder(_tokenizer(), model_limit=64, has_segments=True, max_length=32)
        try:
            for document in corpus:
                list(encoder.encode(document))
            corpus.describe()
        except HeadscopeError as error:
            refusal = error
    if refusal is not None:
        raise refusal


def _text(folder: Path) -> None:
    from headscope.corpus import TextCorpus

    file = _only(folder)
    _encoded(
        TextCorpus(file, documents=kind, passages=how, on_error="skip")
        for kind, how in (("blank_line", "packed"), ("heading", "line"), ("file", "packed"))
    )


def _with_faults(kind: str) -> Reading:
    def read(folder: Path) -> None:
        from headscope import corpus

        file, reader = _only(folder), getattr(corpus, kind)
        place = folder if kind == "FramesCorpus" else file
        _encoded(reader(place, on_error=policy) for policy in ("stop", "skip"))

    return read


def _table(folder: Path) -> None:
    from headscope.tasks.task_data import read_task

    name = "rte" if _only(folder).suffix == ".tsv" else "own"
    read_task(name, folder, split="dev")


def _read_vectors(folder: Path) -> None:
    from headscope.experiments.probes.word_vectors import read_vectors

    read_vectors(_only(folder), ["the", "cat", "The cat"]).rows(["the", "dog"])


def _alignment(folder: Path) -> None:
    from headscope.experiments.alignment.gold_alignments import read_gold

    _ = read_gold([folder]).sha256


def _read_session(folder: Path) -> None:
    from headscope.experiments.map_classifier.annotation_session import Session
    from headscope.experiments.map_classifier.labelled_maps import labels_of

    session = Session(folder)
    for number in range(len(session)):
        session.map(number), session.kinds(number), session.boundary(number)
    labelled = labels_of(session)
    _ = labelled.labels, labelled.models, labelled.origins
    for one in labelled.maps:
        one.features()


def _ranks(folder: Path) -> None:
    from headscope.run.frequency_ranks import read_ranks

    read_ranks(_only(folder), 50)


def _training(folder: Path) -> None:
    from headscope.experiments.comparison.similarity import read_training
    from headscope.run.manifest import training_history

    training_history(str(folder))
    read_training(folder, layers=2)


def _run(folder: Path) -> None:
    """As commands do that open a run, and as a driver that goes on with it."""
    from headscope.cli.main import group
    from headscope.run.folder_check import check_folder
    from headscope.run.store import RunFolder, open_run

    list(check_folder(folder))
    run = open_run(folder)
    repr(run), run._repr_html_(), run.has_report
    for name in run:
        run[name].load()
    store = RunFolder(folder)
    store.owner = str(run.manifest.get("fingerprint", ""))
    for number in store.finished_shards():
        store.shard(number)
    manifest = folder / "manifest.json"
    if manifest.is_file() and zlib.crc32(manifest.read_bytes()) % CARDS == 0:
        with contextlib.redirect_stdout(io.StringIO()):
            group.main(["head", str(folder), "L1H2"], "headscope", standalone_mode=False)


def _model(folder: Path) -> None:
    import headscope
    from headscope.corpus import Encoder, MemoryCorpus

    model = headscope.load(str(folder))
    encoder = Encoder(model.tokenizer, model_limit=model.limit, has_segments=model.has_segments)
    examples = [e for d in MemoryCorpus(["the cat sat. a cat"]) for e in encoder.encode(d)]
    if examples:
        model.batch(examples)
    _ = model.vocabulary, model.special_tokens, repr(model)


READERS: dict[str, Reading] = {
    "text": _text,
    "treebank": _with_faults("TreebankCorpus"),
    "coref": _with_faults("CorefCorpus"),
    "frames": _with_faults("FramesCorpus"),
    "segments": _with_faults("SegmentsCorpus"),
    "table": _table,
    "vectors": _read_vectors,
    "alignment": _alignment,
    "session": _read_session,
    "ranks": _ranks,
    "training": _training,
    "run": _run,
    "model": _model,
}


# --- the run and the models that are made ---------------------------------------------------------


def make_samples(work: Path) -> None:
    """Write a small run folder and three model folders below `work`, once."""
    import headscope
    from headscope.cli.terminal_output import prepare
    from headscope.model.checkpoint import quietly
    from headscope.run.execution import Execution

    prepare()
    with quietly():
        _make_models(work / "models")
    model = headscope.load(str(work / "models" / "bert"))
    headscope.atlas(
        model,
        headscope.demo_corpus(),
        output=work / "run",
        control="none",
        limit=3,
        replicates=2,
        shard_tokens=300,
        max_length=32,
        execution=Execution(threads=1),
        analyses=("entropy",),
    )
    for file in (work / "run").glob(".lock"):
        file.unlink()


def _make_models(folder: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, LlamaConfig, LlamaModel

    torch.manual_seed(0)
    tokenizer = _tokenizer()
    size = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8}
    rows = {"vocab_size": len(tokenizer), "intermediate_size": 8, "max_position_embeddings": 64}
    gpt2 = {"n_layer": 2, "n_head": 2, "n_embd": 8, "n_positions": 64, "vocab_size": len(tokenizer)}
    for network in (
        BertModel(BertConfig(**size, **rows)),
        GPT2Model(GPT2Config(**gpt2)),
        LlamaModel(LlamaConfig(**size, **rows)),
    ):
        network.save_pretrained(folder / network.config.model_type)
        tokenizer.save_pretrained(folder / network.config.model_type)
