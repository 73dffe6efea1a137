"""Get token ids of text, words or ready tokens from a tokenizer, and its special tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, partial
from itertools import chain, pairwise
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
        "its files are damaged or do not belong together: save it again"
    )


class UnknownToken(ValueError):
    """A ready token that is not in the vocabulary."""


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
        """Number of special tokens around one segment, and around two."""
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
        """The one or two segments without special tokens; all ids where these do not match."""
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
    """A tokenizer with the three kinds of calls that a corpus needs.

    target  text is what a decoder reads, which some tokenizers cut otherwise (Marian)

    A fast tokenizer says which word each token came from. What transformers runs in Python (ESM,
    Marian, ByT5 …) does not: there each word is read by itself, and running text is laid against
    that, see `word_begins`.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, *, target: bool = False) -> None:
        self.tokenizer = tokenizer
        self._names = ("text_target", "text_pair_target") if target else ("text", "text_pair")
        self._ahead = dict[str | tuple[str, ...], Any]()
        self.separator: int | None = tokenizer.sep_token_id
        self.special = self._special_ids()
        self.frame = self._frame()
        self._spaced = self._needs_space()
        # A word mark, or a space of its own, is lost where words are read one by one.
        self.sees_spaces = not np.array_equal(self.text("the."), self.text("the ."))

    @cached_property
    def ids(self) -> int:
        """One more than the largest id of a token. Vocabularies may have holes, and M2M100 frames
        an input with names of languages that stand behind all that it counts."""
        framing = np.concatenate([*self.frame.single, *self.frame.pair]).tolist()
        numbers: Iterable[int] = chain(self.tokenizer.get_vocab().values(), framing)
        return 1 + max(numbers, default=0)

    def read_ahead(self, texts: Sequence[str], lists: Sequence[Sequence[str]]) -> None:
        """Tokenize in one call the next arguments of `text` and `words`; a call costs as much as a
        hundred tokens.

        texts  running texts
        lists  of words, none of them glued
        """
        self._ahead = {}
        if not self.tokenizer.is_fast:
            return  # in Python a call costs little beside its tokens
        spaced = [self._with_spaces(forms) for forms in lists if forms]
        for keys, split in ((texts, False), ([tuple(forms) for forms in spaced], True)):
            if keys:
                options = {"return_attention_mask": False, "return_token_type_ids": False}
                inputs = spaced if split else [*texts]
                read = self._call(inputs, is_split_into_words=split, **options)
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
        return self._one_by_one(self._with_spaces(forms, glued))

    def _one_by_one(self, forms: Sequence[str]) -> tuple[Ids, Ids]:
        if not self.tokenizer.is_fast:
            each = [np.asarray(ids, np.int64) for ids in self._call(list(forms)).input_ids]
            return np.concatenate(each), np.repeat(np.arange(len(each)), [len(ids) for ids in each])
        read = self._ahead.get(tuple(forms))
        read = read or self._call(forms, is_split_into_words=True).encodings[0]
        return np.asarray(read.ids, dtype=np.int64), np.asarray(read.word_ids, dtype=np.int64)

    def _with_spaces(self, forms: Sequence[str], glued: Iterable[int] = ()) -> list[str]:
        if not self._spaced:
            return list(forms)
        bare = {0, *glued}
        return [f if i in bare else f" {f}" for i, f in enumerate(forms)]

    def running_words(self, forms: Sequence[str], *, glued: Iterable[int] = ()) -> tuple[Ids, Ids]:
        """Ids [token] of the words joined to text, and the word [token] in which each token begins.

        The ids are those of the running text. A token over several words ('.\"', "cannot" of
        "can" and "not") belongs to the first of them, so that others may have none.

        glued  0-based words without a space before them
        """
        if not forms:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        bare = {0, *glued}
        spaced = [form if i in bare else f" {form}" for i, form in enumerate(forms)]
        if not self.tokenizer.is_fast:
            return self._laid_against(forms, bare, self.text("".join(spaced)))
        encoded = self._call("".join(spaced), return_offsets_mapping=True)
        word = np.repeat(np.arange(len(spaced)), [len(form) for form in spaced])  # [character]
        starts = np.asarray(encoded.offset_mapping, dtype=np.int64).reshape(-1, 2)[:, 0]  # [token]
        ids = np.asarray(encoded.input_ids, dtype=np.int64)
        return ids, word[np.minimum(starts, len(word) - 1)] if len(ids) else ids

    def _laid_against(self, forms: Sequence[str], bare: set[int], ids: Ids) -> tuple[Ids, Ids]:
        """`running_words` for a tokenizer that returns no offsets.

        bare  words without a space before them
        ids   [token] of the running text
        """
        alone, word = self.words(forms, glued=bare)
        if np.array_equal(ids, alone):
            return ids, word
        # Between two spaces little can be mistaken, if the text is cut there as it is whole.
        borders = [0, *(i for i in range(len(forms)) if i not in bare), len(forms)]
        runs = [range(start, stop) for start, stop in pairwise(borders)]
        read, run = self.words(["".join(forms[i] for i in one) for one in runs])
        if not np.array_equal(ids, read):
            runs, run = [range(len(forms))], np.zeros_like(ids)
        spell = self.tokenizer.convert_ids_to_tokens
        parts = [
            word_begins(spell(ids[run == at].tolist()), spell(alone[own].tolist()), word[own])
            for at, one in enumerate(runs)
            for own in [(word >= one.start) & (word < one.stop)]
        ]
        return ids, np.concatenate(parts)

    def tokens(self, tokens: Sequence[str]) -> Ids:
        """Ids [token] of ready tokens; UnknownToken names the first unknown one."""
        unknown = self.tokenizer.unk_token_id
        ids = cast("list[int | None]", self.tokenizer.convert_tokens_to_ids(list(tokens)))
        for token, number in zip(tokens, ids, strict=True):
            if number is None or (number == unknown and token != self.tokenizer.unk_token):
                raise UnknownToken(token)
        return np.asarray(ids, dtype=np.int64)

    def _call(self, *texts: Any, special: bool = False, **options: Any) -> Any:
        # verbose=False: a long text is no mistake here, it is cut into windows afterwards.
        with told_as(partial(unusable, self.tokenizer)):
            return self.tokenizer(
                **dict(zip(self._names, texts, strict=False)),
                add_special_tokens=special,
                verbose=False,
                **options,
            )

    def _special_ids(self) -> Ids:
        """Ids that frame an input. [UNK] and [MASK] stand for content, unless they do both."""
        t = self.tokenizer
        framing = {t.cls_token_id, t.sep_token_id, t.bos_token_id, t.eos_token_id, t.pad_token_id}
        content = {t.unk_token_id, t.mask_token_id} - framing
        return np.asarray(sorted(set(t.all_special_ids) - content), dtype=np.int64)

    def _frame(self) -> SpecialTokens:
        # Some vocabularies hold none of the probes; the last resort is a word of their own.
        own = (str(self.tokenizer.decode([i])) for i in range(min(len(self.tokenizer), 1000)))
        for probe in filter(str.strip, chain(PROBES, own)):
            content = self.text(probe)
            if not len(content) or np.isin(content, self.special).any():
                continue
            one = _around(self._call(probe, special=True).input_ids, content.tolist(), 1)
            two = _around(self._call(probe, probe, special=True).input_ids, content.tolist(), 2)
            if len(one) == 2 and len(two) == 3:
                more = sum(map(len, two)) > sum(map(len, one))
                separates = self.separator is not None and more
                return SpecialTokens((one[0], one[1]), (two[0], two[1], two[2]), separates)
        raise ModelError(
            f"{type(self.tokenizer).__name__} gives no tokens for {', '.join(PROBES)} or its own "
            "vocabulary; wanted a tokenizer that can read text"
        )

    def _needs_space(self) -> bool:
        running = self.text("the the").tolist()
        bare, spaced = (self._one_by_one(["the", word])[0].tolist() for word in ("the", " the"))
        return bool(bare != running and spaced == running)


