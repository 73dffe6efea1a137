"""Is a run the same however it is run, stopped and continued?"""

import json
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from commands import WHOLE, WHOLE_SHARDS, shard_files
from forked import called_apart
from headscope.corpus import Document, Passage, Word
from headscope.errors import CorpusError, HeadscopeError, InputError, RunFolderError
from headscope.report.build import render
from headscope.run.store import RunFolder

SETTINGS = hs.Settings(**WHOLE)
SHORT = replace(SETTINGS, analyses=("surface", "entropy"))  # of the fixture `short`
STOCK = hs.Execution(linears="stock", threads=1)


def results(run):
    return (run.path / "atlas.nc").read_bytes()


def bits(tree):
    """The bytes of every variable that is numbers."""
    variables = ((n.path, name, v) for n in tree.subtree for name, v in n.variables.items())
    return {(path, name): v.values.tobytes() for path, name, v in variables if v.dtype != object}


def test_a_model_in_training_is_read_without_dropout_and_stays_in_training(demo):
    settings = {"limit": 1, "analyses": ["entropy"], "replicates": 2}
    calm = hs.atlas(demo, hs.demo_corpus(), execution=STOCK, **settings)
    network = demo.network
    network.encoder.train()
    network.encoder.layer[0].eval()
    modes = [module.training for module in network.modules()]
    try:
        run = hs.atlas(demo, hs.demo_corpus(), execution=STOCK, **settings)
        assert [module.training for module in network.modules()] == modes
    finally:
        network.eval()
    xr.testing.assert_identical(run["entropy"], calm["entropy"])


# --- the same bits --------------------------------------------------------------------------


def test_a_run_in_memory_equals_one_on_disk(tiny, whole):
    run = hs.atlas(tiny, hs.demo_corpus(), settings=SETTINGS, execution=STOCK)
    assert run.path is None
    xr.testing.assert_identical(run.tree, whole.tree)


def test_a_run_that_is_opened_equals_the_one_that_was_made(whole):
    xr.testing.assert_identical(hs.open_run(whole.path).tree, whole.tree)


# What comes after the linear maps is the same code in both ways.
@pytest.mark.parametrize(
    ("linears", "analyses"), [("stock", None), ("onednn", ("surface", "norms", "mixing"))]
)
def test_the_number_of_threads_leaves_every_bit_as_it_is(demo, linears, analyses):
    """On the demo: the products of a tiny model are too small to be split."""
    one, two = (
        hs.atlas(
            demo,
            hs.demo_corpus(),
            limit=1,
            replicates=20,
            analyses=analyses,
            execution=hs.Execution(linears=linears, threads=threads),
        )
        for threads in (1, 2)
    )
    xr.testing.assert_identical(one.tree, two.tree)
    assert bits(one.tree) == bits(two.tree)


def test_the_number_of_workers_leaves_every_bit_as_it_is(tiny_place, whole, tmp_path):
    called_apart(run_by_two_workers, str(tiny_place), cwd=tmp_path)
    assert (tmp_path / "run" / "atlas.nc").read_bytes() == results(whole)


def run_by_two_workers(place):
    execution = hs.Execution(workers=2, linears="stock")  # threads by default
    hs.atlas(
        hs.load(place),
        hs.demo_corpus(),
        output="run",
        settings=SETTINGS,
        control="none",
        execution=execution,
    )


def test_the_order_in_which_analyses_are_named_changes_nothing(tiny, tmp_path):
    for names in (("entropy", "surface"), ("surface", "entropy")):
        run = hs.atlas(
            tiny, hs.demo_corpus(), output=tmp_path, analyses=names, limit=2, replicates=5
        )
    assert list(run) == ["entropy", "surface"]


# --- going on, and starting afresh ----------------------------------------------------------


@pytest.fixture
def copy(short, tmp_path):
    return shutil.copytree(short.path, tmp_path / "run")


def again(tiny, path, settings=SHORT, *, keep_shards=True, **more):
    return hs.atlas(
        tiny,
        hs.demo_corpus(),
        output=path,
        settings=settings,
        execution=hs.Execution(linears="stock", threads=1, keep_shards=keep_shards, **more),
    )


