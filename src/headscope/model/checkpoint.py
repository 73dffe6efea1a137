"""Load a checkpoint safely: its configuration, tokenizer and network.

Nothing here runs code that came with a checkpoint: pickled weights are refused unread, and one
request to the hub finds the commit of a name.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME
from transformers.utils import logging as transformers_logging
from transformers.utils.hub import cached_file

from headscope.corpus.tokenizer import unusable
from headscope.errors import ModelError, did_you_mean, memory_told, told_as
from headscope.model.doubts import loading_doubts
from headscope.model.placement import Placement
from headscope.model.request import WANTED, id_and_revision, place_of
from headscope.model.weights import (
    own_memory,
    refuse_not_finite,
    refuse_too_deep,
    weights_files,
    weights_sha256,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Of these one is in every folder of a tokenizer, whatever its kind.
TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "merges.txt", "*.tiktoken")
# A tokenizer that knows most of none of these is an empty one.
PROBES = (
    "The cat sat on the mat.",
    "Der Hund schläft.",
    "Кот сидит на окне.",
    "猫はいすの上です。",
    "고양이가 잔다",
    "القط نائم",
    "बिल्ली सोती है",
    "a b c d e",
    "A C G T K L M",
    "1 2 3 4 5",
)
# How transformers says what a tokenizer lacks.
_PACKAGE = re.compile(r"(?:requires the|need to install) ([\w-]+)")
FITS = "wanted a model that fits: --dtype bfloat16, --device-map auto, or quantised weights"
IN_CACHE = "in the cache, and the hub is out of reach"
MOST_NAMED = 8  # revisions in an error
MOST_UNKNOWN = 0.75  # ours: share of a probe; an empty tokenizer knows nothing of any


class Checkpoint:
    """A checkpoint that may be read: a local folder, or one commit of a repository on the hub.

    name     as the user gave it; of a page of the hub its id
    place    the folder, or the repository's name
    options  with which transformers' loaders read just that
    raises   ModelError: neither a folder with safetensors nor a repository that the hub knows

    Config, tokenizer and network are each read when they are asked for; what a loader complains of
    is a ModelError as well.
    """

    def __init__(self, name: str, *, revision: str | None, trust_remote_code: bool) -> None:
        name, revision = id_and_revision(name, revision)
        self.name, self.place = name, place_of(name)
        if sys.flags.optimize > 1:
            raise ModelError(
                "found Python without docstrings, which transformers reads; leave out "
                "-OO, or PYTHONOPTIMIZE=2"
            )
        self.options = {"revision": revision, "trust_remote_code": trust_remote_code}
        self._unread: set[str] = set()  # names of tensors
        self._files: list[tuple[int, ...]] = []
        if not Path(self.place).is_dir():
            self.options |= pinned(name, self.place, revision)

    @cached_property
    def config(self) -> Any:
        """Its configuration; a loader may change it before `network` is read."""
        return attempt(
            self.name, transformers.AutoConfig.from_pretrained, self.place, **self.options
        )

    @cached_property
    def tokenizer(self) -> Any:
        """Its tokenizer; ModelError for a folder without: transformers would make an empty one."""
        folder = Path(self.place)
        if folder.is_dir() and not any(any(folder.glob(name)) for name in TOKENIZER_FILES):
            raise ModelError(
                f"{self.name!r} has no tokenizer files (model.save_pretrained writes none); wanted "
                "those that the model was trained with: tokenizer.save_pretrained(FOLDER)"
            )
        try:
            return attempt(
                self.name, transformers.AutoTokenizer.from_pretrained, self.place, **self.options
            )
        except ModelError as error:
            lacks = (
                _PACKAGE.search(str(error)) if isinstance(error.__cause__, ImportError) else None
            )
            if lacks is None:
                raise
            raise ModelError(
                f"{self.name!r}: its tokenizer needs the package {lacks[1].lower()}, which is not "
                f"here; pip install {lacks[1].lower()}"
            ) from error

    def network(self, auto: Any, dtype: str, where: Placement, **more: Any) -> tuple[Any, set[str]]:
        """The network by one of transformers' Auto classes, and the tensors that its file lacks.

        It is where it is wanted, in evaluation mode.
        """
        self._check_weights()
        self._files = self._states()
        placed = where.options(self.config)
        network, report = attempt(
            self.name,
            auto.from_pretrained,
            self.place,
            config=self.config,
            use_safetensors=True,
            dtype=dtype_of(dtype),
            attn_implementation="eager",
            output_loading_info=True,
            **self.options,
            **placed,
            **more,
        )
        refuse_not_finite(self.name, network)
        if not placed:
            with memory_told(FITS):
                network.to(torch.device(where.device))
        with memory_told(FITS):
            own_memory(network)
        self._unread = set(report["unexpected_keys"])
        return network.eval(), set(report["missing_keys"])

    def doubts(self, network: PreTrainedModel) -> tuple[str, ...]:
        """What of the checkpoint was not read into the network, in words."""
        own_code = bool(self.options["trust_remote_code"])
        return tuple(loading_doubts(network, self._unread, own_code=own_code))

    def weights_sha256(self, network: PreTrainedModel) -> str:
        """Hash of the files that the network was read from; of their hashes, if several.

        raises  ModelError where they changed since it was read
        """
        digest = weights_sha256(self.place, network)
        if self._states() != self._files:
            raise ModelError(
                f"the weights of {self.name!r} changed while they were read (is it being trained, "
                "or copied?); wanted files that stay: copy the folder, or try again"
            )
        return digest

    def _states(self) -> list[tuple[int, ...]]:
        """What tells that a weights file is another one; none of the hub's, which do not change."""
        if not (folder := Path(self.place)).is_dir():
            return []
        states = (os.stat(file) for file in weights_files(folder, self.config) if file.is_file())
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in states]

    def _check_weights(self) -> None:
        """Raises ModelError where the loader would read anything but safetensors of its own."""
        folder = Path(self.place)
        named = getattr(self.config, "transformers_weights", None) or SAFE_WEIGHTS_INDEX_NAME
        if not folder.is_dir() and named.endswith(".index.json"):
            # Of the hub: the index is read before what it names.
            where = attempt(
                self.name,
                cached_file,
                self.place,
                named,
                _raise_exceptions_for_missing_entries=False,
                _raise_exceptions_for_connection_errors=False,
                **{k: v for k, v in self.options.items() if k != "trust_remote_code"},
            )
            if where is None:
                return
            folder = Path(where).parent
        refuse_too_deep(self.name, weights_files(folder, self.config), self.config)

    @property
    def commit(self) -> str:
        """On the hub; "" for a local folder."""
        return str(getattr(self.config, "_commit_hash", None) or "")


