// Do the same neurons make every query look where it looks, or others? All queries at once: what
// each neuron adds to the score of one key, position by position.
const allQueries = { data: null, stack: null, of: "", rows: [], untrained: [], fixed: null, kept: null, turn: 0 };
const SET = 8; // the set of the measure `position_overlap`

function buildAllQueries() {
  const choice = element("select", { id: "all-key" }, element("option", { value: "own" }, "each query’s strongest key"), element("option", { value: "chosen" }, "the chosen key"));
  choice.addEventListener("change", () => paintNeuron());
  const panel = element("div", { id: "all-panel", role: "img" });
  panel.addEventListener("pointermove", aimQuery);
  panel.addEventListener("pointerleave", leaveQuery);
  panel.addEventListener("click", () => neuron.now && ask(neuron.now.row.query));
  const title = element("span", { class: "side" }, "All queries at once");
  const beside = element("input", { type: "checkbox", id: "all-untrained" });
  beside.checked = typeof stack().detail?.untrained?.[0] === "string"; // a live page has to ask for it
  beside.addEventListener("change", () => paintNeuron());
  const choices = [element("label", { class: "choice" }, "towards ", choice), element("label", { class: "choice" }, beside, " beside an untrained network")];
  return element("div", { id: "neuron-all" }, element("div", { class: "tools" }, title, ...choices), panel, element("p", { class: "hint", id: "all-note" }));
}

function buildAllRows() {
  if (allQueries.data === data && allQueries.stack === state.stack) return; // a live page reads other texts
  Object.assign(allQueries, { data, stack: state.stack, of: "", kept: null });
  const names = (axis, tokens) => element("div", { class: `names of-${axis}` }, ...tokens.map((_, index) => {
    const name = element("span", { "data-token": index }, element("bdi", {}, legible(tokens[index])));
    name.classList.toggle("special", sideOf(axis).special[index]);
    markToken(name, axis, tokens, index);
    return name;
  }));
  const [n, m] = [queryTokens().length, keyTokens().length];
  const high = Math.max(n, m);
  const lines = drawing("svg", { viewBox: `0 0 100 ${high}`, preserveAspectRatio: "none", "aria-hidden": "true" }, ...queryTokens().map(() => drawing("line", { x1: 0, x2: 100, "vector-effect": "non-scaling-stroke" })));
  const stripOf = (kind) => {
    const marks = ["row", ...(sideOf("query").boundary ? ["between"] : [])].map((name) => element("i", { class: name }));
    return element("div", { class: `strip-of-all ${kind}` }, element("canvas", { "aria-hidden": "true" }), ...marks);
  };
  const head = ["query", `what each of ${stack().detail.dim} neurons adds`, "", "key"].map((words) => element("small", {}, words));
  at("all-panel").replaceChildren(...head, names("query", queryTokens()), stripOf(""), lines, names("key", keyTokens()));
  if (stack().detail.untrained) at("all-panel").append(element("small", { class: "untrained" }, "untrained network"), stripOf("untrained"));
  for (const [what, value] of Object.entries({ queries: n, high, boundary: sideOf("query").boundary ?? 0 })) at("all-panel").style.setProperty(`--${what}`, value);
}

// Which of several equal tokens it is, and where the second sentence begins.
function markToken(box, axis, tokens, index) {
  put(box, "data-which", which(tokens, index));
  box.classList.toggle("second", index > 0 && index === sideOf(axis).boundary);
}

// "2nd of 3"; nothing of a token that is there once.
function which(tokens, index) {
  const alike = count(tokens.length).filter((other) => tokens[other] === tokens[index]);
  const place = alike.indexOf(index) + 1;
  const ending = place % 100 > 10 && place % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][place % 10] ?? "th");
  return alike.length > 1 ? `${place}${ending} of ${alike.length}` : "";
}

// Of each query: its key, and what each neuron adds to that key's score beyond the other keys'.
function partsOfAll(layer, head, fixed, untrained = false) {
  return count(queryTokens().length).map((query) => {
    const row = neuronRow(layer, head, query, untrained);
    const keys = row.seen.filter((key) => tokensShown(query, key));
    const key = fixed === null ? keys.reduce((best, other) => (best < 0 || row.weight[other] > row.weight[best] ? other : best), -1) : keys.includes(fixed) ? fixed : -1;
    const parts = key < 0 ? new Float64Array(row.d) : neuronParts(row, key);
    const sizes = parts.map(Math.abs);
    const least = Math.max([...sizes].sort((a, b) => b - a)[Math.min(SET, row.d) - 1], Number.MIN_VALUE);
    return { key, weight: row.weight[key] ?? 0, parts, most: Math.max(...sizes), set: count(row.d).filter((one) => sizes[one] >= least) };
  });
}

// Jaccard overlap of the largest neurons of two queries, over all pairs; and that of random sets.
function overlapOfAll(rows) {
  const sets = rows.filter((row) => row.set.length).map((row) => new Set(row.set));
  let [sum, pairs] = [0, 0];
  sets.forEach((one, place) => {
    for (const other of sets.slice(place + 1)) {
      const common = [...one].filter((neuron) => other.has(neuron)).length;
      sum += common / (one.size + other.size - common);
      pairs += 1;
    }
  });
  return pairs ? sum / pairs : null;
}

function chanceOverlap(d) {
  const size = Math.min(SET, d);
  const ways = (from, some) => count(some).reduce((product, one) => (product * (from - one)) / (one + 1), 1);
  return count(size + 1).reduce((sum, common) => sum + (((ways(size, common) * ways(d - size, size - common)) / ways(d, size)) * common) / (2 * size - common), 0);
}

