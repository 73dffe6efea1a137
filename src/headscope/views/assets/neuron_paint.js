// How does the neuron view look? Rows of vectors as colours, numbers beside them, and in words.
function paintNeuron() {
  at("why-here").hidden = shows("neuron") || shows("matrix");
  const here = due("neuron");
  const beside = alone("matrix") && neuron.told && askedCell() !== null; // the answer alone, beside the map
  placeAnswer(beside);
  if (!here && !beside) return;
  buildNeuronLists();
  const [layer, head] = [state.layer, headNow()];
  const shown = canWhy(layer, head);
  const block = shown ? neuronBlock(layer, head) : null;
  at("neuron-work").hidden = !block;
  at("neuron-missing").hidden = shown;
  neuron.now = null;
  if (!shown) at("neuron-missing").replaceChildren(...missingVectors(layer, head));
  if (!shown && beside) write(at("unanswered"), unanswered(layer, head));
  if (!block) return;
  settleNeuron(block);
  const row = neuronRow(layer, head, neuron.query);
  const keys = row.seen.filter((key) => tokensShown(row.query, key));
  if (beside && !row.seen.includes(neuron.key)) write(at("unanswered"), `${namedToken(queryTokens(), row.query)} does not see ${namedToken(keyTokens(), neuron.key)}: the model masks it.`);
  if (!keys.includes(neuron.key)) neuron.key = null;
  if (beside && neuron.key === null) return;
  const key = neuron.key ?? keys.reduce((best, other) => (best === null || row.weight[other] > row.weight[best] ? other : best), null);
  neuron.now = { row, key, shown: keys, order: neuronOrder(row, key ?? row.seen[0], neuron.order), sizes: colorSizes(block, stack().detail) };
  if (here) paintNeuronTable();
  paintAnswer();
}

function paintNeuronTable() {
  fitNeuron();
  paintQueries();
  paintNeuronHead();
  paintNeuronRows();
  showChosen();
  paintSeenRows();
  paintNeuronAim();
  paintAllQueries();
  paintNeuronNotes();
}

// Why the weight that was asked for has no answer on this page, and what has one.
function unanswered(layer, head) {
  const { detail } = stack();
  const pair = `${namedToken(queryTokens(), neuron.query)} → ${namedToken(keyTokens(), neuron.key)}`;
  const more = detail?.vectors ? "headscope serve has those of every head." : (detail?.why ?? "");
  return `${pair}: the vectors of ${headName(layer, head)} are not on this page${more ? `: ${more}` : "."}`;
}

// Which heads have vectors, and why this one has none.
function missingVectors(layer, head) {
  const detail = stack().detail;
  const found = [element("p", {}, `The vectors of ${headName(layer, head)} are not on this page${detail?.why ? ": " : "."}`, detail?.why ?? "")];
  if (!detail?.vectors || !detail.heads.length) return found;
  const buttons = detail.heads.map(([other, place]) => {
    const label = stack().labels[other]?.[place] ?? "";
    const button = element("button", { type: "button", class: "ask" }, headName(other, place), element("small", {}, label && ` ${label}`));
    button.addEventListener("click", () => {
      change({ layer: other, heads: [place] });
      at("tab-neuron").focus();
    });
    return button;
  });
  return [...found, element("p", { id: "neuron-others" }, "Heads that have them:"), element("div", { class: "others", role: "group", "aria-labelledby": "neuron-others" }, ...buttons)];
}

// Cells are whole pixels wide where there is room for that.
const [WIDEST, GRIDDED] = [12, 7];
const NUMBER = 78; // pixels of a column of numbers, and of the weight
const WEIGHT = 118;

