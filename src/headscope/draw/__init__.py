"""The figures of the field, from results: `draw(tree, name)`, `save_figures(tree, folder)`."""

from headscope.draw.registry import PICTURES, draw, save_figures
from headscope.draw.relations import draw_relation

__all__ = ["PICTURES", "draw", "draw_relation", "save_figures"]
