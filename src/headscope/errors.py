"""The errors that headscope raises on purpose, and the exit code of each.

Every message gives what was found, what was wanted and what to do, in one to three lines.

    HeadscopeError            exit code 1: the request was right, and failed
    ├── RunStopped            interrupted; finished shards are kept
    └── InputError            exit code 2: the request or the input is at fault
        ├── ModelError        a model that is unknown, unsafe or does not fit its tokenizer
        ├── CorpusError       a corpus that cannot be read as what it was said to be
        └── RunFolderError    a run folder that belongs to another spec, or cannot be written
            └── UnwrittenError    a place that refuses to be written, or has no space left (1)
"""


class HeadscopeError(Exception):
    """Any error that headscope raises on purpose; its text is meant for the user."""

    exit_code = 1


class RunStopped(HeadscopeError):
    """The run was interrupted; what is finished stays, and the same command goes on."""


class InputError(HeadscopeError):
    """The request or the input is at fault."""

    exit_code = 2


class ModelError(InputError):
    """A model that is unknown, unsafe, unsupported, or does not fit its tokenizer."""


class CorpusError(InputError):
    """A corpus that cannot be read as what it was said to be."""


class RunFolderError(InputError):
    """A run folder that belongs to another spec, or cannot be read or written."""


class UnwrittenError(RunFolderError):
    """A file or folder that cannot be written: the place refuses, or has no space left (code 1)."""
