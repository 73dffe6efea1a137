// Which number does every head have? A grid of layers by heads, and a panel on the head pointed at.
const cells = [];
const ROLES = "roles";
const SIGNED_STEPS = 12; // shades of each sign

function metricNow() {
  return data.metrics.find((metric) => metric.key === document.getElementById("metric").value);
}

function buildChoice(choice) {
  choice.append(element("option", { value: ROLES }, "what each head does"));
  const groups = new Map();
  for (const metric of data.metrics) {
    if (!groups.has(metric.group)) groups.set(metric.group, element("optgroup", { label: metric.group }));
    groups.get(metric.group).append(element("option", { value: metric.key }, metric.label));
  }
  choice.append(...groups.values());
  choice.value = data.shown || ROLES;
  choice.addEventListener("change", () => {
    paint();
    tellAddress();
  });
  addressable("measure", () => choice.value, showMetric);
}

function showMetric(key) {
  const choice = document.getElementById("metric");
  const known = [...choice.options].some((option) => option.value === key);
  if (known) choice.value = key;
  if (known) paint();
  return known;
}

function buildCells(board) {
  board.style.setProperty("--heads", data.heads);
  board.setAttribute("aria-rowcount", data.layers + 1);
  board.setAttribute("aria-colcount", data.heads + 1);
  const top = element("div", { role: "row" }, element("span", { role: "columnheader", "aria-label": "layer" }));
  for (let head = 0; head < data.heads; head += 1) {
    top.append(element("span", { role: "columnheader", "aria-label": `head ${head + data.countsFrom}` }, String(head + data.countsFrom)));
  }
  board.append(top);
  for (let layer = 0; layer < data.layers; layer += 1) {
    const label = { role: "rowheader", "aria-label": `layer ${layerName(layer)}` };
    const row = element("div", { role: "row" }, element("span", label, String(layerName(layer))));
    for (let head = 0; head < data.heads; head += 1) {
      const unit = layer * data.heads + head;
      const cell = element("div", { role: "gridcell" });
      cell.addEventListener("pointerenter", () => describe(unit));
      cell.addEventListener("focus", () => describe(unit));
      cell.addEventListener("click", () => select(unit));
      cells.push(cell);
      row.append(cell);
    }
    board.append(row);
  }
  board.addEventListener("pointerleave", () => describe(page.selected ?? data.first));
  roving(cells, gridStep);
}

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

function paint() {
  const metric = metricNow();
  cells.forEach((cell, unit) => (metric ? paintNumber(cell, unit, metric) : paintRole(cell, unit)));
  const key = document.getElementById("key");
  key.replaceChildren(...(metric ? metricKey(metric) : roleKey()));
  describe(page.selected ?? data.first);
}

function metricKey(metric) {
  const made = metric.signed
    ? rampKey(-SIGNED_STEPS, SIGNED_STEPS + 1, `−${metric.topText}`, `+${metric.topText}`, signedColor)
    : rampKey(0, data.rampSteps, "0", metric.topText);
  if (!metric.control || !(metric.top > 0)) return made;
  const [low, high] = metric.control.map((value) => keyPercent(metric, value));
  const line = element("b");
  line.style.left = `${low}%`;
  line.style.right = `${100 - high}%`;
  made[1].append(line);
  return [...made, element("span", { class: "untrained" }, "line: without training")];
}

// Where a value stands on the bar of a key, in percent.
function keyPercent(metric, value) {
  const share = Math.min(Math.max(value / metric.top, -1), 1);
  return 100 * (metric.signed ? (share + 1) / 2 : Math.max(share, 0));
}

// Of numbers that may lie below 0: blue above and vermillion below, 0 is the page.
function signedColor(step) {
  const hue = step < 0 ? "vermillion" : "blue";
  return `color-mix(in srgb, var(--${hue}) ${(100 * Math.abs(step)) / SIGNED_STEPS}%, var(--page))`;
}

function numberColor(metric, value) {
  const share = value === null || !(metric.top > 0) ? 0 : Math.min(Math.max(value / metric.top, -1), 1);
  if (metric.signed) return signedColor(Math.sign(share) * Math.ceil(Math.abs(share) * SIGNED_STEPS));
  return rampColor(Math.ceil(Math.max(share, 0) * (data.rampSteps - 1)));
}

function paintNumber(cell, unit, metric) {
  const value = metric.value[unit];
  cell.style.backgroundColor = numberColor(metric, value);
  cell.classList.toggle("missing", value === null);
  cell.replaceChildren(...(value === null ? ["–"] : []));
  cell.setAttribute("aria-label", `${headName(unit)}, ${metric.text[unit]}`);
}

function paintRole(cell, unit) {
  const kind = kindOf.get(data.roles[unit]);
  cell.style.backgroundColor = "";
  cell.classList.remove("missing");
  cell.replaceChildren(...(kind.role === "other" ? [] : [glyph(kind)]));
  cell.setAttribute("aria-label", `${headName(unit)}, ${kind.name}`);
}

function describe(unit) {
  const rows = [];
  const now = metricNow();
  let group = "";
  for (const metric of data.metrics) {
    if (metric.group !== group) {
      group = metric.group;
      rows.push(element("tr", { class: "group" }, element("th", { colspan: "3", scope: "colgroup" }, group)));
    }
    const row = element("tr", {}, element("th", { scope: "row" }, metric.label.replace(/^attention /, "")));
    row.append(element("td", {}, metric.text[unit]), element("td", { class: "mini" }, mini(metric, unit)));
    if (metric === now) row.className = "now";
    rows.push(row);
  }
  const documents = data.metrics.length ? `n = ${data.metrics[0].n} ${data.counted}.` : "";
  const head = element("h3", {}, headLink(unit), " ", glyph(kindOf.get(data.roles[unit])));
  const numbers = element("div", { class: "numbers", tabindex: "0", role: "region", "aria-label": "Numbers" });
  numbers.append(element("table", {}, element("tbody", {}, ...rows)));
  const says = sentencesOf(unit).map((words) => element("p", { class: "knows" }, words));
  const about = element("p", { class: "does" }, documents);
  document.getElementById("panel").replaceChildren(head, ...says, about, numbers);
}

// A small bar with the interval, on the scale of all heads.
function mini(metric, unit) {
  const svg = drawing("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" });
  const value = metric.value[unit];
  if (value === null || !(metric.reach > 0)) return svg;
  const zero = metric.signed ? 50 : 0;
  const x = (number) => Math.min(Math.max(zero + ((100 - zero) * number) / metric.reach, 0), 100).toFixed(2);
  svg.append(drawing("path", { class: "track", d: "M0 5H100" }));
  if (metric.signed) svg.append(drawing("path", { class: "reference", d: "M50 1.5V8.5" }));
  if (metric.low[unit] !== null) {
    svg.append(drawing("path", { class: "interval", d: `M${x(metric.low[unit])} 5H${x(metric.high[unit])}` }));
  }
  svg.append(drawing("path", { class: "value", d: `M${x(value)} 1.5V8.5` }));
  return hued(svg, metric.signed && value < 0 ? "vermillion" : "blue");
}

if (data.roles.length) {
  buildChoice(document.getElementById("metric"));
  buildCells(document.getElementById("cells"));
  document.getElementById("explorer").hidden = false;
  listeners.push((selected) => {
    cells.forEach((cell, unit) => {
      cell.classList.toggle("chosen", unit === selected);
      cell.setAttribute("aria-selected", unit === selected);
    });
    describe(selected ?? data.first);
  });
  paint();
}
