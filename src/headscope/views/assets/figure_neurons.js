// How does the neuron view stand on paper? Strips of vectors as boxes of colour, numbers beside.
const STRIP = { wide: 256, largest: 8, row: 16, smallRow: 12, name: 120, gap: 12, number: 50, weight: 44, bar: 60, profile: 40 };

function neuronsOnPaper(paper, x, y) {
  const { row, shown, key } = neuron.now;
  const many = shown.length > MANY;
  const cell = Math.min(STRIP.largest, Math.floor(STRIP.wide / row.d) || STRIP.wide / row.d);
  const look = { size: many ? 10 : 12 };
  const names = shown.map((index) => widthOf(legible(keyTokens()[index]), { ...look, weight: "bold" }));
  const name = Math.min(Math.max(...names, widthOf(queryWords(row), { weight: "bold" })), STRIP.name);
  const strip = cell * row.d;
  const at = { name: x + name, k: x + name + STRIP.gap };
  at.qk = at.k + strip + STRIP.gap;
  at.numbers = numberColumns().map((_, place) => at.qk + strip + (place + 1) * STRIP.number);
  at.weight = at.qk + strip + numberColumns().length * STRIP.number + STRIP.gap + STRIP.bar + STRIP.weight;
  const down = many ? STRIP.smallRow : STRIP.row;
  headingsOnPaper(paper, y + 8, at, row);
  const top = y + 18 + STRIP.profile + 10;
  queryOnPaper(paper, y + 18, at, { cell, strip, name });
  shown.forEach((index, place) => paper.group("row", () => keyOnPaper(paper, top + place * down, at, { index, strip, down, look, name, on: index === key })));
  const bottom = top + shown.length * down + 12;
  const first = neuronKeyOnPaper(paper, at.k, bottom, neuron.now.sizes.vector, "q and k");
  neuronKeyOnPaper(paper, Math.max(at.qk, at.k + first.width + STRIP.gap), bottom, neuron.now.sizes.product, "q × k");
  return { width: at.weight - x, height: bottom + 24 - y };
}

const queryWords = (row) => `q of ${legible(queryTokens()[row.query])}`;

function headingsOnPaper(paper, y, at, row) {
  const muted = { size: 11, fill: colorOf("muted") };
  const names = { dot: `q·k${scalingWords(row)}`, capped: "capped", bias: "+ bias", score: "= score" };
  paper.text(at.name, y, "key", { ...muted, anchor: "end" });
  paper.text(at.k, y, `key vector k, ${row.d} neurons`, muted);
  paper.text(at.qk, y, "q × k, neuron by neuron", muted);
  numberColumns().forEach((column, place) => paper.text(at.numbers[place], y, names[column], { ...muted, anchor: "end" }));
  paper.text(at.weight, y, "weight", { ...muted, anchor: "end" });
}

// The query's vector, and what every neuron adds to the chosen key's score.
function queryOnPaper(paper, y, at, { cell, strip, name }) {
  const { row, key, order, sizes } = neuron.now;
  const middle = y + STRIP.profile / 2;
  const bold = { weight: "bold", anchor: "end" };
  paper.text(at.name, middle, cutTo(queryWords(row), name, bold), bold);
  vectorOnPaper(paper, at.k, middle - 11, strip, 22, order.map((one) => row.q[one]), sizes.vector);
  for (const one of importantNeurons()) paper.text(at.k + (order.indexOf(one) + 0.5) * cell, middle - 16, "▾", { size: 10, anchor: "middle" });
  paper.line([[at.name - name, y + STRIP.profile + 4], [at.weight, y + STRIP.profile + 4]], { stroke: colorOf("rule") });
  if (key === null) return;
  const bars = neuronParts(row, key);
  const largest = Math.max(...bars.map(Math.abs)) || 1;
  paper.group("profile", () => order.forEach((one, place) => {
    const height = (bars[one] / largest) * (STRIP.profile / 2 - 1);
    const wide = Math.max(cell - (cell > 3 ? 1 : 0), 0.5);
    paper.box(at.qk + place * cell, middle - Math.max(height, 0), wide, Math.abs(height), { fill: colorOf(bars[one] > 0 ? "blue" : "vermillion") });
  }));
  paper.line([[at.qk, middle], [at.qk + strip, middle]], { stroke: colorOf("grey"), thick: 0.5 });
}

function keyOnPaper(paper, y, at, { index, strip, down, look, name, on }) {
  const { row, order, sizes } = neuron.now;
  const [middle, high] = [y + down / 2, down - 2];
  const bold = { ...look, weight: on ? "bold" : "", anchor: "end" };
  const fill = colorOf(sideOf("key").special[index] && !on ? "muted" : "ink");
  paper.text(at.name, middle, cutTo(legible(keyTokens()[index]), name, bold), { ...bold, fill });
  const k = order.map((one) => row.k[index * row.d + one]);
  vectorOnPaper(paper, at.k, y + 1, strip, high, k, sizes.vector);
  vectorOnPaper(paper, at.qk, y + 1, strip, high, k.map((value, place) => value * row.q[order[place]]), sizes.product);
  numberColumns().forEach((column, place) => paper.text(at.numbers[place], middle, signed(row[column][index]), bold));
  const long = STRIP.bar * Math.min(row.weight[index], 1);
  paper.box(at.weight - STRIP.weight - long, middle - high / 4, long, high / 2, { fill: colorOf("muted") });
  paper.text(at.weight, middle, row.weight[index].toFixed(4), bold);
}

function vectorOnPaper(paper, x, y, width, height, values, size) {
  const tones = signedShades();
  const colors = Int32Array.from(values, (value) => packed(tones[shadePlace(value, size)]));
  paper.cells(x, y, width, height, { rows: 1, columns: values.length, colors });
}

function neuronKeyOnPaper(paper, x, y, size, words) {
  const tones = signedShades();
  const colors = count(25).map((step) => tones[shadePlace(((step - 12) / 6) * size, size)]);
  const ticks = [-2 * size, 0, 2 * size].map((value) => String(Number(value.toPrecision(2))).replace("-", "−"));
  return rampOnPaper(paper, x, y, colors, ticks, words);
}