function fitNeuron() {
  const [table, room, d] = [at("neuron-table"), at("view-neuron").clientWidth, neuron.now.row.d];
  const narrow = room < 560;
  const longest = Math.max(...keyTokens().map((text, index) => [...legible(text)].length + 0.8 * which(keyTokens(), index).length));
  const name = Math.min(Math.max(longest * 8 + 14, 56), narrow ? 84 : 144);
  const numbers = narrow ? 64 : NUMBER * numberColumns().length + WEIGHT;
  const gaps = narrow ? 24 : 10 * (numberColumns().length + 3) + 18;
  const wide = Math.max((room - name - numbers - gaps) / (narrow ? 1 : 2), 48);
  const cell = Math.min(Math.floor((wide / d) * devicePixelRatio) / devicePixelRatio, WIDEST);
  neuron.cell = cell >= 1 ? cell : wide / d;
  for (const box of [table, at("all-panel")]) box.classList.toggle("narrow", narrow);
  table.classList.toggle("gridded", neuron.cell >= GRIDDED);
  const sizes = { name, number: NUMBER, weight: WEIGHT, cell: neuron.cell, strip: neuron.cell * d };
  for (const box of [table, at("all-panel")]) for (const [what, pixels] of Object.entries(sizes)) box.style.setProperty(`--${what}`, `${pixels}px`);
  table.style.setProperty("--numbers", numberColumns().length);
}

// 511 shades [red, green, blue] from vermillion over the page to blue.
function signedShades() {
  const [page, less, more] = ["page", "vermillion", "blue"].map((name) => parts(colorOf(name)));
  return Array.from({ length: 511 }, (_, place) => {
    const [end, share] = [place < 255 ? less : more, Math.abs(place - 255) / 255];
    return page.map((tone, channel) => tone + share * (end[channel] - tone));
  });
}

const shadePlace = (value, size) => Math.round(255 + 255 * Math.tanh(value / size));