function paintAllQueries() {
  buildAllRows();
  const [layer, head] = [state.layer, headNow()];
  const { row, key, order } = neuron.now;
  if (!allQueries.kept) allQueries.fixed = key; // it stays while the pointer chooses queries
  const fixed = at("all-key").value === "chosen" ? allQueries.fixed : null;
  const panel = at("all-panel");
  at("all-untrained").parentNode.hidden = !stack().detail.untrained;
  const beside = at("all-untrained").checked && neuronBlock(layer, head, true) !== null;
  panel.classList.toggle("beside", beside);
  const of = [state.stack, layer, head, fixed, state.filter, order, beside, colorOf("page")].join();
  if (allQueries.of !== of) {
    Object.assign(allQueries, { of, rows: partsOfAll(layer, head, fixed), untrained: beside ? partsOfAll(layer, head, fixed, true) : [] });
    paintAllCells(panel.querySelector(".strip-of-all:not(.untrained) canvas"), allQueries.rows, order);
    if (beside) paintAllCells(panel.querySelector(".untrained canvas"), allQueries.untrained, orderUntrained(row.query, key));
    paintAllLines();
    paintAllNote(fixed, row.d);
  }
  panel.style.setProperty("--at", row.query);
  for (const [axis, index] of [["query", row.query], ["key", allQueries.rows[row.query].key]]) {
    panel.querySelectorAll(`.of-${axis} > span`).forEach((name, place) => name.classList.toggle("on", place === index));
  }
  panel.querySelectorAll("line").forEach((line, place) => line.classList.toggle("on", place === row.query));
}

// Neurons of two networks have nothing to do with each other: by contribution each has an order of its own.
function orderUntrained(query, key) {
  const row = neuronRow(state.layer, headNow(), query, true);
  return neuronOrder(row, key ?? row.seen[0], neuron.order === "key" ? "key" : "model");
}

function paintAllCells(canvas, rows, order) {
  const d = order.length;
  Object.assign(canvas, { width: d, height: rows.length });
  const [image, colors] = [new ImageData(d, rows.length), signedShades()];
  rows.forEach(({ parts, most }, query) => order.forEach((one, place) => {
    image.data.set([...colors[Math.round(255 + (255 * parts[one]) / (most || 1))], 255], (query * d + place) * 4);
  }));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function paintAllLines() {
  at("all-panel").querySelectorAll("line").forEach((line, query) => {
    const { key, weight } = allQueries.rows[query];
    put(line, "y1", query + 0.5);
    put(line, "y2", key + 0.5);
    line.style.opacity = key < 0 ? 0 : 0.12 + 0.88 * weight;
  });
}

function paintAllNote(fixed, d) {
  const [here, chance] = [overlapOfAll(allQueries.rows), chanceOverlap(d)];
  const size = Math.min(SET, d);
  const there = overlapOfAll(allQueries.untrained);
  const beside = there === null ? "" : `, in an untrained network of this shape by ${there.toFixed(2)}`;
  const same = here === null ? "" : `The ${size} largest neurons of two queries overlap by ${here.toFixed(2)} here${beside}, mean over all pairs; by chance ${chance.toFixed(2)}, and 1 if they are the same everywhere. `;
  const towards = fixed === null ? "the key that it gives most" : namedToken(keyTokens(), fixed);
  at("all-panel").setAttribute("aria-label", `All queries, neuron by neuron, towards ${towards}. ${same}`);
  const untrained = there === null ? "" : `“Untrained network” shows the same head of it, ${fixed === null ? "each query towards its own strongest key" : "towards the same key"}. `;
  at("all-note").textContent = `${same}${untrained}Blue adds to the score, vermillion takes away; full colour is the largest neuron of each row. Lines lead to ${towards}, the darker the larger the weight. Pointing at a row chooses the query, a click keeps it.`;
}

// Pointing chooses the query until the pointer leaves.
function aimQuery(event) {
  if (!neuron.now || event.pointerType === "touch") return;
  const frame = at("all-panel").querySelector("canvas").getBoundingClientRect();
  const query = Math.floor(((event.clientY - frame.top) / frame.height) * allQueries.rows.length);
  if (query < 0 || query >= allQueries.rows.length) return;
  const place = Math.floor(((event.clientX - frame.left) / frame.width) * neuron.now.row.d);
  if (!allQueries.kept) {
    allQueries.kept = { query: neuron.query, key: neuron.key };
    at("neuron-table").style.height = `${at("neuron-table").offsetHeight}px`; // else the page may move below the pointer
  }
  const key = allQueries.rows[query].key;
  const pointed = key < 0 || place < 0 || place >= neuron.now.row.d ? null : { key, place };
  showQuery({ query, key: at("all-key").value === "chosen" ? allQueries.fixed : null, pointed });
}

function leaveQuery() {
  if (allQueries.kept) showQuery({ ...allQueries.kept, pointed: null });
  allQueries.kept = null;
  at("neuron-table").style.height = "";
}

// Once a frame, however often the pointer moves.
function showQuery(patch) {
  const moved = patch.query !== neuron.query;
  Object.assign(neuron, patch);
  cancelAnimationFrame(allQueries.turn);
  allQueries.turn = requestAnimationFrame(() => {
    if (moved || !neuron.now || neuron.now.row.query !== neuron.query) paintNeuron();
    else paintNeuronAim();
    say();
  });
}
