"""Ask a tokenizer for the ids of text, words or ready tokens, and for its special tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from headscope.errors import ModelError, told_as

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


Ids = npt.NDArray[np.int64]
PROBES = ("the", "a", "1", ".")  # any text will do that gives at least one token


def unusable(tokenizer: Any, reason: str) -> ModelError:
    """The error for a tokenizer that fails on text."""
    return ModelError(
        f"{type(tokenizer).__name__} of {str(tokenizer.name_or_path)!r} cannot be used: {reason}; "
        "its files are damaged or do not fit each other: save it again"
    )


class UnknownToken(ValueError):
    """A ready token that the vocabulary does not hold."""


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """The special tokens that a tokenizer puts around one segment, and around two.

    single     ids before and after the content
    pair       ids before the first segment, between the two, and after the second
    separates  whether a separator token stands between two segments ([SEP]; none in GPT-2, Llama)
    """

    single: tuple[Ids, Ids]
    pair: tuple[Ids, Ids, Ids]
    separates: bool

    @property
    def room(self) -> tuple[int, int]:
        """How many special tokens one segment and two segments bring along."""
        return sum(map(len, self.single)), sum(map(len, self.pair))

    def wrap(self, first: Ids, second: Ids | None) -> tuple[Ids, npt.NDArray[np.bool_], Ids]:
        """Input ids, special mask and segment ids, all [token]; ids are 1 from behind the first
        token of what stands between two segments."""
        if second is None:
            parts = [self.single[0], first, self.single[1]]
        else:
            parts = [self.pair[0], first, self.pair[1], second, self.pair[2]]
        ids = np.concatenate(parts)  # [token]
        special, content = np.ones(len(ids), np.bool_), len(parts[0])
        special[content : content + len(first)] = False
        segments = np.zeros_like(ids)
        if second is not None:
            special[len(ids) - len(parts[4]) - len(second) : len(ids) - len(parts[4])] = False
            segments[content + len(first) + min(len(parts[2]), 1) :] = 1
        return ids, special, segments

    def unwrap(self, ids: Ids, separator: int | None) -> tuple[Ids, Ids | None]:
        """The one or two segments inside the frame; all ids where the frame does not fit them."""
        before, between, after = self.pair
        inner = _between(ids, before, after)
        if inner is not None and separator is not None and separator in inner:
            cut = int(np.argmax(inner == separator))
            behind = cut + len(between)
            if np.array_equal(inner[cut:behind], between):
                return inner[:cut], inner[behind:]
        inner = _between(ids, *self.single)
        return (ids if inner is None else inner), None


def _between(ids: Ids, before: Ids, after: Ids) -> Ids | None:
    end = len(ids) - len(after)
    if end < len(before):
        return None
    fits = np.array_equal(ids[: len(before)], before) and np.array_equal(ids[end:], after)
    return ids[len(before) : end] if fits else None


class TokenizerReader:
    """A fast tokenizer, called in the three ways that a corpus needs.

    raises  ModelError if the tokenizer is not a fast one: only those say which word each token
            came from
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ModelError(
                f"{type(tokenizer).__name__} is not a fast tokenizer, so it cannot say which word "
                "a token belongs to; wanted one with a tokenizer.json (use_fast=True)"
            )
        self.tokenizer = tokenizer
        self._ahead = dict[str | tuple[str, ...], Any]()
        self.separator: int | None = tokenizer.sep_token_id
        self.special = self._special_ids()
        self.frame = self._frame()
        self._spaced = self._needs_space()
        # A word mark, or a space of its own, is lost where words are read one by one.
        self.sees_spaces = not np.array_equal(self.text("the."), self.text("the ."))

    def read_ahead(self, texts: Sequence[str], lists: Sequence[Sequence[str]]) -> None:
        """Read in one call what `text` and `words` are asked for next; a call costs as much as a
        hundred tokens.

        texts  running texts
        lists  of words, none of them glued
        """
        self._ahead = {}
        spaced = [self._with_spaces(forms) for forms in lists if forms]
        for keys, split in ((texts, False), ([tuple(forms) for forms in spaced], True)):
            if keys:
                options = {"return_attention_mask": False, "return_token_type_ids": False}
                given = spaced if split else [*texts]
                read = self._call(given, is_split_into_words=split, **options)
                self._ahead |= zip(keys, read.encodings, strict=True)

    def text(self, text: str) -> Ids:
        """Ids [token] of running text, without special tokens."""
        ahead = self._ahead.get(text)
        return np.asarray(ahead.ids if ahead else self._call(text).input_ids, dtype=np.int64)

    def words(self, forms: Sequence[str], *, glued: Iterable[int] = ()) -> tuple[Ids, Ids]:
        """Ids [token] of words given one by one, and the word [token] that each came from.

        glued  0-based words without a space before them. It matters where the vocabulary
               has other tokens for a word after a space than for one without (GPT-2): there
               words get the space that they have in running text; elsewhere the tokenizer
               treats split words in its own way.
        """
        if not forms:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        spaced = self._with_spaces(forms, glued)
        read = self._ahead.get(tuple(spaced))
        read = read or self._call(spaced, is_split_into_words=True).encodings[0]
        return np.asarray(read.ids, dtype=np.int64), np.asarray(read.word_ids, dtype=np.int64)

    def _with_spaces(self, forms: Sequence[str], glued: Iterable[int] = ()) -> list[str]:
        if not self._spaced:
            return list(forms)
        bare = {0, *glued}
        return [f if i in bare else f" {f}" for i, f in enumerate(forms)]

    def running_words(self, forms: Sequence[str], *, glued: Iterable[int] = ()) -> tuple[Ids, Ids]:
        """Ids [token] of the text that the words make, and the word [token] each begins in.

        The ids are those of the running text. A token over several words ('.\"', "cannot" of
        "can" and "not") belongs to the first of them, so that others may have none.

        glued  0-based words without a space before them
        """
        if not forms:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        bare = {0, *glued}
        spaced = [form if i in bare else f" {form}" for i, form in enumerate(forms)]
        encoded = self._call("".join(spaced), return_offsets_mapping=True)
        word = np.repeat(np.arange(len(spaced)), [len(form) for form in spaced])  # [character]
        starts = np.asarray(encoded.offset_mapping, dtype=np.int64).reshape(-1, 2)[:, 0]  # [token]
        ids = np.asarray(encoded.input_ids, dtype=np.int64)
        return ids, word[np.minimum(starts, len(word) - 1)] if len(ids) else ids

    def tokens(self, tokens: Sequence[str]) -> Ids:
        """Ids [token] of ready tokens; UnknownToken names the first that is not known."""
        unknown = self.tokenizer.unk_token_id
        ids = cast("list[int | None]", self.tokenizer.convert_tokens_to_ids(list(tokens)))
        for token, number in zip(tokens, ids, strict=True):
            if number is None or (number == unknown and token != self.tokenizer.unk_token):
                raise UnknownToken(token)
        return np.asarray(ids, dtype=np.int64)

    def _call(self, *texts: Any, special: bool = False, **options: Any) -> Any:
        # verbose=False: a long text is no mistake here, it is cut into windows afterwards.
        with told_as(partial(unusable, self.tokenizer)):
            return self.tokenizer(*texts, add_special_tokens=special, verbose=False, **options)

    def _special_ids(self) -> Ids:
        """Ids that frame an input. [UNK] and [MASK] stand for content, unless they do both."""
        t = self.tokenizer
        framing = {t.cls_token_id, t.sep_token_id, t.bos_token_id, t.eos_token_id, t.pad_token_id}
        content = {t.unk_token_id, t.mask_token_id} - framing
        return np.asarray(sorted(set(t.all_special_ids) - content), dtype=np.int64)

    def _frame(self) -> SpecialTokens:
        # Some vocabularies hold none of the probes; the last resort is a word of their own.
        own = (str(self.tokenizer.decode([i])) for i in range(min(len(self.tokenizer), 1000)))
        for probe in chain(PROBES, own):
            if probe.strip() and len(self.text(probe)):
                one = self._parts(self._call(probe, special=True))
                two = self._parts(self._call(probe, probe, special=True))
                if len(one) == 2 and len(two) == 3:
                    more = sum(map(len, two)) > sum(map(len, one))
                    separates = self.separator is not None and more
                    return SpecialTokens((one[0], one[1]), (two[0], two[1], two[2]), separates)
        raise ModelError(
            f"{type(self.tokenizer).__name__} gives no tokens for {', '.join(PROBES)} or its own "
            "vocabulary; wanted a tokenizer that can read text"
        )

    @staticmethod
    def _parts(encoded: Any) -> list[Ids]:
        parts: list[list[int]] = [[]]
        last = None
        for token, segment in zip(encoded.input_ids, encoded.sequence_ids(0), strict=True):
            if segment is None:
                parts[-1].append(token)
            elif segment != last:
                parts.append([])
                last = segment
        return [np.asarray(part, dtype=np.int64) for part in parts]

    def _needs_space(self) -> bool:
        running = list(self._call("the the").input_ids)
        bare = list(self._call(["the", "the"], is_split_into_words=True).input_ids)
        spaced = list(self._call(["the", " the"], is_split_into_words=True).input_ids)
        return bare != running and spaced == running
