"""The figures of the field, from results: `draw(tree, name)`, `save_figures(tree, folder)`."""

from headscope.draw.registry import PICTURES, draw, save_figures

__all__ = ["PICTURES", "draw", "save_figures"]
