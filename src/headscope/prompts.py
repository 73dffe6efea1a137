"""What heads of a decoder do on prompts: effects, paths, knock-outs, as labelled arrays.

    import headscope as hs
    effects = hs.prompts.patch_heads("demo-decoder", "ioi")

Each name is imported when it is first used. `hs.circuits` makes a whole run of them.
"""

from headscope import imported_when_used

_WHERE = {
    "direct_logits": "headscope.experiments.circuits.direct_logits",
    "find_circuit": "headscope.experiments.circuit_discovery.discover",
    "function_vectors": "headscope.experiments.circuits.head_paths",
    "knockouts": "headscope.experiments.circuits.head_paths",
    "patch_heads": "headscope.experiments.circuits.patching",
    "path_patch": "headscope.experiments.circuits.head_paths",
    "switch_off": "headscope.experiments.circuits.switched_off",
}
__all__ = sorted(_WHERE)  # noqa: PLE0605
__getattr__ = imported_when_used(__name__, _WHERE)


def __dir__() -> list[str]:
    return __all__
