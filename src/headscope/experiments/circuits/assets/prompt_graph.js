// How does the answer travel between heads? Rows are layers, the first on top; below them stands the
// answer. A head is as large as what it writes, a line as wide as what comes back along it.
const GRAPH = { row: 58, left: 34, right: 18, top: 20, gap: 30, least: 3, most: 11, widest: 9, bend: 34 };
const LINES = 24; // paths that are drawn, the strongest; of the chosen head, all that are listed
const signHue = (value) => (value < 0 ? "vermillion" : "blue");

// Places of heads across a row: ordered as in the grid, moved apart to `gap` where they would touch.
function apart(wanted, from, to) {
  const gap = Math.min(GRAPH.gap, (to - from) / Math.max(wanted.length - 1, 1));
  const places = [...wanted];
  for (let at = 1; at < places.length; at += 1) places[at] = Math.max(places[at], places[at - 1] + gap);
  for (let at = places.length - 1, end = to; at >= 0; at -= 1, end -= gap) places[at] = Math.min(places[at], end);
  return places;
}

function graphPlaces(width) {
  const places = new Map();
  const rows = [...new Set(data.followed.map((unit) => Math.floor(unit / data.heads)))];
  const [from, to] = [GRAPH.left + GRAPH.most, width - GRAPH.right];
  const columns = data.followed.map((unit) => unit % data.heads);
  const [least, most] = [Math.min(...columns), Math.max(...columns)];
  rows.forEach((layer, row) => {
    const own = data.followed.filter((unit) => Math.floor(unit / data.heads) === layer);
    const across = (unit) => from + ((to - from) * ((unit % data.heads) - least + 0.5)) / (most - least + 1);
    apart(own.map(across), from, to).forEach((x, at) => places.set(own[at], { x, y: GRAPH.top + row * GRAPH.row, row }));
  });
  return { places, rows, answer: { x: (from + to) / 2, y: GRAPH.top + rows.length * GRAPH.row, row: rows.length } };
}

// From one place down to another; a line that would run through a head of a row between is bent.
function curve(start, end, places) {
  const down = (end.y - start.y) / 2;
  const across = (share) => start.x + (end.x - start.x) * share * share * (3 - 2 * share);
  const meets = ({ x, row }) => row > start.row && row < end.row && Math.abs(x - across((row - start.row) / (end.row - start.row))) < GRAPH.most + 3;
  const aside = [...places.values()].some(meets) ? GRAPH.bend : 0;
  return `M${start.x} ${start.y}C${start.x + aside} ${start.y + down} ${end.x + aside} ${end.y - down} ${end.x} ${end.y}`;
}

function graphLine(way, value, top, kind, words) {
  const wide = Math.max((GRAPH.widest * Math.abs(value)) / top, 0.75).toFixed(1);
  const path = drawing("path", { class: `line ${kind}`, d: way, "stroke-width": wide });
  path.append(drawing("title", {}, words));
  return hued(path, signHue(value));
}

function graphHead(unit, { x, y }, writes, top, words) {
  const radius = GRAPH.least + (GRAPH.most - GRAPH.least) * Math.sqrt(Math.abs(writes) / top);
  const link = drawing("a", { href: `#${cardId(unit)}`, "data-unit": unit, "aria-label": words });
  if (unit === chosen.unit) link.setAttribute("aria-current", "true");
  link.append(
    drawing("title", {}, words),
    drawing("circle", { class: "room", cx: x, cy: y, r: GRAPH.most + 2 }),
    hued(drawing("circle", { class: "disc", cx: x, cy: y, r: radius.toFixed(1) }), signHue(writes)),
    drawing("text", { x, y: y + GRAPH.most + 11 }, `H${(unit % data.heads) + data.countsFrom}`),
  );
  return link;
}

function paintGraph(prompt) {
  const box = at("graph");
  const kept = box.contains(document.activeElement); // its links are made anew
  const width = Math.max(Math.min(box.clientWidth, 620), 240);
  const { places, rows, answer } = graphPlaces(width);
  const direct = prompt.writes[0];
  const listed = prompt.paths.filter((path) => logits(path[3]) !== "0.00");
  const shown = listed.filter(([sender, receiver], at) => at < LINES || sender === chosen.unit || receiver === chosen.unit);
  const top = Math.max(topOf(shown.map((path) => path[3])), topOf(data.followed.map((unit) => direct[unit])));
  const said = `${endOf(prompt, 0)} less ${endOf(prompt, 1)}`;
  const lines = [
    ...data.followed.filter((unit) => logits(direct[unit]) !== "0.00").map((unit) => [unit, null, direct[unit], "out", `${headName(unit)} writes ${logits(direct[unit])} to ${said}`]),
    ...shown.map(([sender, receiver, via, value]) => [sender, receiver, value, `via-${via}`, `${headName(sender)} → ${WAYS[via]} of ${headName(receiver)}: ${logits(value)} logits`]),
  ];
  const touches = ([sender, receiver]) => sender === chosen.unit || receiver === chosen.unit;
  const drawn = lines.sort((one, other) => touches(one) - touches(other)).map((line) => {
    const [sender, receiver, value, kind, words] = line;
    return graphLine(curve(places.get(sender), places.get(receiver) ?? answer, places), value, top, touches(line) ? `${kind} own` : kind, words);
  });
  const count = (own) => shown.filter((path) => path[own] === chosen.unit).length;
  const words = (unit) => `${headName(unit)}, writes ${logits(direct[unit])} logits${unit === chosen.unit ? `; ${count(1)} paths in, ${count(0)} out` : ""}`;
  const height = answer.y + 24;
  const svg = drawing("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": `Paths between ${data.followed.length} heads, by layer` });
  svg.append(
    ...rows.map((layer, row) => drawing("text", { class: "layer", x: 0, y: GRAPH.top + row * GRAPH.row + 4 }, `L${layerName(layer)}`)),
    drawing("g", { "aria-hidden": "true", class: data.followed.includes(chosen.unit) ? "some" : "" }, ...drawn),
    ...data.followed.map((unit) => graphHead(unit, places.get(unit), direct[unit], topOf(data.followed.map((one) => direct[one])), words(unit))),
    drawing("text", { class: "answer", x: answer.x, y: answer.y + 14 }, said),
  );
  box.replaceChildren(svg);
  if (kept) box.querySelector("[aria-current]")?.focus();
}
