// How does the head view stand on paper? Tokens on both sides and lines between them, as on the
// page; with it, what the figures share: keys of heads, of opacity and of colours.
const PAPER = { size: 12, row: 18, smallSize: 10, smallRow: 13, longest: 150, lines: 220, gap: 5, value: 38 };
const SAMPLES = [0.1, 0.5, 1]; // of full ink, in its key

// Each of these draws from (x, y) on, and returns what room that took.
function linesOnPaper(paper, x, y, place) {
  const many = Math.max(places("query").length, places("key").length) > MANY;
  const [size, row] = many ? [PAPER.smallSize, PAPER.smallRow] : [PAPER.size, PAPER.row];
  const sides = { query: sideOnPaper("query", size), key: sideOnPaper("key", size) };
  const width = sides.query.room + PAPER.lines + sides.key.room;
  const under = y + headsOnPaper(paper, x, y, twoShown() ? width : Math.max(width, SMALL_PRINT.least), place) + 4;
  const top = under + PAPER.row;
  const left = x + sides.query.room;
  const right = left + PAPER.lines;
  const at = { query: left - PAPER.gap, key: right + PAPER.gap };
  const middle = (index) => top + (index + 0.5) * row;
  for (const side of ["query", "key"]) {
    const look = { anchor: side === "query" ? "end" : "start" };
    paper.text(at[side], under + PAPER.row / 2, titleOf(side), { size: 11, fill: colorOf("muted"), ...look });
    paper.group(`tokens ${side}`, () => tokensOnPaper(paper, side, place, { x: at[side], middle, size, row, room: sides[side].text, ...look }));
  }
  for (const head of state.heads) {
    paper.group(`lines ${headName(state.layer, head)}`, () => headOnPaper(paper, head, place, { left, right, middle, row }));
  }
  const height = top - y + row * Math.max(places("query").length, places("key").length);
  const key = inkOnPaper(paper, x, y + height + 18, place);
  return { width: Math.max(width, key), height: height + 26 };
}

const titleOf = (side) => (side === "query" ? "from" : "to") + (sideOf(side).name ? ` the ${sideOf(side).name}` : "");
const hasValues = (side) => chosen() !== null && chosen().side !== side && state.heads.length === 1;

function sideOnPaper(side, size) {
  const widths = places(side).map((_, index) => widthOf(placeText(side, index), { size, weight: "bold" }));
  const text = Math.min(Math.max(...widths, widthOf(titleOf(side), { size: 11 })), PAPER.longest);
  return { text, room: text + PAPER.gap + (hasValues(side) ? PAPER.value : 0) };
}

function tokensOnPaper(paper, side, place, { x, middle, size, row, room, anchor }) {
  const maps = state.heads.map((head) => mapOf(place, state.layer, head));
  const edge = side === "query" ? x - room : x;
  places(side).forEach((one, index) => {
    const [kept, partner] = [same(state.kept, { side, index }), chosen() !== null && chosen().side !== side];
    const [query, key] = side === "query" ? [index, chosen()?.index] : [chosen()?.index, index];
    const shown = partner && visible(query, key);
    const values = shown ? maps.map((map) => map.values[query * places("key").length + key]) : [];
    const back = { x: edge - 3, y: middle(index) - row / 2, width: room + 6, height: row };
    if (one.second && index) paper.line([[edge, back.y], [edge + room, back.y]], { stroke: colorOf("grey"), thick: 0.75 });
    if (kept) paper.box(back.x, back.y, back.width, back.height, { fill: colorOf("ink") });
    else tintOnPaper(paper, back, values, place);
    const aside = (state.special === "dimmed" && one.special) || (partner && !shown);
    const fill = colorOf(kept ? "page" : one.special || aside ? "muted" : "ink");
    const look = { size, anchor, fill, weight: kept ? "bold" : "", style: aside ? "italic" : "" };
    paper.text(x, middle(index), cutTo(placeText(side, index), room, look), look);
    if (!hasValues(side) || !shown) return;
    const value = { size: size - 1, anchor, fill: colorOf(Math.abs(values[0]) / fullInk(place) < 0.01 ? "muted" : "ink") };
    paper.text(side === "query" ? edge - 7 : edge + room + 7, middle(index), number(values[0], 0, place), value);
  });
}

