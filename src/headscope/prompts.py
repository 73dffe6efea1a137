"""What heads of a decoder do on prompts: effects, paths, knock-outs, as labelled arrays; and what
wrote the score of a query and a key, of an encoder too.

    import headscope as hs
    effects = hs.prompts.patch_heads("demo-decoder", "ioi")

Each name is imported when it is first used. `hs.circuits` makes a whole run of them.
"""

from headscope import imported_when_used

_WHERE = {
    "direct_logits": "headscope.experiments.circuits.direct_logits",
    "find_circuit": "headscope.experiments.circuits.discovery.discover",
    "function_vectors": "headscope.experiments.circuits.head_paths",
    "knockouts": "headscope.experiments.circuits.head_paths",
    "patch_heads": "headscope.experiments.circuits.patching",
    "mean_score_parts": "headscope.experiments.circuits.score_parts",
    "path_patch": "headscope.experiments.circuits.head_paths",
    "score_parts": "headscope.experiments.circuits.score_parts",
    "switch_off": "headscope.experiments.circuits.switched_off",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605
__getattr__ = imported_when_used(__name__, _WHERE)


def __dir__() -> list[str]:
    return __all__
