"""Are maps drawn from layers and texts alike, and are they what the model computed?"""

from collections import Counter

import numpy as np
import pytest
import torch

from experiments.map_classifier.made import make_example
from headscope.errors import InputError
from headscope.experiments.map_classifier.labelled_maps import LEAST_TOKENS, draw

LAYERS, HEADS = 6, 12


@pytest.fixture(scope="module")
def texts():
    lengths = {"news": (12, 19), "pairs": (14, 23), "tales": (11, 30)}
    return {
        text: [make_example(f"{text} {n}", n, second=6 if text == "pairs" else None) for n in sizes]
        for text, sizes in lengths.items()
    }


@pytest.fixture(scope="module")
def drawn(demo, texts):
    return draw(demo, texts, name="some model", count=LAYERS * len(texts) * 3, seed=5)


def test_every_layer_in_every_text_comes_equally_often(drawn, texts):
    cells = Counter((one.layer, one.text) for one in drawn)
    assert cells == {(layer, text): 3 for layer in range(LAYERS) for text in texts}


def test_a_count_that_does_not_divide_leaves_layers_at_most_one_apart(demo, texts):
    found = draw(demo, texts, name="m", count=LAYERS * 2 + 3)
    assert len(found) == LAYERS * 2 + 3
    assert sorted(Counter(one.layer for one in found).values()) == [2, 2, 2, 3, 3, 3]
    assert max(Counter(one.text for one in found).values()) <= 6


def test_maps_are_those_of_the_model_with_nothing_but_real_tokens(demo, drawn, texts):
    examples = {e.id: e for given in texts.values() for e in given}
    network = demo.network
    eager = type(network)._from_config(network.config, attn_implementation="eager")
    eager.load_state_dict(network.state_dict())
    eager.eval()
    for one in drawn[::3]:
        example = examples[one.example]
        with torch.inference_mode():
            out = eager(
                input_ids=torch.from_numpy(example.input_ids)[None],
                token_type_ids=torch.from_numpy(example.segment_ids)[None],
                output_attentions=True,
            )
        expected = out.attentions[one.layer][0, one.head].numpy()
        assert one.map.shape == (len(example), len(example))
        np.testing.assert_allclose(one.map, expected, atol=5e-4)  # float16
        np.testing.assert_allclose(one.map.astype(float).sum(1), 1, atol=5e-3)


def test_a_map_says_where_it_is_from(demo, drawn):
    for one in drawn:
        assert (one.model, one.sha256) == ("some model", demo.sha256)
        assert one.document == f"document of {one.example}"
        assert one.example.startswith(one.text)
        assert one.boundary == (6 if one.text == "pairs" else -1)
        assert 0 <= one.head < HEADS


def test_no_map_comes_twice_and_heads_vary(drawn):
    keys = [(one.example, one.layer, one.head) for one in drawn]
    assert len(set(keys)) == len(keys)
    assert len({one.head for one in drawn}) > HEADS / 2


def test_the_seed_decides(demo, texts, drawn):
    def keys(seed):
        found = draw(demo, texts, name="some model", count=len(drawn), seed=seed)
        return [(one.example, one.layer, one.head) for one in found]

    assert keys(5) == [(one.example, one.layer, one.head) for one in drawn] != keys(6)


def test_all_maps_can_be_drawn_and_not_one_more(demo):
    texts = {"only": [make_example("x", 12)]}
    found = draw(demo, texts, name="m", count=LAYERS * HEADS)
    assert len({(one.layer, one.head) for one in found}) == LAYERS * HEADS
    with pytest.raises(InputError, match="found 12 maps of m on only in a layer"):
        draw(demo, texts, name="m", count=LAYERS * HEADS + 1)


def test_maps_too_small_to_show_anything_are_left_out(demo):
    short, long = make_example("short", LEAST_TOKENS - 1), make_example("long", LEAST_TOKENS)
    found = draw(demo, {"t": [short, long]}, name="m", count=30)
    assert {one.example for one in found} == {"long"}
    with pytest.raises(InputError, match=f"0 inputs of {LEAST_TOKENS} tokens or more"):
        draw(demo, {"t": [short]}, name="m", count=1)
