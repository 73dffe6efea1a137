// What do the views share? The example, what is selected, and ways to build elements from text:
// tokens come from anywhere, so nothing here ever parses markup.
let data = JSON.parse(document.getElementById("data").textContent);
const painters = [];
const state = {
  view: "model", // or "all" four, on a page and a screen that have room for them
  front: "model", // of all, the one that was used last: it is read aloud, and saved
  stack: 0,
  layer: 0,
  heads: [0], // of the layer, in the order chosen; the last one is the head that is named
  kept: null, // {side: "query" | "key", index}
  pointed: null,
  cell: null, // [query, key] under the matrix's cursor
  measure: 0,
  beside: null, // a second measure, next to the first
  level: "token", // or "word"
  special: "shown", // "dimmed", "removed", or "renormalised": removed and rows renormalised
  filter: "all",
  top: data.sides.some((side) => side.tokens.length > 40) ? 3 : 0,
  least: 0, // of the largest value shown, as a square root
  full: "whole", // the range of the measure in the layer, or "largest" of the heads shown
  whole: false, // the matrix fitted into its room
};

// Eight hues of the figures; from the ninth head on, the line's pattern is the second cue.
const HUES = ["blue", "vermillion", "green", "orange", "purple", "sky", "ink", "grey"];
const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3], [14, 4], [5, 5], [8, 3, 2, 3, 2, 3], [1, 5]];

const at = (id) => document.getElementById(id);
const stack = () => data.stacks[state.stack];
const measureNow = () => stack().measures[state.measure];
const hueOf = (head) => HUES[head % HUES.length];
// Where colour is the sign of a value, the pattern alone tells heads apart.
const dashOf = (head) => DASHES[(measureNow().signed ? head : Math.floor(head / HUES.length)) % DASHES.length];
const unitOf = (layer, head) => layer * stack().heads + head;
const countsFrom = data.countsFrom ?? 1;
// Counted from 1, or from 0; where only some layers attend, they have the model's own numbers.
const layerName = (layer) => (stack().numbers?.[layer] ?? layer) + countsFrom;
const headNumber = (head) => String(head + countsFrom);
const headName = (layer, head) => `L${layerName(layer)}·H${headNumber(head)}`;
const headNow = () => state.heads[state.heads.length - 1];
const labelOf = (layer, head) => stack().labels[layer]?.[head] ?? "";
const wide = matchMedia("(min-width: 1200px)");
const together = () => state.view === "all" && wide.matches;
const front = () => (state.view !== "all" ? state.view : wide.matches ? state.front : "model");
const shows = (view) => together() || front() === view;
let held = false; // of all four: whether the model view alone is painted yet
const waits = () => held && together();
const due = (view) => shows(view) && !(waits() && view !== "model");
const alone = (view) => !together() && front() === view;
const chosen = () => state.pointed ?? state.kept;
const same = (one, two) => one !== null && two !== null && one.side === two.side && one.index === two.index;
const count = (length) => Array.from({ length }, (_, index) => index);

// What stands on the axes hangs on these three.
const ARRANGING = ["stack", "level", "special"];

function change(patch) {
  const moved = ARRANGING.some((name) => name in patch && patch[name] !== state[name]);
  Object.assign(state, patch);
  if (moved) arrange();
  repaint();
}

function repaint() {
  for (const paint of painters) paint();
}

function point(place) {
  state.pointed = place;
  state.cell = null;
  paintHead();
  if (together()) sheets.forEach(paintAim);
  say();
}

function keep(place) {
  state.pointed = null;
  change({ kept: same(state.kept, place) ? null : place, cell: null });
}

function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function drawing(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Writing what is there already would cost a new layout.
function put(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