def test_a_finished_run_is_only_opened(tiny, copy, short, monkeypatch):
    def never(*_, **__):
        raise AssertionError("nothing is left to compute or to write")

    monkeypatch.setattr("headscope.run.corpus_run.gather", never)
    monkeypatch.setattr("headscope.run.store.write_whole", never)
    calls = []
    run = again(tiny, copy, progress=lambda *done: calls.append(done))
    assert calls == [(WHOLE_SHARDS, WHOLE_SHARDS)]
    xr.testing.assert_identical(run.tree, short.tree)


def test_a_run_that_was_begun_with_other_linear_maps_says_that_it_stays_so(tiny, copy, short):
    def asked(linears):
        return hs.atlas(
            tiny,
            hs.demo_corpus(),
            output=copy,
            settings=SHORT,
            execution=hs.Execution(linears=linears, threads=1, keep_shards=True),
        )

    assert [asked(one).notes for one in ("stock", "auto")] == [(), ()]
    (copy / "atlas.nc").unlink()  # it goes on from its shards
    for _ in range(2):  # then it is finished
        run = asked("onednn")
        assert "was begun with --linears stock, and stays so" in run.notes[0]
        assert run.manifest["linears"] == "stock"
    assert bits(run.tree) == bits(short.tree)


def test_a_file_that_is_read_twice_is_told(tiny, tmp_path):
    for name in ("a.txt", "b.txt", "c.txt"):
        (tmp_path / name).write_text("A cat sat.\n\nIt slept." + " Long." * (name == "c.txt"))
    files = [tmp_path / "a.txt", tmp_path / "c.txt", tmp_path / "b.txt"]
    run = hs.atlas(tiny, files, analyses=("entropy",), control="none")
    assert run.notes == ("a.txt and b.txt: 2 files hold the same, which is read 2 times",)
    assert "A.txt and b.txt: 2 files" in render(run.tree, run.manifest)
    assert not hs.atlas(tiny, files[:2], analyses=("entropy",), control="none").notes


def test_frequency_ranks_that_are_not_those_of_the_vocabulary_are_told(tiny, tmp_path):
    rng, file = np.random.default_rng(0), tmp_path / "ranks.txt"
    ids = np.arange(len(tiny.tokenizer))
    told = list[bool]()
    for order in (ids, rng.permutation(ids)):  # frequent tokens of this vocabulary come first
        file.write_text("".join(f"{rank} 1 {at}\n" for rank, at in enumerate(order, start=1)))
        run = hs.atlas(tiny, "demo", analyses=("entropy",), control="none", frequency=file)
        told.append(any("ranks do not go with this corpus" in note for note in run.notes))
    assert told == [False, True]


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_shard_is_computed_again_and_no_other(tiny, copy, short, damage):
    before = shard_files(copy)
    name = sorted(before)[2]
    file = copy / "shards/00000" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content if damage == "flip" else content[:99])
    if damage == "remove":
        file.unlink()
    (copy / "atlas.nc").unlink()  # whole results need no shards
    again(tiny, copy)
    after = shard_files(copy)
    assert after.pop(name) != before.pop(name)  # the same content under the same name
    assert after == before
    assert (copy / "atlas.nc").read_bytes() == results(short)


@pytest.mark.parametrize("content", [None, b"", b"\x89HDF not really"])
def test_damaged_results_are_merged_again_from_the_shards(tiny, copy, short, content):
    before = shard_files(copy)
    (copy / "atlas.nc").unlink()
    if content is not None:
        (copy / "atlas.nc").write_bytes(content)
        with pytest.raises(RunFolderError, match=r"atlas\.nc is damaged .*run the run's command"):
            hs.open_run(copy)
    again(tiny, copy)
    assert shard_files(copy) == before
    assert (copy / "atlas.nc").read_bytes() == results(short)


def test_a_finished_run_keeps_no_shards_unless_asked(tiny, copy, short, tmp_path):
    assert shard_files(short.path)  # asked
    run = again(tiny, tmp_path / "new", keep_shards=False)
    assert not (run.path / "shards").exists()
    assert results(run) == results(short)
    # One that was killed after its results were written: the same command removes the rest.
    sorted((copy / "shards/00000").iterdir())[0].unlink()
    again(tiny, copy, keep_shards=False)
    assert not (copy / "shards").exists()
    assert hs.open_run(copy).report().is_file()