def _around(ids: list[int], content: list[int], copies: int) -> list[Ids]:
    """The tokens before, between and after copies of the content; fewer parts if one is missing."""
    parts, start, size = list[list[int]](), 0, len(content)
    for _ in range(copies):
        for at in range(start, len(ids) - size + 1):
            if ids[at : at + size] == content:
                parts.append(ids[start:at])
                start = at + size
                break
    return [np.asarray(part, dtype=np.int64) for part in [*parts, ids[start:]]]


def word_begins(running: Sequence[str], alone: Sequence[str], word: Ids) -> Ids:
    """The word [token] in which each token of a running text begins, by the tokens' letters.

    running  [token] tokens of the text, as the vocabulary spells them
    alone    [piece] tokens of its words, each read by itself
    word     [piece] the word that each of those is of

    Both are one tokenizer's spelling of the same letters: they differ in marks of spaces, and in
    where they are cut. A token none of whose letters is met again is of the word that follows
    what stands before it.
    """
    # WordPiece's sign stands within the letters, where it would part what is one.
    running, alone = ([name.removeprefix("##") or name for name in one] for one in (running, alone))
    begins = np.cumsum([0, *map(len, running)])  # [token + 1] places in the letters of `running`
    letters = np.repeat(word, [len(piece) for piece in alone])  # [letter of `alone`]
    met = np.full(begins[-1], -1, dtype=np.int64)  # [letter of `running`] its place in `alone`
    matcher = SequenceMatcher(None, "".join(running), "".join(alone), autojunk=False)
    for here, there, size in matcher.get_matching_blocks():
        met[here : here + size] = np.arange(there, there + size)
    places, following = np.empty(len(running), dtype=np.int64), 0
    for token in range(len(running)):
        own = met[begins[token] : begins[token + 1]]
        own = own[own >= 0]
        places[token] = own[0] if len(own) else min(following, len(letters) - 1)
        following = int(own[-1]) + 1 if len(own) else following
    return letters[places] if len(letters) else places
