"""Published numbers and claims, held against runs."""

import headscope.analyses  # noqa: F401  # until core stands on nothing above it
