// Why does a token look where it looks? Query times key, neuron by neuron, down to the weight.
const neuron = {
  stack: null, // that the lists were built for
  from: undefined, // the selection of the other views that was last followed
  query: null, // token
  key: null, // token chosen; null: the one with the largest weight
  pointed: null, // {key, place}: under the pointer or the keyboard's cursor; place may be null
  order: "model",
  told: false, // whether the explanation is open
  queries: [], // elements, by token
  rows: [],
  sighted: "", // the choice that was brought into sight
  unpainted: new Set(), // rows out of sight
  now: null, // what is painted: {row, key, shown, order, sizes}
};
const WHYS = { model: "the model’s order", key: "by contribution to the chosen key", importance: "by importance in the corpus" };

function buildNeuron() {
  const note = element("p", { class: "hint", id: "neuron-note" });
  const asks = element("div", { class: "asks" });
  asks.append(element("span", { class: "side", id: "neuron-from-title" }, "Query token"));
  asks.append(element("div", { class: "strip", id: "neuron-from", role: "listbox", "aria-orientation": "horizontal", "aria-labelledby": "neuron-from-title" }));
  const order = element("select", { id: "neuron-order" });
  order.addEventListener("change", () => orderNeurons(order.value));
  const button = element("button", { type: "button", class: "ask", id: "neuron-why", "aria-expanded": "false", "aria-controls": "neuron-answer" }, "Why this weight?");
  button.addEventListener("click", () => explain(!neuron.told));
  const tools = element("div", { class: "tools" }, button, element("label", { class: "choice" }, "Neurons ", order));
  const table = element("div", { class: "neuron-table", id: "neuron-table", role: "grid", "aria-readonly": "true" });
  table.addEventListener("pointermove", (event) => event.pointerType !== "touch" && aimNeuron(neuronUnder(event)));
  table.addEventListener("pointerleave", () => aimNeuron(null));
  table.addEventListener("scroll", paintSeenRows, { passive: true });
  const work = element("div", { id: "neuron-work" }, asks, tools, buildAnswer(), table, element("div", { class: "key", id: "neuron-key" }), note, buildAllQueries());
  at("view-neuron").append(element("div", { id: "neuron-missing" }), work);
  new ResizeObserver(() => paintNeuron()).observe(at("view-neuron"));
  buildWhyHere();
}

// Beside the head view: a button that asks about what is kept there.
function buildWhyHere() {
  const button = element("button", { type: "button", class: "ask", id: "why-here" }, "Why this weight?");
  button.addEventListener("click", () => {
    Object.assign(neuron, { told: true, pointed: null });
    change({ view: "neuron", pointed: null, cell: null });
    at("tab-neuron").focus();
  });
  at("chips-hint").after(button);
}

// Lists of the stack's tokens; never of words.
function buildNeuronLists() {
  if (neuron.stack === state.stack) return;
  Object.assign(neuron, { stack: state.stack, from: undefined, query: null, key: null, pointed: null });
  neuron.queries = queryTokens().map((text, index) => buildQuery(text, index));
  at("neuron-from").replaceChildren(...neuron.queries);
  neuron.rows = keyTokens().map((text, index) => buildNeuronRow(text, index));
  at("neuron-table").replaceChildren(...buildNeuronHead(), ...neuron.rows, element("i", { class: "line first" }), element("i", { class: "line second" }));
  at("neuron-table").classList.toggle("many", keyTokens().length > 48);
  const orders = Object.keys(WHYS).filter((name) => name !== "importance" || stack().detail?.importance);
  at("neuron-order").replaceChildren(...orders.map((name) => element("option", { value: name }, WHYS[name])));
  if (!orders.includes(neuron.order)) neuron.order = "model";
  at("neuron-order").value = neuron.order;
}

