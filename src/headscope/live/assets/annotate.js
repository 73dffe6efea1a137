// Which map is shown, and what does the annotator say of it? A label counts once the server has
// answered that it is on disk; until then the map stays where it is.
const data = JSON.parse(document.getElementById("data").textContent);
const COUNT = data.sizes.length;
const FAR = 16; // maps kept at hand
const PAD = 7; // pixels around the map, for marks
const at = (id) => document.getElementById(id);
const canvas = at("map");
const kept = new Map(); // number -> promise of its bytes
const state = {
  number: 0,
  bytes: null, // of the map that is shown; null until it is there
  busy: false, // the server is asked
};

const titleOf = (name) => data.classes.find((one) => one.name === name).title;
const labelled = () => data.labels.filter((label) => label !== null).length;
const inside = (number) => Math.min(Math.max(number, 0), COUNT - 1);

// The first map without a label from this one on, all round; -1 if there is none.
function openFrom(number) {
  for (let step = 0; step < COUNT; step += 1) {
    if (data.labels[(number + step) % COUNT] === null) return (number + step) % COUNT;
  }
  return -1;
}

// What the server says, or an error that tells what went wrong.
async function ask(place, options = {}) {
  let answer = null;
  try {
    answer = await fetch(place, { ...options, cache: "no-store", credentials: "omit" });
  } catch {
    throw new Error("The server does not answer. All labels up to here are kept: run the same headscope command again and open the address that it prints.");
  }
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    throw new Error(`The server refused: ${told.error ?? answer.status}`);
  }
  return answer;
}

const send = (place, given) =>
  ask(place, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(given) });

function bytesOf(number) {
  if (!kept.has(number)) {
    const coming = ask(`maps/${number}`).then(async (answer) => new Uint8Array(await answer.arrayBuffer()));
    coming.catch(() => kept.delete(number));
    kept.set(number, coming);
    if (kept.size > FAR) kept.delete(kept.keys().next().value);
  }
  return kept.get(number);
}

function fail(error, before = "") {
  at("failure").textContent = before + error.message;
  at("failure").hidden = false;
}

const well = () => { at("failure").hidden = true; };
const say = (text) => { at("said").textContent = text; };

async function show(number) {
  state.number = number;
  state.bytes = null;
  tell();
  try {
    const bytes = await bytesOf(number);
    if (state.number !== number) return;
    state.bytes = bytes;
    well();
    paint();
    document.body.dataset.shown = number;
    if (number + 1 < COUNT) bytesOf(number + 1).catch(() => {}); // told when it is shown
  } catch (error) {
    if (state.number === number) {
      blank();
      fail(error, `Map ${number} cannot be shown. `);
    }
  }
}

// One request after the other: a key pressed meanwhile would label a map not yet seen.
async function once(work) {
  if (state.busy) return;
  state.busy = true;
  try {
    await work();
  } finally {
    state.busy = false;
  }
}

const label = (name) => once(async () => {
  const number = state.number;
  if (state.bytes === null) return;
  try {
    await send("label", { number, label: name });
  } catch (error) {
    fail(error, `Map ${number} was not labelled. `);
    return;
  }
  well();
  data.labels[number] = name;
  const next = openFrom(inside(number + 1));
  say(`Map ${number}: ${titleOf(name).toLowerCase()}.${next < 0 ? " All maps are labelled." : ""}`);
  await show(next < 0 ? inside(number + 1) : next);
});

const undo = () => once(async () => {
  let number = null;
  try {
    number = (await (await send("undo", {})).json()).number;
  } catch (error) {
    fail(error, "Nothing was undone. ");
    return;
  }
  well();
  if (number === null) {
    say("There is nothing to undo.");
    return;
  }
  data.labels[number] = null;
  say(`The label of map ${number} was taken back.`);
  await show(number);
});

const walk = (step) => { if (!state.busy) show(inside(state.number + step)); };

function tell() {
  const { number } = state;
  const name = data.labels[number];
  const done = labelled();
  at("progress").textContent = `${done} of ${COUNT} labelled`;
  at("bar").value = done;
  const words = document.createElement("b");
  words.textContent = `Map ${number}`;
  at("name").replaceChildren(words, ` · ${name === null ? "no label yet" : titleOf(name).toLowerCase()}`);
  at("back").disabled = number === 0;
  at("on").disabled = number === COUNT - 1;
  at("undo").disabled = done === 0;
  at("next").hidden = name === null || done === COUNT;
  at("second").hidden = data.boundaries[number] < 1;
  for (const button of document.querySelectorAll("[data-name]")) {
    button.setAttribute("aria-pressed", button.dataset.name === name);
  }
}

// --- drawing ---------------------------------------------------------------------------------

const parts = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));

