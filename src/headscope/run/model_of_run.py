"""A finished run, and the model that it read: loaded again, and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from headscope.errors import InputError, ModelError
from headscope.model.request import Stack
from headscope.tasks.task_request import Loading

if TYPE_CHECKING:
    from headscope.model.model import Model
    from headscope.run.store import Run


@dataclass(frozen=True)
class ModelOfRun:
    """The model of a finished run.

    manifest   of the run
    place      its folder, or what stands for it in words
    without    what to do where the model is gone
    """

    manifest: Mapping[str, Any]
    place: str
    without: ClassVar[str] = "name where that model is now with --model"

    @classmethod
    def of(cls, run: Run) -> ModelOfRun:
        """That of a run; InputError for one without a manifest."""
        if not run.manifest:
            raise InputError(f"{run.unproven}; wanted a whole run folder: run atlas again")
        return cls(run.manifest, str(run.path or "the run"))

    @property
    def model(self) -> Mapping[str, Any]:
        """The entry of the model in the manifest."""
        entry: Mapping[str, Any] = self.manifest["model"]
        return entry

    @property
    def digest(self) -> str:
        """What tells its rules from those of another run."""
        return str(self.manifest.get("results_sha256") or self.manifest["fingerprint"])

    def loading(self, loading: Loading) -> Loading:
        """How its model is loaded: by the same revision, unless another is wanted."""
        return replace(loading, revision=loading.revision or self.model["revision"] or None)

    def stack_with(self, wish: Stack | None) -> Stack | None:
        """The stack of its model that it read, where that is the decoder beside an encoder.

        raises  InputError where another one is wanted
        """
        if wish not in (None, own := str(self.model["stack"])):
            raise InputError(
                f"{self.place} read the {own}; wanted no --stack, or a run of the {wish}"
            )
        return "decoder" if "encoder_reads" in self.model else None

    @contextmanager
    def loading_its_model(self) -> Iterator[None]:
        """Inside the context a ModelError says whose model it is: it may be gone."""
        try:
            yield
        except ModelError as error:
            raise ModelError(
                f"{self.place} is a run of {self.model['name']!r}: {error}\n{self.without}"
            ) from error

    def refuse_other(self, model: Model) -> None:
        """Raise InputError for a model whose weights are not those that the run read."""
        if model.sha256 != self.model["sha256"]:
            raise InputError(
                f"{self.place} is a run of {self.model['name']}, and {model.name} has other "
                "weights now; wanted those that the run read: make the run again, or name the "
                "model with --revision"
            )

    def has_read(self, corpus: Mapping[str, Any]) -> str:
        """Whether the run may have read inputs of this corpus: "possible", "no", "unknown".

        corpus  as `Corpus.describe`
        """
        own, other = (_sources(one) for one in (self.manifest["corpus"], corpus))
        if own & other:
            return "possible"
        return "no" if all(kind == "file" for kind, _ in own | other) and own else "unknown"


def _sources(corpus: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Kind and digest of what a corpus was read from; where no digest is known, its name."""
    files = corpus.get("files") or ()
    known = {("file", str(one["sha256"])) for one in files if "sha256" in one}
    named = {("name", str(one.get("name"))) for one in files if "sha256" not in one}
    memory = {("memory", str(corpus["sha256"]))} if not files and "sha256" in corpus else set()
    return known | named | memory
