"""The names for type checkers; each is imported when it is first used (`prompts.py`)."""

from headscope.experiments.circuits.direct_logits import direct_logits as direct_logits
from headscope.experiments.circuits.discovery.discover import find_circuit as find_circuit
from headscope.experiments.circuits.head_paths import function_vectors as function_vectors
from headscope.experiments.circuits.head_paths import knockouts as knockouts
from headscope.experiments.circuits.head_paths import path_patch as path_patch
from headscope.experiments.circuits.patching import patch_heads as patch_heads
from headscope.experiments.circuits.score_parts import mean_score_parts as mean_score_parts
from headscope.experiments.circuits.score_parts import score_parts as score_parts
from headscope.experiments.circuits.switched_off import switch_off as switch_off
