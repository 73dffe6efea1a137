// How does the page ask, and what is behind an answer? Typing on takes back what was asked before.
const live = {
  settings: data.live,
  text: data.live.text,
  pair: data.live.pair,
  changes: { off: new Set(), even: new Set(), zero: new Set() }, // "stack.layer.head", "side.token"
  layer: null, // the only one in which values are zero; null: all
  asked: null, // the AbortController of what was asked last
  outcome: null,
  answers: 0, // since the page was opened
};
const pageName = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const PATIENCE = 250; // milliseconds after which the page says that it waits

async function send(place, body, signal) {
  const headers = { "Content-Type": "application/json", "X-Headscope-Page": pageName };
  let answer;
  try {
    answer = await fetch(place, { method: "POST", headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("No answer: headscope has ended, or cannot be reached. Start it again, and open the address that it prints.");
  }
  if (answer.ok) return answer.arrayBuffer();
  const told = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(told.error ?? `The server answered ${answer.status}.`), { status: answer.status, absent: told.absent ?? [] });
}

const numbersOf = (name) => [...live.changes[name]].map((word) => word.split(".").map(Number));
const wanted = () => ({ text: live.text, pair: live.pair, changes: { off: numbersOf("off"), even: numbersOf("even"), zero: numbersOf("zero"), layer: live.changes.zero.size ? live.layer : null } });

// What is seen stays until the answer to the newest question is there.
async function askModel() {
  live.asked?.abort();
  const asked = new AbortController();
  live.asked = asked;
  const began = performance.now();
  const waiting = setTimeout(() => write(at("status"), "Reading…"), PATIENCE);
  try {
    const buffer = await send("read", wanted(), asked.signal);
    if (live.asked === asked) answered(buffer, performance.now() - began);
  } catch (error) {
    if (live.asked === asked && error.name !== "AbortError" && error.status !== 409) refused(error);
  } finally {
    clearTimeout(waiting);
  }
}

function refused(error) {
  if (dropAbsent(error.absent ?? [])) {
    askModel();
    return;
  }
  write(at("status"), "");
  write(at("refused"), error.message);
  at("refused").hidden = false;
  document.body.classList.add("stale"); // the maps are those of the text before
}

// 4 bytes, JSON, arrays: an array is [first byte, bytes] of what follows the JSON.
function unfolded(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const told = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { ...told, part: ([from, size]) => new Uint8Array(buffer, 4 + length + from, size) };
}

function answered(buffer, spent) {
  const { data: fresh, outcome, part } = unfolded(buffer);
  at("refused").hidden = true;
  document.body.classList.remove("stale");
  live.outcome = outcome;
  take(fresh, part);
  const tokens = fresh.sides.map((side) => side.tokens.length).join(" + ");
  write(at("status"), `${tokens} tokens, read in ${Math.round(spent)} ms`);
  live.answers += 1;
  document.body.dataset.answers = live.answers; // for tests and timings
  performance.mark("answered");
}

// Tokens that the text does not have any more, and what an address asks for that is not in this model.
function dropAbsent(absent) {
  for (const [name, ...numbers] of absent) {
    if (name === "layer") live.layer = null;
    else live.changes[name].delete(numbers.join("."));
  }
  if (absent.length && !data.stacks.length) history.replaceState(null, "", location.pathname);
  return absent.length > 0;
}

// --- another example in the place of the one that is shown ------------------------------------

function take(fresh, part) {
  const opened = data.stacks.length > 0;
  const names = opened ? { measure: measureNow().name, beside: stack().measures[state.beside]?.name } : {};
  const before = opened ? stack() : null;
  data = fresh;
  for (const known of [codes, norms, neuronBlocks]) known.clear();
  data.stacks.forEach((one, place) => fillStack(one, place, part, fresh));
  Object.assign(neuron, { stack: null, now: null });
  write(at("left-out"), data.left_out);
  at("left-out").hidden = !data.left_out;
  write(at("precision"), data.precision);
  if (!opened) return begin();
  if (state.stack >= data.stacks.length) state.stack = 0;
  listStacks();
  const beside = names.beside === undefined ? -1 : measureOf(names.beside);
  state.measure = Math.max(measureOf(names.measure), 0);
  state.beside = beside < 0 || beside === state.measure ? null : beside;
  if (measureOf("difference") >= 0 && !before.measures.some((one) => one.signed)) showChange();
  if (state.level === "word" && !someWords()) state.level = "token";
  if (alike(before, stack())) keepBoard();
  at("levels").hidden = !someWords();
  at("special").parentNode.hidden = !someSpecial();
  at("special").parentNode.firstChild.data = someSink() ? "Special tokens, sink " : "Special tokens ";
  holdOthers();
  arrange();
  repaint();
  return undefined;
}

// Maps are there at once; exact weights and vectors of a head, when it is looked at.
function fillStack(one, place, part, fresh) {
  for (const measure of one.measures) {
    if (measure.data) codes.set(measure, measure.data.map(part));
    if (measure.norm) norms.set(measure, new Uint16Array(part(measure.norm).slice().buffer));
  }
  const { text, pair } = live; // of this answer: more may be typed by the time that a head is asked for
  const blocks = (more) => one.detail.heads.map(([layer, head]) => async () => {
    try {
      return new Uint8Array(await send("head", { text, pair, stack: place, layer, head, ...more }, live.asked.signal));
    } catch (error) {
      if (data === fresh && error.name !== "AbortError" && error.status !== 409) throw error;
      return new Promise(() => {}); // of a text that is not shown any more
    }
  });
  Object.assign(one.detail, { blocks: blocks({}), untrained: blocks({ untrained: true }) });
}

const measureOf = (name) => stack().measures.findIndex((measure) => measure.name === name);

// Of all heads the change is seen best; of one, both maps side by side.
function showChange() {
  if (shows("model")) Object.assign(state, { measure: measureOf("difference"), beside: null });
  else if (state.view !== "neuron") Object.assign(state, { measure: 0, beside: measureOf("versus") });
}

let viewBefore = null;
function followView() {
  const [change, other] = [measureOf("difference"), measureOf("versus")];
  const usual = state.measure === change || (state.measure === 0 && state.beside === other);
  if (viewBefore !== state.view && change >= 0 && usual) showChange();
  viewBefore = state.view;
}

const alike = (one, other) => one !== null && one.layers === other.layers && one.heads === other.heads && one.name === other.name;

// The grid keeps its cells, so that what has the focus keeps it.
function keepBoard() {
  if (boardOf && cells.length === stack().layers * stack().heads) {
    boardOf = stack();
    cells.forEach((cell, unit) => {
      const [layer, head] = partOf(unit);
      const label = labelOf(layer, head);
      put(cell, "aria-label", headName(layer, head) + (label ? `, ${label}` : ""));
      write(cell.querySelector("small"), label.replace(/ (?=%)/g, "\u00a0"));
    });
  }
  if (headsOf) headsOf = stack();
}

function listStacks() {
  const legend = at("stacks").querySelector("legend");
  const names = data.stacks.map((one, place) => [place, one.label || one.name]);
  if (at("stacks").querySelectorAll("input").length !== names.length) at("stacks").replaceChildren(legend, ...switched("stack", names, (place) => showStack(Number(place))));
  at("stacks").hidden = names.length < 2;
}

function begin() {
  state.top = data.sides.some((side) => side.tokens.length > 40) ? 3 : 0;
  holdOthers();
  Object.assign(data.start, { measure: 0, view: "all" }); // what an address leaves out
  start();
  buildTogether();
  viewBefore = state.view;
  painters.unshift(followView);
  painters.push(paintOutcome, paintChanges);
  paintOutcome();
  paintChanges();
}
