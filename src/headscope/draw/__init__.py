"""The kit of figures: style, panels, marks, grids. It knows no analysis."""
