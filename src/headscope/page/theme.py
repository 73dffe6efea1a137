"""Which custom properties carry the colours of a light and a dark page?"""

from __future__ import annotations

from headscope.draw.style import COLORS, ramp


def theme_css() -> str:
    """Rules for `:root`: light by default and in print, dark where the system asks for it."""
    light, dark = (_declarations(side) for side in (0, 1))
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"
    )


def _declarations(side: int) -> str:
    named = [f"--{name}:{pair[side]}" for name, pair in COLORS.items()]
    steps = [f"--ramp-{step}:{shade}" for step, shade in enumerate(ramp(dark=side == 1))]
    return ";".join(named + steps)
