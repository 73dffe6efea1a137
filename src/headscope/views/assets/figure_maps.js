// How do maps stand on paper: one head with its tokens, or all heads of the model?
const CELL = { largest: 22, smallest: 9, bare: 6, wide: 560, label: 120 };
const THUMBNAIL = { wide: 820, largest: 64, smallest: 18, gap: 6, dots: 128 };

function mapOnPaper(paper, x, y, place) {
  const measure = stack().measures[place];
  const [rows, columns] = [places("query").length, places("key").length];
  const fit = CELL.wide / Math.max(rows, columns);
  const side = Math.min(CELL.largest, state.whole ? fit : Math.max(CELL.smallest, Math.floor(fit)));
  const look = { size: Math.min(12, Math.round(side) - 1) };
  const named = side >= CELL.bare;
  const room = (axis) => (named ? Math.min(Math.max(...places(axis).map((_, index) => widthOf(placeText(axis, index), { ...look, weight: "bold" }))), CELL.label) + 6 : 0);
  const [left, top] = [x + room("query"), y + room("key")];
  const map = mapOf(place, state.layer, headNow());
  paper.cells(left, top, columns * side, rows * side, heatOf(map, measure.signed));
  if (named) for (const axis of ["query", "key"]) paper.group(`tokens ${axis}`, () => labelsOnPaper(paper, axis, { left, top, side, look }));
  paper.box(left, top, columns * side, rows * side, { stroke: colorOf("grey"), thick: 0.75 });
  bandOnPaper(paper, { left, top, side, rows, columns });
  const ticks = (share) => number(map.largest * share, 0, place);
  const marks = measure.signed ? [ticks(-1), "0", ticks(1)] : ["0", ticks(0.25), ticks(1)];
  const key = rampOnPaper(paper, left, top + rows * side + 12, rampColors(measure.signed), marks, `${twoShown() ? "" : `${measure.label}, `}square-root scale`);
  return { width: left - x + Math.max(columns * side, key.width), height: top - y + rows * side + 12 + key.height };
}

// The colours of a matrix, as ImageData packs them.
function heatOf(map, signed) {
  const [rows, columns] = [places("query").length, places("key").length];
  const tones = palette(signed);
  const colors = Int32Array.from(map.values, (value, cell) => {
    const [query, key] = [Math.floor(cell / columns), cell % columns];
    const shade = (dimmed(query, key) ? tones.pale : tones.plain)[255 + codeOf(value, map.largest || 1)];
    return visible(query, key) ? shade : tones.away;
  });
  return { rows, columns, colors };
}

function labelsOnPaper(paper, axis, { left, top, side, look }) {
  places(axis).forEach((place, index) => {
    const kept = same(state.kept, { side: axis, index });
    const aside = state.special === "dimmed" && place.special;
    const fill = colorOf(kept ? "page" : aside ? "muted" : "ink");
    const full = { ...look, fill, weight: kept ? "bold" : "", style: aside ? "italic" : "" };
    const words = cutTo(placeText(axis, index), CELL.label, full);
    const middle = (axis === "query" ? top : left) + (index + 0.5) * side;
    const long = widthOf(words, full) + 6;
    if (axis === "query") {
      if (kept) paper.box(left - 1 - long, middle - side / 2, long, side, { fill: colorOf("ink") });
      paper.text(left - 4, middle, words, { ...full, anchor: "end" });
    } else {
      if (kept) paper.box(middle - side / 2, top - 1 - long, side, long, { fill: colorOf("ink") });
      paper.text(middle, top - 4, words, { ...full, turned: true });
    }
  });
}

function bandOnPaper(paper, { left, top, side, rows, columns }) {
  if (!state.kept) return;
  const { side: axis, index } = state.kept;
  const look = { stroke: colorOf("ink"), opacity: 0.6 };
  if (axis === "query") paper.box(left, top + index * side, columns * side, side, look);
  else paper.box(left + index * side, top, side, rows * side, look);
}

// --- the model --------------------------------------------------------------------------------

function modelOnPaper(paper, x, y, place) {
  const { layers, heads } = stack();
  const shape = shapeOfMap();
  const wide = Math.min(Math.max(THUMBNAIL.wide / heads - THUMBNAIL.gap, THUMBNAIL.smallest), THUMBNAIL.largest);
  const high = wide / shape;
  const labelled = wide >= 60 && stack().labels.flat().some(Boolean);
  const down = high + THUMBNAIL.gap + (labelled ? 11 : 0);
  const [left, top] = [x + 24, y + 18];
  const muted = { size: 11, fill: colorOf("muted") };
  for (let head = 0; head < heads; head += 1) paper.text(left + head * (wide + THUMBNAIL.gap) + wide / 2, y + 8, headNumber(head), { ...muted, anchor: "middle" });
  for (let layer = 0; layer < layers; layer += 1) {
    paper.text(left - 8, top + layer * down + high / 2, layerName(layer), { ...muted, anchor: "end" });
    for (let head = 0; head < heads; head += 1) {
      const corner = [left + head * (wide + THUMBNAIL.gap), top + layer * down];
      paper.group(`head ${headName(layer, head)}`, () => thumbnailOnPaper(paper, corner, { wide, high, labelled, place, layer, head }));
    }
  }
  const key = rampOnPaper(paper, left, top + layers * down + 8, rampColors(stack().measures[place].signed), ...modelTicks(place));
  return { width: 24 + Math.max(heads * (wide + THUMBNAIL.gap), key.width), height: 18 + layers * down + 8 + key.height };
}

function thumbnailOnPaper(paper, [x, y], { wide, high, labelled, place, layer, head }) {
  const map = folded(place, layer, head);
  const [columns, rows] = ["key", "query"].map((axis) => Math.max(1, Math.min(places(axis).length, THUMBNAIL.dots)));
  const { codes, dim } = pooled(map, columns, rows, topOf(place, layer, head, map));
  const tones = palette(stack().measures[place].signed);
  const colors = Int32Array.from(codes, (code, pixel) => (dim[pixel] ? tones.pale : tones.plain)[255 + code]);
  const on = layer === state.layer && state.heads.includes(head);
  paper.cells(x, y, wide, high, { rows, columns, colors });
  paper.box(x - 0.5, y - 0.5, wide + 1, high + 1, { stroke: colorOf(on ? "vermillion" : "rule"), thick: on ? 2 : 1 });
  if (labelled) paper.text(x, y + high + 7, wrapped(labelOf(layer, head).replace(/ (?=%)/g, "\u00a0"), wide + 4, { size: 8 })[0] ?? "", { size: 8, fill: colorOf(on ? "ink" : "muted") });
}

function modelTicks(place) {
  const measure = stack().measures[place];
  const most = number(Math.max(...scalesOf(measure)), 0, place).replace("+", "");
  if (measure.signed) return [[`−${most}`, "0", `+${most}`], `${measure.label}, the same scale for all heads (square-root scale)`];
  return [["0", "¼", "1"], `${measure.label}, of each ${ofLayer(measure) ? "layer" : "head"}’s largest value (square-root scale)`];
}