def pinned(name: str, repository: str, revision: str | None) -> dict[str, Any]:
    """Options that load one commit of a hub repository; from the cache if the hub is out of reach.

    Requested once and first: the loaders by themselves retry an unreachable hub for half a minute.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import (
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return {"revision": HfApi().model_info(repository, revision=revision, timeout=10).sha}
    except HFValidationError as error:
        raise ModelError(
            f"{name!r} is no folder here, and no id of the hub, which has the form owner/name\n"
            f"{WANTED}"
        ) from error
    except RevisionNotFoundError as error:
        raise no_revision(name, str(revision), *revisions_of(repository)) from error
    except RepositoryNotFoundError as error:
        raise cannot_load(name, str(error).strip().splitlines()[0][:300]) from error
    except Exception as error:  # whatever keeps the hub away, what was fetched before can be used
        stored = try_to_load_from_cache(repository, "config.json", revision=revision)
        known = () if isinstance(stored, str) else revisions_in_cache(repository)
        if known and revision and revision not in known:
            raise no_revision(name, revision, known, IN_CACHE) from error
        return {"local_files_only": True}


def revisions_of(repository: str) -> tuple[list[str], str]:
    """Branches and tags of a repository on the hub, or in the cache if the hub is out of reach;
    and which of these, in words.
    """
    from huggingface_hub import HfApi

    try:
        refs = HfApi().list_repo_refs(repository)
    except Exception:
        return revisions_in_cache(repository), IN_CACHE
    return [one.name for one in (*refs.branches, *refs.tags)], "on the hub"


def revisions_in_cache(repository: str) -> list[str]:
    """Branches, tags and commits of a repository of the hub that were fetched before."""
    from huggingface_hub import constants, scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        stored = scan_cache_dir(constants.HF_HUB_CACHE).repos
    except (CacheNotFound, OSError):
        return []
    revisions = {
        revision
        for one in stored
        if (one.repo_type, one.repo_id) == ("model", repository)
        for commit in one.revisions
        for revision in (*commit.refs, commit.commit_hash)
    }
    return sorted(revisions, key=lambda one: (len(one), one))  # commits, which are long, last


def no_revision(name: str, revision: str, known: Sequence[str], where: str) -> ModelError:
    """The error for a revision that a repository does not have; `known` as `revisions_of`."""
    some = ", ".join(known[:MOST_NAMED]) + (", …" if len(known) > MOST_NAMED else "")
    meant = did_you_mean(revision, known) or (";" if known else "")
    there = f"{meant} there are {some}" if some else ""
    return ModelError(
        f"cannot load {name!r}: no revision {revision!r} of it is {where}{there}\n"
        "wanted one of its branches, tags or commits"
    )


def unknown_share(tokenizer: Any) -> float:
    """Share of a text that the tokenizer does not know, in the script that it knows best."""
    if tokenizer.unk_token_id is None:
        return 0.0
    texts = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in PROBES)
    return min((ids.count(tokenizer.unk_token_id) / len(ids) for ids in texts if ids), default=1.0)


def check_tokenizer(name: str, tokenizer: Any, rows: int) -> None:
    """Raises ModelError unless a tokenizer knows text and fits the embeddings."""
    if (size := len(tokenizer)) > rows:
        raise ModelError(
            f"{name!r}: the tokenizer has {size} tokens but the model embeds only {rows}; "
            "they do not belong together: give the tokenizer that the model was trained with"
        )
    with told_as(partial(unusable, tokenizer)):
        unknown = unknown_share(tokenizer)
    if unknown > MOST_UNKNOWN:
        raise ModelError(
            f"{name!r}: the tokenizer has {size} tokens and knows none of "
            f"several scripts ({unknown:.0%} of a probe text is {tokenizer.unk_token}); "
            "wanted the tokenizer that the model was trained with, all of its files"
        )


def attempt(name: str, function: Any, *args: Any, **options: Any) -> Any:
    """Calls a loader; what it raises becomes a ModelError of at most three lines."""
    with told_as(partial(cannot_load, name)), memory_told(FITS):
        return function(*args, **options)


def cannot_load(name: str, reason: str) -> ModelError:
    """A loader's complaint, and what was wanted."""
    return ModelError(f"cannot load {name!r}: {reason}\n{WANTED}")


def dtype_of(name: str) -> torch.dtype | str:
    """The torch type of a name, "auto" as it is; ModelError for other names."""
    names = ("bfloat16", "float16", "float32", "float64")
    known: dict[str, torch.dtype] = {one: getattr(torch, one) for one in names}
    if name not in {"auto", *known}:
        raise ModelError(f"no dtype {name!r}; there are auto, {', '.join(known)}")
    return known.get(name, name)


class quietly:
    """Keeps transformers' progress bars and load reports off the terminal while loading."""

    def __enter__(self) -> None:
        self.level = transformers_logging.get_verbosity()
        self.bars = transformers_logging.is_progress_bar_enabled()
        transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
        transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]

    def __exit__(self, *_: object) -> None:
        transformers_logging.set_verbosity(self.level)
        if self.bars:
            transformers_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