def test_shards_stay_until_the_manifest_names_the_results(tiny, copy, short, monkeypatch):
    before, written = shard_files(copy), RunFolder.write_manifest
    (copy / "atlas.nc").unlink()

    def torn(folder, manifest):
        assert (folder.path / "atlas.nc").is_file()
        raise OSError("the power fails")

    monkeypatch.setattr(RunFolder, "write_manifest", torn)
    with pytest.raises(OSError, match="the power fails"):
        again(tiny, copy, keep_shards=False)
    assert shard_files(copy) == before
    monkeypatch.setattr(RunFolder, "write_manifest", written)
    again(tiny, copy, keep_shards=False)
    assert not shard_files(copy)
    assert results(short) == (copy / "atlas.nc").read_bytes()


def test_damaged_results_without_shards_are_computed_again_to_the_same_bits(tiny, copy, short):
    again(tiny, copy, keep_shards=False)
    (copy / "atlas.nc").write_bytes(b"torn")
    again(tiny, copy, keep_shards=False)
    assert (copy / "atlas.nc").read_bytes() == results(short)


def test_another_spec_reuses_nothing(tiny, copy):
    before = shard_files(copy)
    other = {"settings": replace(SHORT, seed=1), "output": copy}
    with pytest.raises(
        RunFolderError, match=r"other settings \(settings.seed: 0, now 1\)\n.*--overw"
    ):
        hs.atlas(tiny, hs.demo_corpus(), **other)
    assert shard_files(copy) == before
    run = hs.atlas(
        tiny, hs.demo_corpus(), **other, execution=hs.Execution(overwrite=True, linears="stock")
    )
    assert not set(shard_files(copy).items()) & set(before.items())
    assert run.tree.attrs["seed"] == 1


CHANGED = {"hidden_act": "relu", "layer_norm_eps": 1e-3}


@pytest.mark.parametrize("name", CHANGED)
def test_another_configuration_of_the_same_weights_is_another_spec(tiny_place, tmp_path, name):
    """Old and new shards were once mixed, and a finished run opened."""
    place = shutil.copytree(tiny_place, tmp_path / "model")
    more = {"output": tmp_path / "run", "analyses": ["entropy"], "limit": 1}
    hs.atlas(hs.load(place), hs.demo_corpus(), **more)
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, name: CHANGED[name]}))
    with pytest.raises(RunFolderError, match=rf"other settings \(model\.config\.{name}: "):
        hs.atlas(hs.load(place), hs.demo_corpus(), **more)


def test_what_decides_the_numbers_is_in_the_spec(short):
    spec = short.manifest["spec"]
    assert set(spec["versions"]) == {"headscope", "torch", "transformers"}
    assert spec["versions"]["torch"].count(".") == 1  # a patch may go on with a run
    assert {"config", "tokenizer_sha256", "dtype", "device", "sha256"} <= set(spec["model"])


def test_a_patch_of_a_library_goes_on_and_the_manifest_says_so(tiny, copy, short):
    folder = RunFolder(copy)
    begun = folder.manifest()
    begun.pop("results_sha256")  # the run was stopped before its end
    begun["versions"]["torch"] = "2.13.99"
    folder.write_manifest(begun)
    run = again(tiny, copy)
    assert run.manifest["continued_with"] == [short.manifest["versions"]]
    assert (copy / "atlas.nc").read_bytes() == results(short)


def test_a_shard_of_another_seed_is_not_taken(tiny, copy, short, tmp_path):
    other = again(tiny, tmp_path / "other", replace(SHORT, seed=1))
    foreign = sorted((other.path / "shards/00000").iterdir())[2]
    own = sorted((copy / "shards/00000").iterdir())[2]
    own.unlink()
    shutil.copy(foreign, copy / "shards/00000")
    (copy / "atlas.nc").unlink()
    again(tiny, copy)
    assert (copy / "atlas.nc").read_bytes() == results(short)


@pytest.mark.parametrize("edit", ["Another word. ", ""])
def test_a_corpus_that_changes_while_it_is_read_ends_the_run(tiny, tmp_path, edit):
    file = tmp_path / "text"
    file.write_text("\n\n".join(f"This is document {n} of them." for n in range(9)))

    def change(done, _total):
        if done == 0:  # planned, and nothing read yet
            file.write_text(edit + file.read_text()[: None if edit else 5])

    with pytest.raises(CorpusError, match=r"changed since this run was planned: documents \d"):
        hs.atlas(
            tiny,
            hs.corpus.TextCorpus(file),
            output=tmp_path / "run",
            shard_tokens=8,
            analyses=["entropy"],
            execution=hs.Execution(linears="stock", progress=change),
        )
    assert not shard_files(tmp_path / "run")
    assert not (tmp_path / "run/atlas.nc").exists()


