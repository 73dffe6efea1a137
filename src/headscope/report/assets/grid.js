// Which number does every head have? A grid of layers by heads, and a panel on the head pointed at.
const cells = [];
const ROLES = "roles";

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
  choice.addEventListener("change", paint);
}

function buildCells(board) {
  board.style.setProperty("--heads", data.heads);
  board.setAttribute("aria-rowcount", data.layers + 1);
  board.setAttribute("aria-colcount", data.heads + 1);
  const top = element("div", { role: "row" }, element("span", { role: "columnheader", "aria-label": "layer" }));
  for (let head = 0; head < data.heads; head += 1) {
    top.append(element("span", { role: "columnheader", "aria-label": `head ${head + 1}` }, String(head + 1)));
  }
  board.append(top);
  for (let layer = 0; layer < data.layers; layer += 1) {
    const label = { role: "rowheader", "aria-label": `layer ${layer + 1}` };
    const row = element("div", { role: "row" }, element("span", label, String(layer + 1)));
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
  key.replaceChildren(...(metric ? rampKey(0, data.rampSteps, "0", metric.topText) : roleKey()));
  describe(page.selected ?? data.first);
}

function paintNumber(cell, unit, metric) {
  const value = metric.value[unit];
  const share = value === null || metric.top <= 0 ? 0 : Math.min(Math.max(value / metric.top, 0), 1);
  cell.style.backgroundColor = rampColor(Math.ceil(share * (data.rampSteps - 1)));
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
  const documents = data.metrics.length ? `n = ${data.metrics[0].n} documents.` : "";
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
  const x = (number) => Math.min(Math.max((100 * number) / metric.reach, 0), 100).toFixed(2);
  svg.append(drawing("path", { class: "track", d: "M0 5H100" }));
  if (metric.low[unit] !== null) {
    svg.append(drawing("path", { class: "interval", d: `M${x(metric.low[unit])} 5H${x(metric.high[unit])}` }));
  }
  svg.append(drawing("path", { class: "value", d: `M${x(value)} 1.5V8.5` }));
  return hued(svg, "blue");
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
