"""The models that papers looked at, and how they are recognised."""

from collections.abc import Iterable
from dataclasses import dataclass

from headscope.model.model import Model


@dataclass(frozen=True)
class OwnModel:
    """A paper's model: its id on the hub, its shape, and tokens of its vocabulary; 0: any."""

    id: str
    layers: int = 12
    heads: int = 12
    tokens: int = 0


BERT_UNCASED = OwnModel("google-bert/bert-base-uncased", tokens=30522)
BERT_CASED = OwnModel("google-bert/bert-base-cased", tokens=28996)
GPT2_SMALL = OwnModel("openai-community/gpt2", tokens=50257)


def own_model(models: Iterable[OwnModel], model: Model) -> str:
    """Which of a paper's own a model is, by name, shape and size of vocabulary; "" for none.

    The name is an id of the hub, whole, or the last part of a local folder's.
    """
    owner, _, name = model.name.rstrip("/\\").replace("\\", "/").rpartition("/")
    size = getattr(model.network.config, "vocab_size", 0)
    for own in models:
        theirs, _, known = own.id.rpartition("/")
        shape = (own.layers, own.heads, own.tokens or size)
        if name == known and (model.shape.layers, model.shape.heads, size) == shape:
            return "" if model.revision and owner not in ("", theirs) else own.id
    return ""