def test_one_flipped_bit_of_the_results_is_noticed_wherever_they_are_opened(copy):
    content = bytearray(results(hs.open_run(copy)))
    for at in (len(content) // 3, len(content) // 2, len(content) - 9):
        content[at] ^= 4
        (copy / "atlas.nc").write_bytes(content)
        with pytest.raises(RunFolderError, match=r"atlas\.nc is damaged .*run the run's command"):
            hs.open_run(copy)
        content[at] ^= 4
    (copy / "atlas.nc").write_bytes(content)
    hs.open_run(copy)


def test_overwriting_the_same_spec_goes_on_with_it(tiny, copy):
    before = shard_files(copy)
    again(tiny, copy, overwrite=True)
    assert shard_files(copy) == before


def test_shards_whose_manifest_is_gone_are_not_trusted(tiny, copy):
    before = shard_files(copy)
    for entry in os.scandir(copy):
        if entry.name != "shards":
            shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)
    again(tiny, copy)
    assert not set(shard_files(copy).items()) & set(before.items())


def test_ctrl_c_says_what_is_kept_and_the_run_goes_on(tiny, tmp_path, short):
    def interrupt(done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(
        HeadscopeError, match=f"stopped; 3 of {WHOLE_SHARDS} shards are finished and kept"
    ):
        again(tiny, tmp_path, progress=interrupt)
    before = shard_files(tmp_path)
    assert len(before) == 3
    with pytest.raises(RunFolderError, match="is not finished; run its command again"):
        hs.open_run(tmp_path)
    again(tiny, tmp_path)
    assert before.items() <= shard_files(tmp_path).items()
    assert (tmp_path / "atlas.nc").read_bytes() == results(short)


def test_a_failure_leaves_threads_and_model_as_they_were(tiny):
    import torch

    before = torch.get_num_threads()

    def fail(done, total):
        raise ZeroDivisionError

    execution = hs.Execution(threads=before + 1, linears="onednn", progress=fail)
    with pytest.raises(ZeroDivisionError):
        hs.atlas(tiny, hs.demo_corpus(), limit=1, replicates=2, execution=execution)
    assert torch.get_num_threads() == before
    assert all("forward" not in vars(module) for module in tiny.network.modules())


def test_a_report_can_be_made_from_the_results_alone(copy, tiny):
    for entry in os.scandir(copy):
        if entry.name != "atlas.nc":
            shutil.rmtree(entry) if entry.is_dir() else os.unlink(entry)
    run = hs.open_run(copy)
    assert run.manifest == {}
    assert f"{tiny.name} on 5 documents" in repr(run)
    assert run.report() == copy / "report.html"
    there = {p.name for p in copy.iterdir() if not p.name.startswith(".")}
    assert there == {"atlas.nc", "figures", "report.html", "tables"}
    assert run.has_report


@pytest.mark.parametrize(
    "how", [{"analyses": ["dependency"]}, {"options": {"dependency": {"relations": "obj"}}}]
)
def test_an_analysis_that_is_asked_for_needs_its_annotations(tiny, how):
    with pytest.raises(InputError, match="dependency needs a corpus with trees, words, and this"):
        hs.atlas(tiny, hs.corpus.MemoryCorpus(["No trees here."]), **how)


def test_a_limit_that_leaves_out_all_annotated_documents_says_so(tiny):
    """ "this one has none" was said of a corpus whose trees begin with its second document."""
    tree = (Word("It", head=1, relation="nsubj"), Word("rains", head=-1, relation="root"))
    corpus = hs.corpus.MemoryCorpus(
        [
            Document("plain", (Passage("p", text="No trees here."),)),
            Document("trees", (Passage("t", words=tree),)),
        ]
    )
    first = r"its first document has none \(--limit\); give a larger --limit, or --treebank"
    with pytest.raises(InputError, match=f"needs a corpus with trees, words, and {first}"):
        hs.atlas(tiny, corpus, analyses=["dependency"], limit=1)


def test_analyses_without_their_annotations_are_left_out(tiny):
    options = {"dependency": {"measure": "weighted_norm"}}  # as --measure gives it to all
    run = hs.atlas(tiny, hs.corpus.MemoryCorpus(["No trees."]), options=options, replicates=0)
    plain = {
        "surface",
        "entropy",
        "distance",
        "norms",
        "sinks",
        "explained",
        "mixing",
        "flow",
        "divergence",
        "patterns",
        "neurons",
        "examples",
    }
    assert set(run) == plain


def test_n_counts_the_documents_that_are_annotated(tiny):
    verb = Word("ran", "VERB", "VBD", -1, "root")
    trees = [
        Document(form, (Passage(form, words=(Word(form, "PRON", "PRP", 1, "nsubj"), verb)),))
        for form in ("It", "She", "He")
    ]
    corpus = hs.corpus.MemoryCorpus(["Plain text of more words than all the trees have.", *trees])
    run = hs.atlas(tiny, corpus, analyses=["surface", "dependency"], replicates=5)
    assert run.tree.attrs["documents"] == 1
    assert run["dependency"].accuracy.attrs["n"] == 3
    assert "n" not in run["surface"].attention.attrs


# --- in Python ------------------------------------------------------------------------------


def test_a_group_is_asked_for_by_name(short):
    assert isinstance(short["entropy"], xr.Dataset)
    with pytest.raises(KeyError, match="no analysis called 'entropi' in this run; there are ent"):
        short["entropi"]


def test_objects_show_themselves_in_a_notebook(short, tiny, demo):
    assert f"{tiny.name} on 5 documents, 1193 tokens: " in repr(short)
    one = short.tree.copy()
    one.attrs["documents"] = 1
    assert " on 1 document, " in repr(hs.Run(one, short.manifest))
    page = short._repr_html_()
    assert "<td>" not in page  # a notebook would set it flush right
    assert tiny.name in page
    assert "<script" not in page
    shown = demo._repr_html_()
    assert "BertModel, 6 layers × 12 heads" in shown
    assert demo.sha256 in shown
    assert demo.sha256.startswith("53aa51172d142c89")


def test_settings_and_keywords_together_are_refused(tiny):
    with pytest.raises(InputError, match="found settings="):
        hs.atlas(tiny, hs.demo_corpus(), settings=hs.Settings(), limit=3)
    with pytest.raises(InputError, match="no setting called 'sharding'; did you mean 'shard"):
        hs.atlas(tiny, hs.demo_corpus(), sharding=3)


def test_no_report_without_a_folder(tiny):
    run = hs.atlas(tiny, hs.demo_corpus(), analyses=["entropy"], limit=1, replicates=0)
    assert not run.has_report
    with pytest.raises(InputError, match=r"in memory; give report\("):
        run.report()


def test_one_document_has_no_interval(tiny):
    run = hs.atlas(tiny, hs.demo_corpus(), analyses=["entropy"], limit=1, replicates=5)
    assert np.isfinite(run["entropy"]["entropy"]).all()
    assert np.isnan(run["entropy"]["entropy_ci_low"]).all()


def test_a_loaded_model_cannot_be_loaded_again_by_workers(tiny):
    model = hs.load(tiny.network, tokenizer=tiny.tokenizer)
    with pytest.raises(InputError, match="several workers load the model themselves"):
        hs.atlas(
            model,
            hs.demo_corpus(),
            analyses=["entropy"],
            shard_tokens=400,
            replicates=0,
            execution=hs.Execution(workers=2),
        )


def test_nothing_to_open_is_named(tmp_path):
    with pytest.raises(RunFolderError, match=r"is no run folder: it has no atlas\.nc"):
        hs.open_run(tmp_path)


def test_file_names_that_hdf5_cannot_hold_do_no_harm(tiny, tmp_path):
    name = os.fsdecode(b"caf\xe9\x1b[31m \xf0\x9f\x98\x80.txt")
    (tmp_path / name).write_text("A cat sat. It slept.\n\nA dog ran. It barked.")
    corpus = hs.corpus.TextCorpus(tmp_path / name)
    run = hs.atlas(tiny, corpus, output=tmp_path / "run", analyses=["entropy"], replicates=2)
    assert "caf" in run.tree.attrs["corpus"]
    assert hs.open_run(run.path).manifest["corpus"]["files"][0]["name"] == name
    run.report()
