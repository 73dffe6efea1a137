// Why this weight? The scores against each other, and the neurons that make the difference.
const MOST_PARTS = 6; // neurons told one by one
const answerPainters = []; // of the live page: what the model is asked for more

function buildAnswer() {
  const box = element("section", { id: "neuron-answer", class: "answer", "aria-labelledby": "neuron-question", tabindex: "-1", hidden: "" });
  box.append(element("h2", { id: "neuron-question" }), element("p", { id: "neuron-told" }));
  const scores = element("div", {}, element("h3", {}, "From scores to weights"), element("table", { id: "neuron-scores" }), element("p", { class: "hint", id: "neuron-rounding" }));
  const made = element("div", {}, element("h3", { id: "neuron-made" }), element("table", { id: "neuron-parts" }));
  const more = element("p", { class: "hint" }, "Which parts of the model wrote the query and the key is computed on the page of headscope serve.");
  box.append(element("div", { class: "halves" }, scores, made), element("div", { id: "neuron-writers" }, more));
  at("view-matrix").append(element("p", { class: "note", id: "unanswered", role: "status" }));
  return box;
}

// The answer stands above the vectors; where the matrix alone is seen, beside its map.
function placeAnswer(beside) {
  const [box, home] = [at("neuron-answer"), at(beside ? "view-matrix" : "neuron-work")];
  at("view-matrix").classList.toggle("asked", beside);
  write(at("unanswered"), "");
  if (box.parentNode !== home) {
    if (beside) home.append(box);
    else at("neuron-table").before(box);
  }
  if (beside) box.hidden = true;
}

function explain(open) {
  neuron.told = open;
  paintNeuron();
}

function paintAnswer() {
  const { row, key } = neuron.now;
  at("neuron-why").setAttribute("aria-expanded", neuron.told);
  at("neuron-why").disabled = key === null;
  at("neuron-answer").hidden = !neuron.told || key === null;
  if (at("neuron-answer").hidden) return;
  const rival = rivalOf(row, key);
  const name = (index) => namedToken(keyTokens(), index);
  at("neuron-question").textContent = `Why does ${namedToken(queryTokens(), row.query)} give ${name(key)} ${fourDigits(row.weight[key])}?`;
  at("neuron-told").textContent = answerWords(row, key, rival, name);
  paintScores(row, key, rival);
  paintParts(row, key);
  for (const paint of answerPainters) paint(row, key);
}

// The key with the largest score among the others.
function rivalOf(row, key) {
  const others = row.seen.filter((other) => other !== key);
  return others.length ? others.reduce((best, other) => (row.score[other] > row.score[best] ? other : best)) : null;
}

function answerWords(row, key, rival, name) {
  if (rival === null) return `${name(key)} is the only key that is seen: the softmax of a single score is 1.`;
  const { neurons, bias, cap, whole } = scoreParts(row, key);
  const [score, other] = [row.score[key], row.score[rival]];
  const mean = meanOver(row.seen.filter((one) => one !== key), (one) => row.score[one]);
  const first = score >= other
    ? `Its score, ${signed(score)}, is the highest of ${row.seen.length} keys: the runner-up, ${name(rival)}, has ${signed(other)}.`
    : `Its score, ${signed(score)}, is ${signed(other - score)} below the highest, ${signed(other)} of ${name(rival)}: its weight is e^−${signed(other - score)} = ${Math.exp(score - other).toPrecision(2)} of that key’s.`;
  const side = whole >= 0 ? 1 : -1;
  const most = [...neurons.keys()].sort((one, two) => side * (neurons[two] - neurons[one])).slice(0, 3);
  const sum = most.reduce((all, one) => all + neurons[one], 0);
  const list = most.map((one) => one + 1);
  const named = list.length > 1 ? `Neurons ${list.slice(0, -1).join(", ")} and ${list.at(-1)} add` : `Neuron ${list[0]} adds`;
  const rest = [stack().detail.bias ? `the position bias ${plus(bias)}` : "", stack().detail.softcap ? `the cap on scores ${plus(cap)}` : ""].filter(Boolean);
  return `${first} It lies ${signed(Math.abs(whole))} ${whole >= 0 ? "above" : "below"} the mean of the other keys, ${signed(mean)}. ${named} ${plus(sum)} to that${rest.length ? `, ${rest.join(", ")}` : ""}.`;
}

