// What does the selection say in words? One sentence, shown and read aloud.
const TOLD = 4; // heads
const LONGEST = 24; // letters of a token
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const isAttention = () => data.measures[state.measure].name === "attention";

function quoted(index) {
  const letters = [...tokenText(index)];
  const text = letters.length > LONGEST ? `${letters.slice(0, LONGEST).join("")}…` : letters.join("");
  return RIGHT_TO_LEFT.test(text) ? `‘\u2068${text}\u2069’` : `‘${text}’`;
}

// Attention to a hundredth, other measures to a thousandth of their order of size; or finer.
function number(value, finer = 0) {
  const largest = Math.max(...data.measures[state.measure].scale);
  const order = largest > 0 ? Math.floor(Math.log10(largest)) : 0;
  return value.toFixed((isAttention() ? 2 : Math.min(Math.max(3 - order, 0), 9)) + finer);
}

// The partner with the largest value among those that are shown, or null.
function strongest(unit, { side, index }) {
  let best = null;
  for (let other = 0; other < n; other += 1) {
    const [query, key] = side === "query" ? [index, other] : [other, index];
    if (!visible(query, key) || (state.dim && data.special[other])) continue;
    const value = valueAt(unit, query, key);
    if (best === null || value > best.value) best = { other, value };
  }
  return best;
}

function tokenSentence(layer, which, { side, index }) {
  const found = which.map((head) => [head, strongest(unitOf(layer, head), { side, index })]);
  const some = found.filter(([, best]) => best !== null && best.value > 0);
  some.sort((one, two) => two[1].value - one[1].value);
  if (!some.length) return `token ${quoted(index)} has no weight among what is shown`;
  const label = data.measures[state.measure].label;
  const verbs = isAttention()
    ? { query: "attends most to", key: "is attended most by" }
    : { query: `has its largest ${label} from`, key: `gives its largest ${label} to` };
  const partner = ([head, best]) =>
    `${which.length > 1 ? `H${head + 1} ` : ""}${quoted(best.other)}, ${number(best.value)}`;
  const rest = some.length > TOLD ? ` and ${some.length - TOLD} more` : "";
  const aside = state.dim && data.special.some(Boolean) ? " (special tokens aside)" : "";
  return `token ${quoted(index)} ${verbs[side]} ${some.slice(0, TOLD).map(partner).join("; ")}${rest}${aside}`;
}

function cellSentence(layer, head, [query, key]) {
  const pair = `${quoted(query)} → ${quoted(key)}`;
  if (causal && key > query) return `${pair}: later, not seen`;
  if (!visible(query, key)) return `${pair}: not among the sentences shown`;
  return `${pair}: ${number(valueAt(unitOf(layer, head), query, key), 1)}`;
}

// The pointed cell of the model view may be another head than the one selected.
function say(layer = state.layer, which = state.heads, words = "") {
  const name = which.length > 1 ? `L${layer + 1}, ${which.length} heads` : headName(layer, which[0]);
  const place = chosen();
  let text = words;
  if (!text && state.view === "matrix" && state.cell) text = cellSentence(layer, headNow(), state.cell);
  else if (!text && place) text = tokenSentence(layer, which, place);
  const shown = state.view === "matrix" ? headName(layer, headNow()) : name;
  at("readout").replaceChildren(element("b", {}, shown), ` ${text || INVITES[state.view]}`);
}

const INVITES = {
  model: "Point at a map, or move with the arrow keys; Enter opens it.",
  head: "Point at a token, or move with the arrow keys; a click keeps it.",
  matrix: "Point at a cell, or move with the arrow keys.",
};
