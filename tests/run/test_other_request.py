"""Is it said in words how a request differs from that of the run in the folder?"""

import pytest

import headscope as hs
from headscope.errors import RunFolderError
from headscope.run.other_request import other_request


def manifest(names, documents, *, limit=None, model="bert", sha256="a", digest="1"):
    files = [{"name": name, "sha256": f"{name}{digest}"} for name in names]
    return {
        "corpus": {"kind": "text", "files": files},
        "counts": {"documents": documents, "examples": 9, "tokens": 10 * documents},
        "model": {"name": model, "sha256": sha256},
        "spec": {
            "corpus": {"inputs_sha256": f"{names}{documents}{digest}"},
            "model": {"sha256": sha256},
            "settings": {"limit": limit},
        },
    }


def with_method(one, number):
    return one | {"spec": one["spec"] | {"method": number}}


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (
            manifest(["b.txt"], 14),
            [
                "the corpus: a.txt, now b.txt",
                "what is read: 3 documents, 30 tokens, now 14 documents, 140 tokens",
            ],
        ),
        (manifest(["a.txt"], 3, digest="2"), ["the content of a.txt is another one"]),
        (
            manifest(["a.txt"], 2, limit=2),
            [
                "what is read: 3 documents, 30 tokens, now 2 documents, 20 tokens",
                "settings.limit: null, now 2",
            ],
        ),
        (manifest(["a.txt"], 3, model="gpt2", sha256="b"), ["the model: bert, now gpt2"]),
        (
            manifest(["a.txt"], 3, sha256="b"),
            ["the model: bert, whose weights are others now"],
        ),
        (
            with_method(manifest(["a.txt"], 3), 2),
            ["the method: headscope computes this in another way now"],
        ),
        (manifest(["a.txt"], 3), []),
    ],
)
def test_what_differs_is_named_with_both_values(now, words):
    assert other_request(manifest(["a.txt"], 3), now) == words


def test_a_folder_with_another_corpus_says_so_in_words(tiny, tmp_path):
    """It named two hashes."""
    many = {"replicates": 2, "analyses": ("entropy",), "output": tmp_path / "run"}
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text(f"The cat sat. It slept in {name}.\n\nA dog.\n")
    hs.atlas(tiny, str(tmp_path / "a.txt"), **many)
    with pytest.raises(RunFolderError) as refused:
        hs.atlas(tiny, str(tmp_path / "b.txt"), **many)
    assert "the corpus: " in str(refused.value)
    assert "a.txt, now " in str(refused.value)
    assert "sha256" not in str(refused.value)
