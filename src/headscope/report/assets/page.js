// What do grid, map and table share? The data, the selected head, and ways to build elements from
// text: names come from models and files, so nothing here ever parses markup.
const data = JSON.parse(document.getElementById("data").textContent);
const kindOf = (unit) => data.kinds[data.kind[unit]];
const listeners = [];
const extras = []; // unit → what a card holds beside what every page can draw
const page = { selected: null, other: null }; // other: of a chosen pair of heads
const SIGNED_STEPS = 12; // shades of each sign

// Counted from 1, or from 0; where only some layers attend, they have the model's own numbers.
const layerName = (layer) => (data.numbers?.[layer] ?? layer) + data.countsFrom;

function headName(unit) {
  return `L${layerName(Math.floor(unit / data.heads))}·H${(unit % data.heads) + data.countsFrom}`;
}

const cardId = (unit) => headName(unit).replace("·", "");

// Where a head is named, its name opens its card.
function headLink(unit) {
  return element("a", { href: `#${cardId(unit)}`, class: "head" }, headName(unit));
}

// The sentences of a head's labels; where they say little, what stands out most.
function sentencesOf(unit) {
  const labels = data.labels[unit].map(([label, sentence]) => sentence || label);
  labels.push(...data.verdicts[unit]);
  const most = data.closest[unit] ? [`most: ${data.closest[unit]}`] : [];
  return [...(labels.length ? labels : [data.nothing]), ...most];
}

// A head, or two; again: none. `loud` as of `tellAddress`.
function select(unit, other = null, loud = null) {
  const again = page.selected === unit && page.other === other;
  Object.assign(page, again ? { selected: null, other: null } : { selected: unit, other });
  for (const listener of listeners) listener(page.selected);
  tellAddress(loud);
}

const isChosen = (unit) => unit === page.selected || unit === page.other;

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

function hued(node, hue) {
  node.style.setProperty("--hue", `var(--${hue})`);
  return node;
}

function rampColor(step) {
  return `var(--ramp-${step})`;
}

// Of numbers that may lie below 0: blue above and vermillion below, 0 is the page.
function signedColor(step) {
  const hue = step < 0 ? "vermillion" : "blue";
  return `color-mix(in srgb, var(--${hue}) ${(100 * Math.abs(step)) / SIGNED_STEPS}%, var(--page))`;
}

// The mark of a kind of label.
function glyph(kind) {
  const svg = drawing("svg", { class: "mark", viewBox: "-1.5 -1.5 3 3", "aria-hidden": "true" });
  svg.append(drawing("path", { d: kind.outline }));
  return hued(svg, kind.hue);
}

function rampKey(from, to, low, high, color = rampColor) {
  const ramp = element("span", { class: "ramp", "aria-hidden": "true" });
  for (let step = from; step < to; step += 1) {
    const box = element("i");
    box.style.backgroundColor = color(step);
    ramp.append(box);
  }
  return [element("span", {}, low), ramp, element("span", {}, high)];
}

async function unzipped(text) {
  const raw = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const kindNodes = [...document.querySelectorAll("#key .kind")];
const kindKey = () => kindNodes.map((node) => node.cloneNode(true));

// Arrow keys move one focus through many marks, so that Tab passes them as one.
function roving(nodes, step) {
  let current = 0;
  nodes.forEach((node, at) => {
    node.setAttribute("tabindex", at === 0 ? "0" : "-1");
    node.addEventListener("keydown", (event) => {
      const next = step(at, event.key);
      if ((event.key === "Enter" && !node.href) || event.key === " ") {
        event.preventDefault();
        select(at);
      } else if (next !== null && nodes[next]) {
        event.preventDefault();
        nodes[next].focus();
      }
    });
    node.addEventListener("focus", () => {
      nodes[current].setAttribute("tabindex", "-1");
      node.setAttribute("tabindex", "0");
      current = at;
    });
  });
}

// Of a grid of layers by heads: where a key leads from a head.
function gridStep(at, key) {
  const [row, column] = [Math.floor(at / data.heads), at % data.heads];
  if (key === "ArrowRight") return column + 1 < data.heads ? at + 1 : null;
  if (key === "ArrowLeft") return column > 0 ? at - 1 : null;
  if (key === "ArrowDown") return row + 1 < data.layers ? at + data.heads : null;
  if (key === "ArrowUp") return row > 0 ? at - data.heads : null;
  if (key === "Home") return row * data.heads;
  if (key === "End") return row * data.heads + data.heads - 1;
  return null;
}

for (const link of document.querySelectorAll("a[data-unit]")) {
  link.addEventListener("click", () => {
    page.selected = null;
    select(Number(link.dataset.unit));
  });
}
