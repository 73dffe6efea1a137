"""Is a corpus read in an order that only the seed and its documents decide?"""

import pickle

import pytest

from headscope.corpus import Document, MemoryCorpus, Passage
from headscope.corpus.drawn import DrawnCorpus
from headscope.corpus.partitions import Partition

TEXTS = [f"text number {at}" for at in range(200)]


class Divided(MemoryCorpus):
    """Its documents in twenty partitions of ten."""

    def partitions(self):
        def read(at):
            return iter(
                Document(f"{at}/{one.id}", one.passages)
                for one in self.documents[10 * at : 10 * at + 10]
            )

        return [Partition(f"part {at}", lambda at=at: read(at), 10) for at in range(20)]


def texts(corpus):
    return [document.passages[0].text for document in corpus]


def test_all_documents_come_in_an_order_of_the_seed():
    first, again, other = (texts(DrawnCorpus(MemoryCorpus(TEXTS), seed)) for seed in (0, 0, 1))
    assert first == again != other
    assert sorted(first) == sorted(other) == sorted(TEXTS)
    ranks = [TEXTS.index(text) for text in first]
    assert abs(sum(ranks[:100]) / 100 - 99.5) < 15  # 5 standard errors


def test_how_a_corpus_is_divided_does_not_change_the_order():
    assert texts(DrawnCorpus(Divided(TEXTS))) == texts(DrawnCorpus(MemoryCorpus(TEXTS)))


def test_what_does_not_fit_is_the_end_of_the_order():
    whole, few = DrawnCorpus(MemoryCorpus(TEXTS)), DrawnCorpus(MemoryCorpus(TEXTS), most_text=500)
    held = texts(few)
    assert 25 < len(held) < 40
    assert sum(map(len, held)) <= 500
    assert held == texts(whole)[: len(held)]
    assert (few.draw.of, few.draw.whole, whole.draw.whole) == (200, False, True)


def test_of_many_partitions_some_are_drawn_and_their_documents_mixed():
    draw = DrawnCorpus(Divided(TEXTS), most_partitions=4).draw
    assert (len(draw.documents), draw.of, draw.whole, draw.share) == (40, 40, False, 0.2)
    assert set(draw.partition.values()) == {0, 1, 2, 3}
    assert len({(name.partition("/")[0], at) for name, at in draw.partition.items()}) == 4
    first = [draw.partition[one.id] for one in draw.documents[:12]]
    assert len(set(first)) > 2


def test_a_limit_is_of_the_documents_in_the_order_of_the_corpus():
    assert sorted(texts(DrawnCorpus(MemoryCorpus(TEXTS), limit=7))) == sorted(TEXTS[:7])


def test_a_worker_gets_the_documents_with_the_corpus():
    drawn = DrawnCorpus(MemoryCorpus(TEXTS))
    assert texts(pickle.loads(pickle.dumps(drawn))) == texts(drawn)


@pytest.mark.parametrize("words", [None, 3])
def test_pairs_and_empty_passages_are_held(words):
    passage = Passage("p", text="a", text_pair="b") if words else Passage("p", text="")
    assert len(list(DrawnCorpus(MemoryCorpus([Document("one", (passage,))])))) == 1
