"""What strangers do to a run folder: kinds of hostility, each drawn by a seed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from trials.stranger import SECRET, Stranger

PAGE = '<!doctype html><title>x</title><img src=SINK><body onload="alert(2)"><script>{}</script>'
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(3)"><script>{}</script></svg>'
OWN = ("report.html", "index.html", "heads.html", "views/01.html", "tables/heads.html")
OTHERS = ("own.html", "page.js", "figures/own.svg", "figures/heads.svg", "assets/a/b.html")
UP = ("../", "..%2f", "%2e%2e/", "..\\", "./../", "%2e%2e%2f", "x/../../")
NUMBERS = (float("nan"), float("inf"), -1.0, 1e308, -1e-308, 2.0**63)
SHARES = 0.01, 0.03, 0.1, 0.5  # of what is changed: where all is, the whole is refused
OF_JSON = ("", "x" * 100_000, -1, 1e308, 2**80, True, None, [], {}, [[]] * 9, {"x": {"x": {}}})


# --- files ----------------------------------------------------------------------------------------


def pages(one: Stranger) -> None:
    """Pages and pictures with scripts, under names that the run has and others."""
    names = one.draws.sample((*OWN, *OTHERS), 6)
    for name in names:
        one.plant(name, PICTURE if name.endswith("svg") else PAGE)
    one.listed(*names)
    one.what = " ".join(names)


def names(one: Stranger) -> None:
    """Files whose names are markup."""
    for _ in range(4):
        name = one.hostile().replace("/", "").replace("\0", "")[:80] or "x"
        one.plant(f"{one.draws.choice(['tables', 'figures', 'views'])}/{name}.html", PAGE)
    one.listed(*one.addresses)
    one.what = f"{one.addresses}"[:300]


def linked_files(one: Stranger) -> None:
    """Links, and hard links, to files outside."""
    link = one.draws.choice([os.symlink, os.link])
    addresses = ("tables/secret.csv", "figures/secret.svg", "views/01.html", "report.html", "x.csv")
    for name in addresses:
        (one.run / name).parent.mkdir(exist_ok=True)
        (one.run / name).unlink(missing_ok=True)
        link(one.outside / "secret.csv", one.run / name)
    one.addresses += addresses
    one.listed(*addresses)
    one.what = link.__name__


def linked_folders(one: Stranger) -> None:
    """Folders of the run that are links to others."""
    some = one.draws.sample(("tables", "figures", "views", "processes", "beyond", "shards"), 4)
    for name in some:
        shutil.rmtree(one.run / name, ignore_errors=True)
        (one.run / name).symlink_to(one.draws.choice([one.outside, Path("../outside")]))
        one.addresses += [f"{name}/{file.name}" for file in one.outside.iterdir()]
    one.listed(*one.addresses)
    one.what = " ".join(some)


def linked_results(one: Stranger) -> None:
    """The manifest or the results lie elsewhere."""
    name = one.draws.choice(["atlas.nc", "manifest.json", "."])
    if name == ".":
        shutil.move(one.run, one.outside / "run")
        one.run.mkdir()
        for file in (one.outside / "run").iterdir():
            (one.run / file.name).symlink_to(file)
    else:
        shutil.move(one.run / name, one.outside / name)
        (one.run / name).symlink_to(one.outside / name)
    one.what = name


def no_files(one: Stranger) -> None:
    """Pipes, sockets and folders in place of files."""
    name = one.draws.choice(["atlas.nc", "manifest.json", ".written", "report.html"])
    file = one.run / name
    file.unlink(missing_ok=True)
    kind = one.draws.choice(["pipe", "socket", "folder", "device"])
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "socket":
        at = os.open(one.run, os.O_RDONLY)  # an address of a socket is short
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(f"/proc/self/fd/{at}/{name}")
        os.close(at)
    elif kind == "folder":
        (file / "deep").mkdir(parents=True)
    else:
        file.symlink_to("/dev/zero")
    one.addresses.append(name)
    one.what = f"{name}, a {kind}"


def lists(one: Stranger) -> None:
    """A list of files that names others."""
    outside = str(one.outside / "secret.csv")
    one.addresses += ["../outside/secret.csv", outside, outside.lstrip("/"), "a\0b", "x" * 5000]
    some = [*one.addresses, "..", ".", "", "/", "atlas.nc/x", one.hostile()]
    if sealed := one.draws.random() < 0.5:
        one.listed(*some)
    else:
        (one.run / ".written").write_bytes("\n".join(some).encode("utf-8", "replace"))
    one.addresses = [name.replace("\0", "%00") for name in one.addresses]
    one.what = f"sealed: {sealed}"


def addresses(one: Stranger) -> None:
    """Addresses that lead out of the run."""
    for up in UP:
        for depth in (1, 2, 3, 12):
            one.addresses.append(f"{up * depth}outside/secret.csv")
            one.addresses.append(f"tables/{up * depth}{str(one.outside).lstrip('/')}/secret.csv")
    one.addresses += [str(one.outside / "secret.csv"), "manifest.json", "atlas.nc", ".written"]
    one.what = f"{len(one.addresses)} addresses"


# --- the manifest ---------------------------------------------------------------------------------


def leaves(part: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, Any, tuple[Any, ...]]]:
    """(container, key, path) of all that is neither a list nor an object."""
    for key in part if isinstance(part, dict) else range(len(part)):
        if isinstance(part[key], dict | list) and part[key]:
            yield from leaves(part[key], (*path, key))
        else:
            yield part, key, (*path, key)


def manifest_texts(one: Stranger) -> None:
    """Hostile strings for the texts of the manifest."""

    def change(manifest: dict[str, Any]) -> None:
        texts = [each for each in leaves(manifest) if isinstance(each[0][each[1]], str)]
        texts = [each for each in texts if each[2] != ("results_sha256",)]
        for part, key, _ in one.draws.sample(texts, len(texts) * 3 // 4):
            part[key] = one.hostile()
        manifest["model"]["name"] = one.hostile()
        manifest["notes"] = [one.hostile() for _ in range(5)]

    one.manifest(change)
    one.what = "three of four texts"


def manifest_kinds(one: Stranger) -> None:
    """Parts of the manifest that are of another kind, or of no size."""
    paths = list[str]()

    def change(manifest: dict[str, Any]) -> None:
        every = [each for each in leaves(manifest) if each[2] != ("results_sha256",)]
        for part, key, path in one.draws.sample(every, 4):
            part[key] = one.draws.choice(OF_JSON)
            paths.append(f"{path} is {str(part[key])[:20]!r}")

    one.manifest(change)
    one.what = "; ".join(paths)


# --- the results ----------------------------------------------------------------------------------


def arrays(file: h5py.File, kinds: str) -> list[h5py.Dataset]:
    """All arrays of these kinds of numpy, but for axes without labels, which store nothing."""
    every = list[h5py.Dataset]()
    file.visititems(lambda _, each: every.append(each) if hasattr(each, "dtype") else None)
    of_kind = (each for each in every if each.dtype.kind in kinds and each.size)
    return [each for each in of_kind if each.id.get_offset()]


def result_texts(one: Stranger) -> None:
    """Hostile strings for attributes of results, and for names of relations and tokens."""

    def change(file: h5py.File) -> None:
        groups, share = [file], one.draws.choice(SHARES)
        file.visititems(lambda _, each: groups.append(each))
        for group in groups:
            for name, value in list(group.attrs.items()):
                told = isinstance(value, str) and name not in ("CLASS", "NAME", "coordinates")
                if told and one.draws.random() < share:
                    group.attrs[name] = one.hostile().replace("\0", "")
        for words in arrays(file, "O"):
            if one.draws.random() < share:
                count = max(1, int(share * words.size))
                values = words.asstr()[...].astype(object)
                for at in one.draws.sample(range(words.size), count):
                    values.flat[at] = f"{one.hostile()} {at}".replace("\0", "")
                words[...] = values
        one.what = f"{share:.0%} of attributes and names"

    one.results(change)


def numbers(one: Stranger) -> None:
    """Numbers that are none, or out of all bounds."""

    def change(file: h5py.File) -> None:
        share = one.draws.choice(SHARES)
        one.what = f"in {share:.0%} of the arrays"
        for array in arrays(file, "fi"):
            if "NAME" in array.attrs or one.draws.random() > share:
                continue
            values = array[...]
            mask = np.asarray(np.random.default_rng(one.draws.randrange(99)).random(values.shape))
            some = one.draws.choice(NUMBERS if values.dtype.kind == "f" else (-1, 2**31 - 1))
            array[...] = np.where(mask < one.draws.choice([0.05, 0.5, 1.1]), some, values)

    one.results(change)


def dimensions(one: Stranger) -> None:
    """Arrays, axes and counts that do not fit each other, or are not there."""
    done = list[str]()

    def change(file: h5py.File) -> None:
        for array in one.draws.sample(arrays(file, "fiO"), one.draws.randint(1, 3)):
            name, shape = array.name, array.shape
            way = one.draws.choice(["gone", "longer", "flat", "no axes", "texts", "renamed"])
            done.append(f"{name} {way}")
            if way == "renamed":
                file.move(name, f"{name}_{one.hostile().replace('/', '').replace(chr(0), '')[:20]}")
                continue
            dims = [axis.values() for axis in array.dims]
            del file[name]
            if way == "gone":
                continue
            longer = tuple(size + one.draws.choice([1, 7]) for size in shape)
            shape = {"longer": longer, "flat": shape[:-1]}.get(way, shape)
            values = np.ones(shape) if way != "texts" else np.full(shape, "x", object)
            kind = None if way != "texts" else h5py.string_dtype()
            made = file.create_dataset(name, data=values, dtype=kind)
            for axis, scales in zip(made.dims, dims, strict=False):
                if scales and way != "no axes" and scales[0].name != name:
                    axis.attach_scale(scales[0])
        if one.draws.random() < 0.2:
            file.attrs[one.draws.choice(["layers", "heads"])] = one.draws.choice([0, 1, 99, 2**40])

    one.results(change)
    one.what = "; ".join(done)


def objects(one: Stranger) -> None:
    """Links, circles, plug-ins and other files in HDF5."""
    from run.test_hostile_folder import HOSTILE

    one.what = one.draws.choice(list(HOSTILE))
    outside = Path.cwd()
    os.chdir(one.run)  # names in HDF5 are looked for there
    try:
        (one.outside / "a.csv").write_text(SECRET)
        one.results(HOSTILE[one.what][0])
    finally:
        os.chdir(outside)


def bombs(one: Stranger) -> None:
    """Little that unpacks to much: results, shards, a manifest."""
    one.what = one.draws.choice(["packed", "shards", "deep manifest", "long manifest", "torn"])
    zeros = bytes(1 << 24)
    packer = zlib.compressobj(9)
    packed = b"".join([*(packer.compress(zeros) for _ in range(64)), packer.flush()])
    if one.what == "packed":

        def change(file: h5py.File) -> None:
            array = one.draws.choice([each for each in arrays(file, "f") if each.ndim == 2])
            name, shape, scales = array.name, array.shape, [axis[0] for axis in array.dims]
            del file[name]
            made = file.create_dataset(name, shape, "f8", chunks=shape, compression="gzip")
            made.id.write_direct_chunk((0,) * len(shape), packed)
            for axis, scale in zip(made.dims, scales, strict=True):
                axis.attach_scale(scale)

        one.results(change)
    elif one.what == "shards":
        for file in (one.run / "shards").rglob("*.shard"):
            file.write_bytes(packed)
        unfinished(one)
    elif one.what == "torn":
        size = (one.run / "atlas.nc").stat().st_size
        os.truncate(one.run / "atlas.nc", one.draws.randrange(size))
        one.reseal()
    else:
        deep = "[" * 200_000 if one.what == "deep manifest" else '{"model": "' + "x" * (1 << 26)
        (one.run / "manifest.json").write_text(deep)


def unfinished(one: Stranger) -> None:
    """Without results the pages say that the run is not finished."""
    (one.run / "atlas.nc").unlink()
    one.manifest(lambda manifest: manifest.pop("results_sha256"))


def foreign_shards(one: Stranger) -> None:
    """An unfinished run with shards of another, and with records of processes that say anything."""
    for file in sorted((one.run / "shards").rglob("*.shard")):
        content = bytearray(file.read_bytes())
        content[one.draws.randrange(len(content))] ^= 255
        file.write_bytes(content)
        shutil.copy(file, file.with_name(f"{one.draws.randrange(99):05d}-{'0' * 32}.shard"))
    (one.run / "shards/00000/00000..00099-x.shard").symlink_to(one.outside / "00000-x.shard")
    place = one.run / "processes"
    place.mkdir(exist_ok=True)
    words = {key: one.hostile() for key in ("name", "host", "processor", "state", "doing", "error")}
    (place / "001-of-002.a.1.json").write_text(json.dumps({**words, "pid": 1, "shards": 2**70}))
    (place / "002-of-002.a.1.json").symlink_to(one.outside / "a.json")
    os.mkfifo(place / "003-of-003.a.1.json")
    one.addresses += ["shards/00000/00000..00099-x.shard", "processes/002-of-002.a.1.json"]
    if one.draws.random() < 0.7:
        unfinished(one)
    one.what = "shards and records"


def commands(one: Stranger) -> None:
    """All shards are there, and the command that would finish the run leads elsewhere."""
    elsewhere = one.sink.removeprefix("http").rstrip("/")
    ways = (
        f"--engine dask --scheduler=tcp{elsewhere}",
        f"--overwrite -o {one.outside}",
        "--trust-remote-code",
        "--annotate spacy:en_core_web_sm",
    )
    one.what = one.draws.choice(ways)
    unfinished(one)
    words = f"headscope atlas {one.sound.parent / 'model'} --demo --limit 5 {one.what}"
    one.manifest(lambda manifest: manifest.__setitem__("command", words))


FILES = pages, names, linked_files, linked_folders, linked_results, no_files, lists, addresses
MANIFEST = manifest_texts, manifest_kinds, commands
RESULTS = result_texts, numbers, dimensions, objects, bombs, foreign_shards
KINDS = {one.__name__.replace("_", " "): one for one in (*FILES, *MANIFEST, *RESULTS)}
