"""Are shards merged in a tree that depends on their number alone, and do files stay few?"""

import math

import numpy as np
import pytest

import headscope as hs
from headscope.core.whole_file import names_in
from headscope.run import shard_files
from headscope.run.merge_tree import FAN_IN, children, parent
from headscope.run.shard_files import LostShardError, ShardFiles
from headscope.run.store import RunFolder

# Each document is a shard of its own.
CORPUS = hs.corpus.MemoryCorpus([f"The cat saw {n} dogs, and {n * n} birds." for n in range(20)])
MANY = {"shard_tokens": 1, "replicates": 2, "analyses": ("entropy",)}
STOCK = {"linears": "stock", "threads": 1}


def below(node):
    """All nodes of a tree, by walking down."""
    inner = [child for child in children(node) if child != node]
    return {node}.union(*map(below, inner))


@pytest.mark.parametrize("shards", [1, 2, 8, 9, 63, 64, 65, 73, 512, 600])
def test_every_node_is_cut_into_its_children_and_every_shard_is_below_the_root(shards):
    nodes = below((0, shards - 1))
    assert {(n, n) for n in range(shards)} <= nodes
    for node in nodes:
        parts = children(node)
        assert len(parts) <= FAN_IN
        covered = [n for first, last in parts for n in range(first, last + 1)]
        assert covered == list(range(node[0], node[1] + 1))
    for node in nodes - {(0, shards - 1)}:
        assert node in children(parent(node, shards))
    assert parent((0, shards - 1), shards) == (0, shards - 1)
    path = [(shards - 1, shards - 1)]
    while path[-1] != (0, shards - 1):
        path.append(parent(path[-1], shards))
    assert len(path) <= 1 + math.ceil(math.log(shards, FAN_IN) - 1e-9)


def run_of(model, output=None, **execution):
    how = hs.Execution(**STOCK, **execution)
    return hs.atlas(model, CORPUS, output=output, **MANY, execution=how)


def files_of(run):
    folder = ShardFiles(run, keep_shards=True)
    folder.owner = RunFolder(run).manifest()["fingerprint"]
    return folder


@pytest.fixture(scope="module")
def many(tiny, tmp_path_factory):
    """A finished run of more shards than have one parent, which it keeps."""
    return run_of(tiny, tmp_path_factory.mktemp("many") / "run", keep_shards=True)


def test_a_run_in_memory_and_one_on_disk_are_merged_in_one_order(tiny, many):
    run = run_of(tiny)
    for name, variable in many["entropy"].variables.items():
        assert run["entropy"][name].values.tobytes() == variable.values.tobytes(), name


def test_the_merged_sums_are_those_of_all_shards(many):
    """Held against exact sums, and all shards are still there, without a node."""
    folder = files_of(many.path)
    assert folder.finished_spans() == {(n, n) for n in range(20)}
    states = [folder.shard(number) for number in range(20)]
    nats = math.fsum(s["entropy/total"][:, 1, 2, 0].sum() for s in states)
    count = math.fsum(s["entropy/count"].sum() for s in states)
    assert count == 20
    assert float(many["entropy"].entropy[1, 2, 0]) == pytest.approx(nats / count, rel=1e-14)


def test_files_stay_few_and_a_stopped_run_goes_on_from_its_nodes(tiny, many, tmp_path):
    """A node replaces its shards; killed between the two, the shards are deleted by the next."""
    most, folder = [], tmp_path / "run"

    def look(done, _total):
        most.append(len(list(folder.glob("shards/*/*.shard"))) if done else 0)
        if done == 18:
            raise KeyboardInterrupt

    with pytest.raises(hs.HeadscopeError, match="stopped; 18 of 20 shards are finished and kept"):
        run_of(tiny, folder, progress=look)
    assert max(most) <= FAN_IN + 1  # the shards below one node, and its elder sister
    assert files_of(folder).finished_spans() == {(0, 7), (8, 15), (16, 16), (17, 17)}
    leaf = next(many.path.glob("shards/*/00003-*"))
    (folder / "shards/00000" / leaf.name).write_bytes(leaf.read_bytes())
    computed = []
    run_of(tiny, folder, progress=lambda done, _total: computed.append(done))
    assert computed[0] == 18
    assert (folder / "atlas.nc").read_bytes() == (many.path / "atlas.nc").read_bytes()
    assert not (folder / "shards").exists()


def test_the_shards_below_a_damaged_node_are_computed_again(tiny, many, tmp_path):
    folder = tmp_path / "run"

    def stop(done, _total):
        if done == 17:
            raise KeyboardInterrupt

    with pytest.raises(hs.HeadscopeError, match="stopped"):
        run_of(tiny, folder, progress=stop)
    (node,) = folder.glob("shards/*/00008..00015-*")
    node.write_bytes(node.read_bytes()[:-1])
    done = []
    run_of(tiny, folder, progress=lambda count, _total: done.append(count))
    assert done == [9, *range(10, 21)]
    assert (folder / "atlas.nc").read_bytes() == (many.path / "atlas.nc").read_bytes()


def test_what_is_merged_is_found_by_one_list_of_its_folder(tmp_path, monkeypatch):
    listed = []

    def names(place):
        listed.append(place)
        return names_in(place)

    folder = ShardFiles(tmp_path)
    for number in range(FAN_IN):
        folder.put_shard(number, {"sums": np.array([number])})
    monkeypatch.setattr(shard_files, "names_in", names)
    states = folder.states(children((0, FAN_IN - 1)))
    assert [state["sums"].item() for state in states] == list(range(FAN_IN))
    assert len(listed) == 1
    folder.drop([(3, 3)])
    with pytest.raises(LostShardError, match=r"00003 .* has vanished"):
        list(folder.states(children((0, FAN_IN - 1))))