function paintVector(canvas, values, size, colors) {
  if (canvas.width !== values.length) canvas.width = values.length;
  const image = new ImageData(values.length, 1);
  values.forEach((value, place) => {
    image.data.set(colors[shadePlace(value, size)], place * 4);
    image.data[place * 4 + 3] = 255;
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function paintQueries() {
  neuron.queries.forEach((option, index) => {
    const on = index === neuron.query;
    option.setAttribute("aria-selected", on);
    option.tabIndex = on ? 0 : -1;
    option.classList.toggle("outside", !keyTokens().some((_, key) => tokensShown(index, key)));
  });
}

function paintNeuronRows() {
  const { row, key, shown } = neuron.now;
  const columns = numberColumns();
  const focused = neuron.rows.includes(document.activeElement) ? document.activeElement : neuron.rows[key];
  const there = new Set(shown);
  neuron.rows.forEach((line, index) => line.hidden === there.has(index) && (line.hidden = !there.has(index)));
  for (const index of shown) {
    const line = neuron.rows[index];
    line.tabIndex = line === focused ? 0 : -1;
    put(line, "aria-selected", index === key);
    const numbers = [...line.children].slice(3);
    columns.forEach((name, place) => write(numbers[place], signed(row[name][index])));
    const weight = numbers[columns.length];
    weight.firstChild.style.width = `calc((100% - 3.7rem) * ${Math.min(row.weight[index], 1)})`;
    write(weight.lastChild, row.weight[index].toFixed(4));
  }
  neuron.unpainted = new Set(shown);
}

// What was chosen anew comes into sight; what the reader scrolls to afterwards stays.
function showChosen() {
  const { row, key } = neuron.now;
  const name = [state.stack, state.layer, headNow(), row.query, key].join();
  if (neuron.sighted === name) return;
  neuron.sighted = name;
  bringIntoSight(at("neuron-from"), neuron.queries[row.query], 0);
  if (key !== null) bringIntoSight(at("neuron-table"), neuron.rows[key], at("neuron-table").querySelector(".heads").offsetHeight + at("neuron-profile").offsetHeight + 30);
}

function bringIntoSight(box, child, above) {
  const [top, bottom] = [child.offsetTop - above, child.offsetTop + child.offsetHeight - box.clientHeight];
  if (box.scrollTop > top || box.scrollTop < bottom) box.scrollTop = (top + bottom) / 2;
}

// Of hundreds of rows, only those in sight, and some around them, get their colours at once.
const AROUND = 400; // pixels

function paintSeenRows() {
  if (!neuron.now) return;
  const { row, order, sizes } = neuron.now;
  const [table, colors] = [at("neuron-table"), signedShades()];
  const [from, to] = [table.scrollTop - AROUND, table.scrollTop + table.clientHeight + AROUND];
  const seen = [...neuron.unpainted].filter((index) => neuron.rows[index].offsetTop > from && neuron.rows[index].offsetTop < to);
  for (const index of seen) {
    neuron.unpainted.delete(index);
    const k = order.map((place) => row.k[index * row.d + place]);
    const canvases = neuron.rows[index].querySelectorAll("canvas");
    paintVector(canvases[0], k, sizes.vector, colors);
    paintVector(canvases[1], k.map((value, place) => value * row.q[order[place]]), sizes.product, colors);
  }
}

function paintNeuronHead() {
  const { row, key, order, sizes } = neuron.now;
  const table = at("neuron-table");
  table.setAttribute("aria-label", `${headName(state.layer, headNow())}: keys that ${tokenQuote(queryTokens(), row.query)} sees`);
  table.setAttribute("aria-rowcount", neuron.now.shown.length + 3);
  const alone = numberColumns().length === 1;
  table.querySelector(".heads .dot").replaceChildren(alone ? "score" : "q·k", element("small", {}, `${alone ? "q·k" : ""}${scalingWords(row)}`));
  at("neuron-query").textContent = legible(queryTokens()[row.query]);
  paintVector(table.querySelector(".query canvas"), order.map((place) => row.q[place]), sizes.vector, signedShades());
  for (const mark of table.querySelectorAll(".mark")) mark.remove();
  for (const place of importantNeurons().map((one) => order.indexOf(one))) {
    for (const cell of table.querySelectorAll(".query .vector")) {
      const mark = element("i", { class: "mark" });
      mark.style.left = `${(place + 0.5) * neuron.cell}px`;
      cell.append(mark);
    }
  }
  paintProfile(row, key, order);
}

// What every neuron adds to the chosen key's score beyond the other keys: bars up and down.
const PROFILE = 40; // pixels

function paintProfile(row, key, order) {
  const context = fitted(at("neuron-profile"), neuron.cell * row.d, PROFILE);
  if (key === null) return;
  const bars = neuronParts(row, key);
  const largest = Math.max(...bars.map(Math.abs)) || 1;
  context.fillStyle = colorOf("rule");
  context.fillRect(0, PROFILE / 2 - 0.5, neuron.cell * row.d, 1);
  order.forEach((one, place) => {
    const height = (bars[one] / largest) * (PROFILE / 2 - 1);
    context.fillStyle = colorOf(bars[one] > 0 ? "blue" : "vermillion");
    context.fillRect(place * neuron.cell, PROFILE / 2 - Math.max(height, 0), Math.max(neuron.cell - (neuron.cell > 3 ? 1 : 0), 0.5), Math.abs(height));
  });
  at("neuron-remark").replaceChildren("what each neuron adds to the score of ", element("bdi", {}, legible(keyTokens()[key])), " beyond the other keys’");
}

// The cursor: one neuron through all rows, in both vectors.
function paintNeuronAim() {
  if (!neuron.now) return;
  const { key, place = null } = neuron.pointed ?? {};
  neuron.rows.forEach((line, index) => line.classList.toggle("pointed", index === key));
  const table = at("neuron-table");
  const marks = table.querySelectorAll(".line");
  for (const mark of marks) mark.hidden = place === null;
  if (place === null) return;
  // All that is measured comes before what is written, which would cost a layout in between.
  const edge = table.getBoundingClientRect().left - table.scrollLeft;
  const top = table.querySelector(".query").offsetTop;
  const lefts = [".query .k", ".query .qk"].map((cell) => table.querySelector(cell).getBoundingClientRect().left - edge + place * neuron.cell);
  const height = table.scrollHeight - top;
  marks.forEach((mark, at) => {
    const sizes = { left: lefts[at], width: Math.max(neuron.cell, 2), top, height };
    for (const [what, pixels] of Object.entries(sizes)) mark.style[what] = `${pixels}px`;
  });
}

// What is true of these numbers that the table does not say by itself.
function paintNeuronNotes() {
  const { row, shown, sizes } = neuron.now;
  const [query, notes] = [tokenQuote(queryTokens(), row.query), []];
  const later = stack().causal ? keyTokens().length - row.query - 1 : 0;
  const masked = keyTokens().length - later - row.seen.length;
  const whole = shown.reduce((sum, key) => sum + row.weight[key], 0).toFixed(4);
  if (!row.seen.length) notes.push(`${query} sees none of the tokens on this page.`);
  else if (!shown.length) notes.push(`${query} is not among the sentences shown: choose another query, or all sentences.`);
  else if (shown.length < row.seen.length) notes.push(`Only the keys of the sentences chosen are shown: their weights add up to ${whole}, not to 1, because the softmax ran over all ${row.seen.length} keys.`);
  else if (row.given < 1) notes.push(`These weights add up to ${whole}: the rest goes to tokens that are not on this page.`);
  if (later) notes.push(`${later === 1 ? "One later token is" : `${later} later tokens are`} not seen by ${query}.`);
  if (masked) notes.push(`${masked === 1 ? "One key is" : `${masked} keys are`} masked by the model.`);
  if (state.level === "word") notes.push("This view works on tokens, not on words.");
  if (["removed", "renormalised"].includes(state.special)) notes.push("Special tokens stay: the softmax ran over them too.");
  if (measureNow().name !== "attention") notes.push("The weights here are those of attention.");
  const hint = shown.length ? `${notes.length ? " " : ""}Point at a cell for its numbers; a click on a row chooses the key.` : "";
  at("neuron-note").replaceChildren(element("span", {}, notes.join(" ")), hint); // a saved figure takes the notes alone
  at("neuron-key").replaceChildren(...signedKey(sizes.vector, "q and k"), ...signedKey(sizes.product, "q × k"), ...(neuronImportance() ? [element("span", { class: "words" }, `▾ the ${MARKED} neurons of largest importance in the corpus`)] : []));
}

function signedKey(size, words) {
  const ramp = element("span", { class: "ramp", "aria-hidden": "true" });
  for (let step = -12; step <= 12; step += 1) {
    const box = element("i");
    const share = Math.abs(Math.tanh((step / 12) * 2)) * 100;
    box.style.backgroundColor = `color-mix(in srgb, var(--${step < 0 ? "vermillion" : "blue"}) ${share}%, var(--page))`;
    ramp.append(box);
  }
  const ticks = [-2 * size, 0, 2 * size].map((value) => element("span", {}, String(Number(value.toPrecision(2))).replace("-", "−")));
  return [element("span", { class: "scale" }, ramp, element("span", { class: "ticks" }, ...ticks)), element("span", { class: "words" }, words)];
}

// A minus sign as it is printed; two decimals, or more where numbers are small.
function signed(value, size = 1) {
  const digits = Math.min(Math.max(2 - Math.floor(Math.log10(size)), 2), 8);
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

function scalingWords({ scaling }) {
  const whole = Math.round(1 / scaling);
  if (scaling === 1) return "";
  if (Math.abs(whole * scaling - 1) < 1e-6) return ` ÷ ${whole}`;
  const square = Math.round(1 / scaling ** 2);
  return Math.abs(square * scaling ** 2 - 1) < 1e-5 ? ` ÷ √${square}` : ` × ${scaling.toPrecision(3)}`;
}

const tokenQuote = (tokens, index) => quotedText(legible(tokens[index]));

// With which of several equal ones it is: ‘the’ (2nd of 3).
function namedToken(tokens, index) {
  const one = which(tokens, index);
  return tokenQuote(tokens, index) + (one && ` (${one})`);
}

// What the cursor is on; read aloud.
function neuronSentence() {
  if (!canWhy(state.layer, headNow())) return "The vectors of this head are not on this page.";
  if (!neuron.now) return "Unpacking…";
  const { row, key, order, sizes } = neuron.now;
  const query = namedToken(queryTokens(), row.query);
  const index = neuron.pointed?.key ?? key;
  if (index === null) return `${query} is not among the sentences shown`;
  const pair = `${query} → ${namedToken(keyTokens(), index)}`;
  const place = neuron.pointed?.place ?? null;
  if (place === null) return `${pair}: score ${signed(row.score[index])}, weight ${row.weight[index].toFixed(4)}`;
  const one = order[place];
  const [q, k] = [row.q[one], row.k[index * row.d + one]];
  const scaled = row.scaling === 1 ? "" : `;${scalingWords(row)} = ${signed(q * k * row.scaling, sizes.product * row.scaling)} of the score`;
  return `${pair}, neuron ${one + 1}: q ${signed(q, sizes.vector)} × k ${signed(k, sizes.vector)} = ${signed(q * k, sizes.product)}${scaled}`;
}
