// What does the selection say in words? One sentence, shown and read aloud.
const TOLD = 4; // heads, or partners
const LONGEST = 24; // letters of a token
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

const quoted = (side, index) => quotedText(placeText(side, index));

function quotedText(whole) {
  const letters = [...whole];
  const text = letters.length > LONGEST ? `${letters.slice(0, LONGEST).join("")}…` : letters.join("");
  return RIGHT_TO_LEFT.test(text) ? `‘\u2068${text}\u2069’` : `‘${text}’`;
}

// Attention to a hundredth, other measures to a thousandth of their order of size; or finer.
function number(value, finer = 0, place = state.measure) {
  const measure = stack().measures[place];
  const largest = Math.max(...scalesOf(measure));
  const order = largest > 0 ? Math.floor(Math.log10(largest)) : 0;
  const digits = measure.unit === "probability" ? 2 : Math.min(Math.max(3 - order, 0), 9);
  const text = Math.abs(value).toFixed(digits + finer);
  if (measure.signed && Number(text) !== 0) return (value < 0 ? "−" : "+") + text;
  return text;
}

const amount = (value, place) => number(Math.abs(value), 0, place).replace("+", "");

// The partner with the value furthest from 0 among those that are shown, or null.
function strongest(place, layer, head, { side, index }) {
  const axis = side === "query" ? "key" : "query";
  const { values } = mapOf(place, layer, head);
  const columns = places("key").length;
  let best = null;
  for (let other = 0; other < places(axis).length; other += 1) {
    const [query, key] = side === "query" ? [index, other] : [other, index];
    if (!visible(query, key) || (state.special === "dimmed" && special(axis, other))) continue;
    const value = values[query * columns + key];
    if (best === null || Math.abs(value) > Math.abs(best.value)) best = { other, value };
  }
  return best;
}

const thing = () => (state.level === "word" ? "word" : "token");

function tokenSentence(place, layer, which, { side, index }) {
  const axis = side === "query" ? "key" : "query";
  if (ofLayer(stack().measures[place])) which = which.slice(0, 1);
  const found = which.map((head) => [head, strongest(place, layer, head, { side, index })]);
  const some = found.filter(([, best]) => best !== null && best.value !== 0);
  some.sort((one, two) => Math.abs(two[1].value) - Math.abs(one[1].value));
  const subject = `${thing()} ${quoted(side, index)}`;
  if (!some.length) return `${subject} has no weight among what is shown`;
  const measure = stack().measures[place];
  const partner = ([head, best]) => (which.length > 1 ? `H${headNumber(head)} ` : "") + partnerWords(measure, place, side, quoted(axis, best.other), best.value);
  const rest = some.length > TOLD ? ` and ${some.length - TOLD} more` : "";
  const aside = state.special === "dimmed" && someSpecial() ? " (special tokens aside)" : "";
  return `${subject}${verb(measure, side)} ${some.slice(0, TOLD).map(partner).join("; ")}${rest}${aside}`;
}

function verb(measure, side) {
  if (measure.signed) return ":";
  if (ofLayer(measure)) return { query: " takes most from", key: " gives most to" }[side];
  if (measure.unit === "probability") return { query: " attends most to", key: " is attended most by" }[side];
  return { query: ` has its largest ${measure.label} from`, key: ` gives its largest ${measure.label} to` }[side];
}

function partnerWords(measure, place, side, name, value) {
  if (!measure.signed) return `${name}, ${number(value, 0, place)}`;
  return `${side === "query" ? "to" : "from"} ${name} ${amount(value, place)} ${comparison(measure, value)}`;
}

function comparison(measure, value) {
  const other = stack().measures[measure.subtrahend]?.label;
  return `${value < 0 ? "less" : "more"}${other ? ` than ${other}` : ""}`;
}

function cellSentence(layer, head, [query, key]) {
  const pair = `${quoted("query", query)} → ${quoted("key", key)}`;
  if (!seen(query, key)) return `${pair}: later, not seen`;
  if (!visible(query, key)) return `${pair}: not among the sentences shown`;
  const told = (place) => {
    const measure = stack().measures[place];
    const value = valueOf(place, layer, head, query, key);
    const text = number(value, exactly(layer, head) && place === 0 ? 3 : 1, place);
    return measure.signed && value !== 0 ? `${text}, ${comparison(measure, value)}` : text;
  };
  const beside = state.beside === null || !isHere(state.beside, layer) ? "" : `; ${stack().measures[state.beside].label} ${told(state.beside)}`;
  return `${pair}: ${told(state.measure)}${beside}`;
}

// The pointed cell of the model view may be another head than the one selected.
function say(layer = state.layer, which = state.heads, words = "") {
  if (front() === "neuron") words = neuronSentence();
  else if (!isHere(state.measure, layer)) return;
  const place = chosen();
  let text = words;
  if (!text && front() === "matrix" && state.cell) text = cellSentence(layer, headNow(), state.cell);
  else if (!text && place) text = tokenSentence(state.measure, layer, front() === "matrix" ? [headNow()] : which, place);
  const one = front() === "matrix" || front() === "neuron";
  const several = which.length > 1 && !one ? `L${layerName(layer)}, ${which.length} heads` : headName(layer, one ? headNow() : which[0]);
  const shown = ofLayer(measureNow()) && front() !== "neuron" ? `Layer ${layerName(layer)}` : several;
  at("readout").replaceChildren(element("b", {}, shown), ` ${text || INVITES[front()]}`);
}

const INVITES = {
  model: "Point at a map, or move with the arrow keys; Enter opens it.",
  head: "Point at a token, or move with the arrow keys; a click keeps it.",
  matrix: "Point at a cell, or move with the arrow keys; a click or Enter tells why its weight is as large.",
};