// The page's ramp, from its own colour on, as [red, green, blue] steps.
function ramp() {
  const style = getComputedStyle(document.documentElement);
  const steps = [];
  for (let step = 0; style.getPropertyValue(`--ramp-${step}`); step += 1) {
    steps.push(parts(style.getPropertyValue(`--ramp-${step}`).trim()));
  }
  return steps;
}

// 256 shades between the steps, as pixels.
function shadesOf(steps) {
  return Array.from({ length: 256 }, (_, code) => {
    const place = (code / 255) * (steps.length - 1);
    const low = Math.min(Math.floor(place), steps.length - 2);
    const [red, green, blue] = steps[low].map((tone, channel) => Math.round(tone + (place - low) * (steps[low + 1][channel] - tone)));
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}

// Where there are more tokens than pixels, each pixel shows the largest of its weights.
function pooled(bytes, size, side) {
  if (side >= size) return bytes;
  const found = new Uint8Array(side * side);
  bytes.forEach((value, place) => {
    const row = Math.floor((Math.floor(place / size) * side) / size);
    const to = row * side + Math.floor(((place % size) * side) / size);
    if (value > found[to]) found[to] = value;
  });
  return found;
}

// Every token gets the same whole number of the screen's pixels.
function roomFor(size) {
  const dense = window.devicePixelRatio || 1;
  const wide = at("stage").clientWidth - 2 * PAD;
  const high = Math.max(window.innerHeight - (window.innerWidth < 832 ? 490 : 190), 260);
  const side = Math.min(wide, high, 760);
  at("stage").style.height = `${side + 2 * PAD}px`;
  const room = Math.max(Math.floor(side * dense), 1);
  return { room: room >= size ? Math.floor(room / size) * size : room, dense };
}

function paint() {
  if (state.bytes === null) return;
  const size = data.sizes[state.number];
  const { room, dense } = roomFor(size);
  const cells = Math.min(size, room);
  const shades = shadesOf(ramp());
  const image = new ImageData(cells, cells);
  const pixels = new Int32Array(image.data.buffer);
  pooled(state.bytes, size, cells).forEach((code, place) => { pixels[place] = shades[code]; });
  canvas.width = cells;
  canvas.height = cells;
  canvas.getContext("2d").putImageData(image, 0, 0);
  canvas.style.width = `${room / dense}px`;
  canvas.style.height = `${room / dense}px`;
  mark(room / dense, size);
}

function blank() {
  canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
  at("ticks").replaceChildren();
}

// Where the second segment begins, on all four sides of the frame; above and to the left, which
// tokens are special (1) or punctuation (2).
function mark(side, size) {
  const boundary = data.boundaries[state.number];
  const place = PAD + (boundary / size) * side - 0.75;
  const far = PAD + side + 1;
  const marks = boundary < 1 ? [] : [
    { left: place, top: 0, width: 1.5, height: PAD - 1 }, { left: place, top: far, width: 1.5, height: PAD - 1 },
    { left: 0, top: place, width: PAD - 1, height: 1.5 }, { left: far, top: place, width: PAD - 1, height: 1.5 },
  ];
  data.kinds[state.number].forEach((kind, token) => {
    if (kind === 0) return;
    const start = PAD + (token / size) * side;
    const wide = Math.max(side / size, 1.5);
    marks.push({ kind, left: start, top: 0, width: wide, height: PAD - 3 }, { kind, left: 0, top: start, width: PAD - 3, height: wide });
  });
  at("ticks").replaceChildren(...marks.map(({ kind = 0, ...given }) => {
    const tick = document.createElement("i");
    if (kind) tick.dataset.kind = kind;
    for (const [name, value] of Object.entries(given)) tick.style[name] = `${value}px`;
    return tick;
  }));
}

function key() {
  at("ramp").replaceChildren(...ramp().map((shade) => {
    const box = document.createElement("i");
    box.style.backgroundColor = `rgb(${shade.join(" ")})`;
    return box;
  }));
}

// --- hands -----------------------------------------------------------------------------------

const HANDS = { u: undo, U: undo, Backspace: undo, ArrowLeft: () => walk(-1), ArrowRight: () => walk(1) };
for (const one of data.classes) HANDS[one.key] = () => label(one.name);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(HANDS, event.key)) return;
  event.preventDefault();
  // A key held down labels one map, not all of them.
  if (!event.repeat || event.key.startsWith("Arrow")) HANDS[event.key]();
});
for (const button of document.querySelectorAll("[data-name]")) {
  button.addEventListener("click", () => label(button.dataset.name));
}
at("undo").addEventListener("click", undo);
at("back").addEventListener("click", () => walk(-1));
at("on").addEventListener("click", () => walk(1));
at("next").addEventListener("click", () => show(inside(openFrom(state.number))));
window.addEventListener("resize", paint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { key(); paint(); });

key();
if (openFrom(0) < 0) say("All maps are labelled.");
show(inside(openFrom(0)));
