// What do the views share? The example, its values, what is selected, and ways to build elements
// from text: tokens come from anywhere, so nothing here ever parses markup.
const data = JSON.parse(document.getElementById("data").textContent);
const n = data.tokens.length;
const { layers, heads, causal } = data.model;
const maps = [];
const painters = [];
const state = {
  view: "model",
  layer: 0,
  heads: [0], // of the layer, in the order chosen; the last one is the head that is named
  kept: null, // {side: "query" | "key", index}
  pointed: null,
  cell: null, // [query, key] under the matrix's cursor
  measure: 0,
  filter: "all",
  dim: false,
  top: n > 40 ? 3 : 0,
  least: 0, // of the largest value shown, as a square root
  full: "whole", // the range of the measure in the layer, or "largest" of the heads shown
};

// Eight hues of the figures; from the ninth head on, the line's pattern is the second cue.
const HUES = ["blue", "vermillion", "green", "orange", "purple", "sky", "ink", "grey"];
const DASHES = [[], [7, 3], [2, 3], [8, 3, 2, 3]];

const at = (id) => document.getElementById(id);
const hueOf = (head) => HUES[head % HUES.length];
const dashOf = (head) => DASHES[Math.floor(head / HUES.length) % DASHES.length];
const unitOf = (layer, head) => layer * heads + head;
const headName = (layer, head) => `L${layer + 1}·H${head + 1}`;
const headNow = () => state.heads[state.heads.length - 1];
const chosen = () => state.pointed ?? state.kept;

function change(patch) {
  Object.assign(state, patch);
  for (const paint of painters) paint();
}

// A measure is unpacked when it is first shown.
async function unpacked(place) {
  maps[place] ??= await unpack(data.measures[place]);
}

async function unpack(measure) {
  if (measure.norm) return weighted(measure, await unpack(data.measures[0]));
  const raw = Uint8Array.from(atob(measure.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  if (bytes.length !== layers * heads * n * n) throw new Error("maps and tokens do not fit together");
  return bytes;
}

// Weights times the norms of the keys, in the code of any other measure.
function weighted(measure, codes) {
  const scale = data.measures[0].scale;
  return codes.map((byte, place) => {
    const unit = Math.floor(place / (n * n));
    const value = (byte / 255) ** 2 * scale[unit] * measure.norm[unit * n + (place % n)];
    return Math.round(Math.sqrt(Math.min(value / measure.scale[unit], 1)) * 255);
  });
}

// Square root of the share of the head's largest value, 0 to 255: what colours stand for.
function byteAt(unit, query, key) {
  return maps[state.measure][(unit * n + query) * n + key];
}

function valueAt(unit, query, key) {
  return (byteAt(unit, query, key) / 255) ** 2 * data.measures[state.measure].scale[unit];
}

function visible(query, key) {
  if (causal && key > query) return false;
  if (state.filter === "all") return true;
  const side = (index) => (index < data.boundary ? "A" : "B");
  return state.filter === side(query) + side(key);
}

const dimmed = (query, key) => state.dim && (data.special[query] || data.special[key]);

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

const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// 256 shades [red, green, blue] between the steps of the page's ramp.
function shades() {
  const steps = [];
  for (let step = 0; colorOf(`ramp-${step}`); step += 1) steps.push(parts(colorOf(`ramp-${step}`)));
  return Array.from({ length: 256 }, (_, byte) => {
    const place = (byte / 255) * (steps.length - 1);
    const low = Math.min(Math.floor(place), steps.length - 2);
    return steps[low].map((from, channel) => from + (place - low) * (steps[low + 1][channel] - from));
  });
}

const parts = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));

function rampKey(low, middle, high, words) {
  const ramp = element("span", { class: "ramp", "aria-hidden": "true" });
  for (let step = 0; step < 24; step += 1) {
    const box = element("i");
    box.style.backgroundColor = `var(--ramp-${step})`;
    ramp.append(box);
  }
  const ticks = element("span", { class: "ticks" }, element("span", {}, low), element("span", {}, middle), element("span", {}, high));
  return [element("span", { class: "scale" }, ramp, ticks), element("span", { class: "words" }, words)];
}

// Control characters and direction marks would break lines, vanish, or turn what follows around.
function tokenText(index) {
  const text = data.tokens[index].replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/[\p{Cc}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, "�");
  return text.trim() === "" ? text.replace(/\s/g, "␣") || "∅" : text;
}

function token(index) {
  return element("bdi", {}, tokenText(index));
}
