"""What does a saved figure show? Its lines, cells and tokens, read back from the SVG."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
from PIL import Image

from headscope.draw.style import LIGHT, ramp

SVG = "{http://www.w3.org/2000/svg}"


def groups(root, name):
    return [one for one in root.iter(f"{SVG}g") if one.get("class") == name]


def texts(root):
    return [one.text for one in root.iter(f"{SVG}text")]


def tokens(root, side):
    """Their texts, and the middles of their rows."""
    found = [one for group in groups(root, f"tokens {side}") for one in group.iter(f"{SVG}text")]
    middles = [float(one.get("y")) - 0.35 * float(one.get("font-size")) for one in found]
    return [one.text for one in found], np.array(middles)


def drawn(root, head):
    """[query, key] the opacities of a head's lines, and their colours."""
    (group,) = groups(root, f"lines {head}")
    ends = [tokens(root, side)[1] for side in ("query", "key")]
    found, colours = np.zeros([len(end) for end in ends]), set()
    for line in group.iter(f"{SVG}path"):
        points = np.array(re.findall(r"[-\d.]+", line.get("d")), float).reshape(-1, 2)
        assert points[0, 0] < points[-1, 0]
        place = tuple(np.abs(ends[side] - points[-side, 1]).argmin() for side in (0, 1))
        assert found[place] == 0
        found[place] = float(line.get("stroke-opacity", 1))
        colours.add(line.get("stroke"))
    return found, colours


def expected_lines(values):
    return np.where(values >= 1 / 400, values, 0)


def filled(parent, shape, corner, side):
    found = np.full((*shape, 3), 255)
    (group,) = groups(parent, "cells")[:1]
    for box in group:
        x, y, width = (float(box.get(name)) for name in ("x", "y", "width"))
        row, start = round((y - corner[1]) / side[1]), round((x - corner[0]) / side[0])
        colour = [int(box.get("fill")[i : i + 2], 16) for i in (1, 3, 5)]
        found[row, start : start + round(width / side[0])] = colour
    return found


def hex_parts(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], float)


def mixed(steps, share):
    """The colour at a share of the way through even steps, in 255 parts."""
    place = np.round(share * 255) / 255 * (len(steps) - 1)
    return np.stack(
        [np.interp(place, range(len(steps)), [step[i] for step in steps]) for i in range(3)], -1
    )


def shade(values, top):
    return mixed([hex_parts(step) for step in ramp()], np.sqrt(np.minimum(values / top, 1)))


def signed_shade(values, top):
    page, ink = hex_parts("#ffffff"), hex_parts(LIGHT["ink"])
    share, found = np.sqrt(np.abs(values) / top), np.zeros((*values.shape, 3))
    for hue, side in (("blue", values >= 0), ("vermillion", values < 0)):
        end = hex_parts(LIGHT[hue])
        found[side] = mixed([page, end, end + 0.55 * (ink - end)], share[side])
    return found


def frame_of(root, group, count):
    """The corner of a map and the sides of its cells, from the frame around it."""
    boxes = [box for box in group if box.tag == f"{SVG}rect" and box.get("stroke")]
    x, y, width, height = (float(boxes[0].get(n)) for n in ("x", "y", "width", "height"))
    return (x, y), (width / count[1], height / count[0])


def matrix_colours(root, shape, view=0):
    group = groups(root, "view matrix")[view]
    return filled(group, shape, *frame_of(root, group, shape))


def drawn_of_kept(root, query):
    """[key] the opacities of the lines, which all begin at one token."""
    (group,) = groups(root, "lines L2·H5")
    (keys,) = groups(root, "tokens key")
    named = [one for one in keys.iter(f"{SVG}text") if not re.fullmatch(r"\d\.\d\d", one.text)]
    middles = np.array([float(one.get("y")) for one in named])
    found, starts = np.zeros(len(middles)), set()
    for line in group.iter(f"{SVG}path"):
        points = np.array(re.findall(r"[-\d.]+", line.get("d")), float).reshape(-1, 2)
        starts.add(points[0, 1])
        found[np.abs(middles - 4.2 - points[-1, 1]).argmin()] = float(line.get("stroke-opacity", 1))
    (start,) = starts
    assert np.abs(middles - 4.2 - start).argmin() == query
    return found, group


def cell_frame(group):
    (frame,) = [box for box in group if box.tag == f"{SVG}rect"]
    x, y, width = (float(frame.get(name)) for name in ("x", "y", "width"))
    return x + 0.5, y + 0.5, width - 1


def thumbnail(group, shape, corner, wide):
    """[row, column, colour], from boxes or, where there are many cells, from a picture."""
    pictures = list(group.iter(f"{SVG}image"))
    if pictures:
        return picture_of(pictures[0])
    side = wide / shape[1]
    return filled(group, shape, corner, (side, side))


def picture_of(one):
    raw = base64.b64decode(one.get("href").partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB")).astype(int)


def check_strip(strip, values):
    """Blue where numbers are above 0 and vermillion below, the stronger the larger they are."""
    boxes = [(float(b.get("x")), float(b.get("width")), hex_parts(b.get("fill"))) for b in strip]
    left = min(x for x, _, _ in boxes)
    cell = min(width for _, width, _ in boxes)
    strength = np.zeros(len(values))
    for x, width, colour in boxes:
        start = round((x - left) / cell)
        sign = 1 if colour[2] > colour[0] else -1
        full = hex_parts(LIGHT["blue" if sign > 0 else "vermillion"])
        share = float(np.abs(255 - colour).sum() / np.abs(255 - full).sum())
        strength[start : start + round(width / cell)] = sign * share
    order = np.argsort(values)
    assert (np.diff(strength[order]) >= -0.01).all()
    assert (np.sign(strength[np.abs(values) > 0.2]) == np.sign(values[np.abs(values) > 0.2])).all()
