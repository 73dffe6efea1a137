// How do the most typical maps of a head look? Drawn as squares in the page's own shades.
const TYPE = 0.78; // of a cell: the size of type at most
const TYPE_OF_MAP = 0.055; // of the map: likewise, where cells are large
const LEAST_OF_MAP = 0.036; // and at least, 9 pixels on a phone: not every token has a name then
const WIDE = 0.6; // of the size of type: about what a character takes
const LONGEST_MARGIN = 0.42; // of the map: what tokens beside it take at most

// All weights, once they are asked for; and where the maps of each head begin.
const typical = { codes: null, starts: [] };

async function unpackedMaps() {
  typical.codes ??= unzipped(data.cards.maps.codes);
  return typical.codes;
}

const sizeOf = ([place]) => data.cards.maps.inputs[place][0].length ** 2;

function startOfMaps(unit) {
  if (!typical.starts.length) {
    let at = 0;
    for (const rows of data.cards.maps.heads) {
      typical.starts.push(at);
      at += rows.reduce((sum, row) => sum + sizeOf(row), 0);
    }
  }
  return typical.starts[unit];
}

function mapsPart(unit) {
  const rows = data.cards.maps?.heads[unit] ?? [];
  if (!rows.length) return null;
  const figures = rows.map(() => element("figure", { class: "map" }));
  unpackedMaps().then((codes) => {
    let at = startOfMaps(unit);
    rows.forEach((row, place) => {
      drawMap(figures[place], row, codes.subarray(at, at + sizeOf(row)));
      at += sizeOf(row);
    });
  });
  const note = `Typical maps: ${data.cards.from}. From each token (row) to each (column), from 0 (blank) to 1, shades by the square root; tokens that the tokenizer added are grey, and of many not all are named. Below, the strongest links between the others.`;
  const holder = element("div", { class: "maps" }, ...figures);
  return element("section", {}, element("h3", {}, "Typical maps"), holder, element("p", { class: "caption" }, note));
}

function drawMap(figure, [place, kind, sure, links], codes) {
  const [tokens, added] = data.cards.maps.inputs[place];
  const weight = (query, key) => (codes[query * tokens.length + key] / data.cards.maps.levels) ** 2;
  const words = links.map(([query, key, share]) => `${tokens[query]} → ${tokens[key]} ${share}`);
  const svg = mapDrawing(tokens, added, codes);
  svg.setAttribute("aria-label", `Map of ${tokens.length} tokens; strongest links: ${words.join(", ")}`);
  const read = element("p", { class: "cell" }, "\u00a0");
  svg.addEventListener("pointermove", (event) => {
    const cell = cellAt(svg, event, tokens.length);
    read.textContent = cell ? `${tokens[cell[0]]} → ${tokens[cell[1]]} ${about(weight(...cell))}` : "\u00a0";
  });
  const items = words.map((text) => element("li", {}, element("bdi", {}, text)));
  const title = kind ? [element("p", { class: "kind" }, sure ? `${kind}, ${sure} sure` : kind)] : [];
  figure.append(...title, svg, read, element("ol", { class: "links" }, ...items));
}

// What the shades are made from: to a few per cent.
const about = (share) => `about ${(100 * share).toFixed(share < 0.095 ? 1 : 0)} %`;

// One path for every shade; what is nothing is not drawn.
function mapDrawing(tokens, added, codes) {
  const n = tokens.length;
  const longest = Math.max(...tokens.map((token) => token.length));
  const size = Math.max(Math.min(TYPE, TYPE_OF_MAP * n), LEAST_OF_MAP * n);
  const apart = Math.ceil(1.1 * size); // tokens from one name to the next
  const margin = Math.min(longest * WIDE + 1, LONGEST_MARGIN * (n / size)) * size;
  const svg = drawing("svg", { viewBox: `${-margin} ${-margin} ${n + margin + 0.1} ${n + margin + 0.1}`, role: "img" });
  const paths = new Map();
  codes.forEach((code, at) => {
    const shade = Math.round((code / data.cards.maps.levels) * (data.rampSteps - 1));
    if (shade) paths.set(shade, `${paths.get(shade) ?? ""}M${at % n} ${Math.floor(at / n)}h1v1h-1z`);
  });
  for (const [shade, d] of paths) svg.append(hued(drawing("path", { class: "cell", d }), `ramp-${shade}`));
  svg.append(drawing("rect", { class: "frame", width: n, height: n }));
  const room = Math.max(Math.floor((margin / size - 0.8) / WIDE), 1);
  tokens.forEach((token, at) => {
    if (at % apart) return;
    const shown = token.length > room ? `${token.slice(0, Math.max(room - 1, 1))}…` : token;
    const tone = added.includes(at) ? "added" : "own";
    const away = -0.35 * size;
    svg.append(mapToken(shown, size, { class: tone, transform: `translate(${away} ${at + 0.5})`, "text-anchor": "end" }));
    svg.append(mapToken(shown, size, { class: tone, transform: `translate(${at + 0.5} ${away}) rotate(-90)` }));
  });
  return svg;
}

function mapToken(text, size, look) {
  return drawing("text", { ...look, dy: 0.35 * size, "font-size": size }, text);
}

function cellAt(svg, event, n) {
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const [query, key] = [Math.floor(point.y), Math.floor(point.x)];
  return query >= 0 && query < n && key >= 0 && key < n ? [query, key] : null;
}