// As stripes, one per head.
function tintOnPaper(paper, { x, y, width, height }, values, place) {
  values.forEach((value, rank) => {
    const share = Math.min(Math.abs(value) / fullInk(place), 1);
    const hue = stack().measures[place].signed ? signName(value) : hueOf(state.heads[rank]);
    const part = width / values.length;
    if (share > 0.004) paper.box(x + rank * part, y, part, height, { fill: colorOf(hue), opacity: 0.42 * share });
  });
}

function headOnPaper(paper, head, place, { left, right, middle, row }) {
  const { signed } = stack().measures[place];
  const apart = Math.min(FAN, (row * 0.7) / state.heads.length);
  const shift = (state.heads.indexOf(head) - (state.heads.length - 1) / 2) * apart;
  const half = (left + right) / 2;
  const lines = linesOf(head, chosen(), place).sort((one, two) => Math.abs(one[2]) - Math.abs(two[2]));
  for (const [query, key, value] of lines) {
    const opacity = Math.min(Math.abs(value) / fullInk(place), 1) * (dimmed(query, key) ? 0.2 : 1);
    const [from, to] = [middle(query) + shift, middle(key) + shift];
    const look = { stroke: colorOf(signed ? signName(value) : hueOf(head)), thick: chosen() ? 2.2 : 1.5, opacity, dash: dashOf(head) };
    paper.line([[left, from], [half, from], [half, to], [right, to]], look);
  }
}

// --- keys -----------------------------------------------------------------------------------

// The heads in their colours and patterns, as many in a row as fit.
function headsOnPaper(paper, x, y, width, place) {
  let [across, down] = [x, y];
  for (const head of [...state.heads].sort((one, two) => one - two)) {
    const label = labelOf(state.layer, head);
    const words = cutTo(headName(state.layer, head) + (label ? ` ${label}` : ""), width - 30, { size: 11 });
    const wide = 26 + widthOf(words, { size: 11 });
    if (across > x && across + wide > x + width) [across, down] = [x, down + 16];
    const stroke = colorOf(stack().measures[place].signed ? "ink" : hueOf(head));
    paper.line([[across, down + 8], [across + 20, down + 8]], { stroke, thick: 2.5, dash: dashOf(head) });
    paper.text(across + 26, down + 8, words, { size: 11 });
    across += wide + 16;
  }
  return down + 16 - y;
}

function inkOnPaper(paper, x, y, place) {
  const { signed, label } = stack().measures[place];
  const muted = { size: 11, fill: colorOf("muted") };
  const words = twoShown() ? "" : label;
  if (words) paper.text(x, y, words, muted);
  let across = words ? x + widthOf(words, muted) + 12 : x;
  for (const share of signed ? [-1, -0.5, 0.5, 1] : SAMPLES) {
    const value = number(share * fullInk(place), 0, place);
    const hue = signed ? signName(share) : state.heads.length > 1 ? "ink" : hueOf(state.heads[0]);
    paper.line([[across, y], [across + 20, y]], { stroke: colorOf(hue), thick: 2.2, opacity: Math.abs(share) });
    paper.text(across + 25, y, value, muted);
    across += 25 + widthOf(value, muted) + 12;
  }
  return across - 12 - x;
}

// The bar of colours, [red, green, blue] each, with what its ends and its middle stand for.
const RAMP_WIDTH = 150;
function rampOnPaper(paper, x, y, colors, ticks, words) {
  const muted = { size: 11, fill: colorOf("muted") };
  paper.cells(x, y, RAMP_WIDTH, 9, { rows: 1, columns: colors.length, colors: Int32Array.from(colors, packed) });
  paper.box(x, y, RAMP_WIDTH, 9, { stroke: colorOf("rule") });
  ["start", "middle", "end"].forEach((anchor, place) => paper.text(x + (RAMP_WIDTH * place) / 2, y + 17, ticks[place], { ...muted, anchor }));
  paper.text(x + RAMP_WIDTH + 12, y + 4.5, words, muted);
  return { width: RAMP_WIDTH + 12 + widthOf(words, muted), height: 24 };
}

const rampColors = (signed) => (signed ? [...signShades(-1).slice(1).reverse(), ...signShades(1)] : shades()).filter((_, place) => place % 6 === 0);