const fourDigits = (value) => (value > 0 && value < 0.00005 ? "< 0.0001" : value.toFixed(4));
const plus = (value) => (signed(value).startsWith("−") ? signed(value) : `+${signed(value)}`);

function tableRow(cells, kind = "") {
  const line = element("tr", { class: kind });
  cells.forEach((cell, place) => line.append(place || kind === "heads" ? element(kind === "heads" ? "th" : "td", kind === "heads" ? { scope: "col" } : {}, cell) : element("th", { scope: "row" }, cell)));
  return line;
}

// score -> exp -> share, for this key, the strongest other one, and the rest.
function paintScores(row, key, rival) {
  const rest = row.seen.filter((other) => other !== key && other !== rival);
  const one = (index) => [element("bdi", {}, legible(keyTokens()[index])), signed(row.score[index]), fourDigits(row.exp(index)), fourDigits(row.share(index))];
  const rows = [tableRow(["key", "score", `e^(score − ${signed(row.top)})`, "share"], "heads"), tableRow(one(key), "this")];
  if (rival !== null) rows.push(tableRow(one(rival)));
  if (rest.length) {
    const all = rest.reduce((sum, index) => sum + row.exp(index), 0);
    rows.push(tableRow([`${rest.length} other${rest.length > 1 ? "s" : ""}`, `mean ${signed(meanOver(rest, (index) => row.score[index]))}`, fourDigits(all), fourDigits(all / row.sum)]));
  }
  if (row.given < 1) rows.push(tableRow(["tokens not on this page", "", (row.sum * (1 - row.given)).toFixed(4), (1 - row.given).toFixed(4)]));
  rows.push(tableRow(["sum", "", row.sum.toFixed(4), "1.0000"], "sum"));
  at("neuron-scores").replaceChildren(...rows);
  const off = Math.abs(row.share(key) - row.weight[key]) >= 0.00005;
  at("neuron-rounding").textContent = `Weight: e^(${signed(row.score[key])} − ${signed(row.top)}) ÷ sum = ${fourDigits(row.exp(key))} ÷ ${row.sum.toFixed(4)} = ${fourDigits(row.share(key))}.${off ? ` The model’s own weight is ${row.weight[key].toFixed(4)}: vectors are stored here with ${stack().detail.bits ?? 8} bits a number, weights exactly.` : ""}`;
}

// A bar to the right of the middle for what raises the score, to the left for what lowers it.
function partRow(name, value, largest) {
  const bar = element("i", { class: value < 0 ? "less" : "more" });
  bar.style.width = `${(Math.abs(value) / largest) * 50}%`;
  return tableRow([name, element("span", { class: "part" }, bar), plus(value)]);
}

function paintParts(row, key) {
  const { neurons, cap, bias, whole } = scoreParts(row, key);
  const order = [...neurons.keys()].sort((one, two) => Math.abs(neurons[two]) - Math.abs(neurons[one]));
  const [most, others] = [order.slice(0, MOST_PARTS), order.slice(MOST_PARTS)];
  const parts = most.map((one) => [`neuron ${one + 1}`, neurons[one]]);
  if (others.length) parts.push([`${others.length} other neuron${others.length > 1 ? "s" : ""}`, others.reduce((sum, one) => sum + neurons[one], 0)]);
  if (stack().detail.softcap) parts.push(["cap on scores", cap]);
  if (stack().detail.bias) parts.push(["position bias", bias]);
  const largest = Math.max(...parts.map(([, value]) => Math.abs(value))) || 1;
  at("neuron-made").textContent = `Score beyond the other keys’ mean: ${plus(whole)}`;
  at("neuron-parts").replaceChildren(...parts.map(([name, value]) => partRow(name, value, largest)), tableRow(["together", "", plus(whole)], "sum"));
}