function buildQuery(text, index) {
  const option = element("div", { role: "option", tabindex: "-1" }, element("bdi", {}, legible(text)));
  option.classList.toggle("special", sideOf("query").special[index]);
  markToken(option, "query", queryTokens(), index);
  option.addEventListener("click", () => ask(index));
  option.addEventListener("keydown", (event) => {
    const last = neuron.queries.length - 1;
    const next = { ArrowLeft: index - 1, ArrowUp: index - 1, ArrowRight: index + 1, ArrowDown: index + 1, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    if (!neuron.queries[next]) return;
    ask(next);
    neuron.queries[next].focus();
  });
  return option;
}

// Vectors are as many pixels as neurons, one row high; the page's style makes them large.
const vectorCanvas = () => element("canvas", { "aria-hidden": "true", height: 1 });

function buildNeuronRow(text, index) {
  const row = element("div", { role: "row", tabindex: "-1", "data-key": index });
  row.append(element("span", { role: "rowheader", class: "name" }, element("bdi", { title: legible(text) }, legible(text))));
  for (const name of ["k", "qk"]) row.append(element("span", { role: "gridcell", class: `vector ${name}` }, vectorCanvas()));
  for (const name of numberColumns()) row.append(element("span", { role: "gridcell", class: `number ${name}` }));
  row.append(element("span", { role: "gridcell", class: "number weight" }, element("i"), element("span")));
  row.firstChild.classList.toggle("special", sideOf("key").special[index]);
  markToken(row, "key", keyTokens(), index);
  put(row.firstChild, "data-which", which(keyTokens(), index));
  row.addEventListener("click", () => chooseKey(index));
  row.addEventListener("focus", () => aimNeuron({ key: index, place: neuron.pointed?.place ?? null }));
  row.addEventListener("blur", (event) => at("neuron-table").contains(event.relatedTarget) || aimNeuron(null));
  row.addEventListener("keydown", (event) => steerNeuron(event, index));
  return row;
}

// The columns between the products and the weight: what is added up, and what it becomes.
function numberColumns() {
  const { softcap, bias } = stack().detail ?? {};
  return ["dot", ...(softcap ? ["capped"] : []), ...(bias ? ["bias"] : []), ...(softcap || bias ? ["score"] : [])];
}

// Above: the query, its vector, and what each neuron does for the chosen key. Below: the columns.
function buildNeuronHead() {
  const cell = (role, name, ...children) => element("span", { role, class: name }, ...children);
  const titled = (name, words, under = "") => cell("columnheader", name, words, element("small", {}, under));
  const profile = element("canvas", { id: "neuron-profile", "aria-hidden": "true" });
  const names = { dot: ["q·k"], capped: ["capped", `at ${stack().detail?.softcap}`], bias: ["+ bias", "of position"], score: ["= score"] };
  const above = [titled("name", "query"), titled("vector k", "query vector q"), cell("columnheader", "vector qk", element("span", { id: "neuron-remark" }))];
  const query = [cell("rowheader", "name", element("bdi", { id: "neuron-query" })), cell("gridcell", "vector k", vectorCanvas()), cell("gridcell", "vector qk", profile)];
  const numbers = numberColumns().map((name) => titled(`number ${name}`, ...names[name]));
  const columns = [titled("name", "key"), titled("vector k", "key vector k", `${stack().detail?.dim} neurons`), titled("vector qk", "q × k", "neuron by neuron"), ...numbers, titled("number weight", "weight", "softmax")];
  return [element("div", { role: "row", class: "above" }, ...above), element("div", { role: "row", class: "query" }, ...query), element("div", { role: "row", class: "heads" }, ...columns)];
}

function ask(query) {
  Object.assign(neuron, { query, key: null, pointed: null });
  allQueries.kept = null;
  const index = places("query").findIndex((place) => place.members.includes(query));
  neuron.from = index < 0 ? null : { side: "query", index };
  change({ kept: neuron.from, pointed: null, cell: null });
}

function chooseKey(key) {
  neuron.key = key;
  paintNeuron();
  say();
}

function orderNeurons(order) {
  Object.assign(neuron, { order, pointed: null });
  paintNeuron();
  say();
}

// Opens the explanation of the weight at these places of the axes.
function askWeight(query, key) {
  const [from, to] = [places("query")[query].members[0], places("key")[key].members[0]];
  buildNeuronLists();
  Object.assign(neuron, { query: from, key: to, from: { side: "query", index: query }, told: true, pointed: null });
}

// Its [query, key] on the axes of now, while its row is kept; else null.
function askedCell() {
  if (neuron.stack !== state.stack || neuron.query === null || neuron.key === null) return null;
  const cell = [placeOf.query[neuron.query], placeOf.key[neuron.key]];
  return cell[1] >= 0 && same(state.kept, { side: "query", index: cell[0] }) ? cell : null;
}

// Follows what was selected in the other views, else stays with what was asked last.
function settleNeuron(block) {
  const place = together() ? state.kept : chosen(); // what is pointed at moves the other views alone
  if (neuron.from === undefined || !(place === neuron.from || same(place, neuron.from))) {
    neuron.from = place;
    const members = place ? places(place.side)[place.index].members : [];
    if (place?.side === "query" && !members.includes(neuron.query)) Object.assign(neuron, { query: members[0], key: null });
    if (place?.side === "key") Object.assign(neuron, { key: members[0], query: strongestQuery(block, members[0]) });
  }
  neuron.query ??= strongestQuery(block, null);
}

// The query, no special token if there is another, that gives most: to this key or to any other token.
function strongestQuery(block, key) {
  const [from, to] = [sideOf("query").special, sideOf("key").special];
  const most = (query) => Math.max(...to.map((special, other) => {
    const meant = key === null ? !special && !(stack().queries === stack().keys && other === query) : other === key;
    return meant && tokensShown(query, other) ? block.weight[query * to.length + other] : -1;
  }));
  const sizes = from.map((special, query) => most(query) - (special ? 2 : 0));
  return sizes.indexOf(Math.max(...sizes));
}

function neuronUnder(event) {
  const row = event.target.closest?.("[data-key]");
  if (!row || !neuron.now) return null;
  const canvas = event.target.closest(".vector")?.querySelector("canvas");
  const frame = canvas?.getBoundingClientRect();
  const place = canvas ? Math.floor(((event.clientX - frame.left) / frame.width) * neuron.now.row.d) : null;
  return { key: Number(row.dataset.key), place: place === null || place < 0 || place >= neuron.now.row.d ? null : place };
}

function aimNeuron(pointed) {
  if (pointed?.key === neuron.pointed?.key && pointed?.place === neuron.pointed?.place) return;
  neuron.pointed = pointed;
  paintNeuronAim();
  say();
}

function steerNeuron(event, key) {
  if (!neuron.now) return;
  const { row, shown } = neuron.now;
  const place = neuron.pointed?.place ?? null;
  const rows = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
  const cells = { ArrowRight: place === null ? 0 : place + 1, ArrowLeft: place === null ? row.d - 1 : place - 1, Home: 0, End: row.d - 1 };
  if (event.key in rows) {
    const next = Math.min(Math.max(shown.indexOf(key) + rows[event.key], 0), shown.length - 1);
    neuron.rows[shown[next]].focus();
  } else if (event.key in cells) aimNeuron({ key, place: Math.min(Math.max(cells[event.key], 0), row.d - 1) });
  else if (event.key === "Enter" || event.key === " ") chooseKey(key);
  else if (event.key === "Escape") aimNeuron({ key, place: null });
  else return;
  event.preventDefault();
}
