// Which number does every head have? The grid of layers by heads that the page came with, coloured by
// label or by a number, and what is known of the head pointed at.
const cells = [...document.querySelectorAll("#cells a")];
const LABELS = "labels";

function metricNow() {
  return data.metrics.find((metric) => metric.key === document.getElementById("metric").value);
}

function matches(key, words) {
  const metric = data.metrics.find((one) => one.key === key);
  const text = metric ? `${metric.group} ${metric.label}`.toLowerCase() : "";
  return Boolean(metric) && words.every((word) => text.includes(word));
}

// The numbers whose question or name holds the words, by question.
function fillChoice(choice, words) {
  const now = choice.value || data.shown || LABELS;
  const groups = new Map();
  for (const metric of data.metrics) {
    if (metric.key !== now && !matches(metric.key, words)) continue;
    if (!groups.has(metric.group)) groups.set(metric.group, element("optgroup", { label: metric.group }));
    groups.get(metric.group).append(element("option", { value: metric.key }, metric.label));
  }
  choice.replaceChildren(element("option", { value: LABELS }, "most telling label"), ...groups.values());
  choice.value = now;
}

function buildChoice(choice, search) {
  const wanted = () => search.value.toLowerCase().split(/\s+/).filter(Boolean);
  fillChoice(choice, []);
  choice.addEventListener("change", () => {
    paint();
    tellAddress();
  });
  let before = null; // what was shown as the search began
  search.addEventListener("input", () => {
    before ??= choice.value;
    const words = wanted();
    choice.value = before;
    fillChoice(choice, words);
    const fits = [...choice.options].filter(({ value }) => value !== LABELS);
    const hits = fits.filter((option) => matches(option.value, words));
    if (words.length && hits.length) choice.value = hits[0].value;
    if (!words.length) before = null;
    document.getElementById("number-count").textContent = words.length ? `${hits.length} of ${data.metrics.length} numbers` : "";
    paint();
    tellAddress(false); // letters are no steps to go back through
  });
  search.addEventListener("keydown", (event) => {
    const hits = [...choice.options].filter(({ value }) => matches(value, wanted()));
    if (event.key !== "Enter" || !wanted().length || !hits.length) return;
    const now = hits.findIndex(({ value }) => value === choice.value);
    choice.value = hits[before === null ? (now + 1) % hits.length : 0].value; // Enter again: the next
    before = null;
    choice.dispatchEvent(new Event("change"));
  });
  addressable("measure", () => choice.value, showMetric);
}

function showMetric(key) {
  const choice = document.getElementById("metric");
  document.getElementById("find-number").value = "";
  document.getElementById("number-count").textContent = "";
  fillChoice(choice, []);
  const known = [...choice.options].some((option) => option.value === key);
  if (known) choice.value = key;
  if (known) paint();
  return known;
}

function buildCells() {
  let touched = null; // the first touch tells, the second one opens
  cells.forEach((cell, unit) => {
    cell.removeAttribute("title");
    cell.addEventListener("pointerenter", () => describe(unit));
    cell.addEventListener("focus", () => describe(unit));
    cell.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse") touched = unit;
    });
    cell.addEventListener("click", (event) => {
      if (event.detail && touched !== unit) event.preventDefault();
      touched = unit;
      describe(unit);
    });
  });
  document.getElementById("cells").addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") describe(page.selected ?? data.first);
  });
  roving(cells, gridStep);
}

function paint() {
  const metric = metricNow();
  cells.forEach((cell, unit) => (metric ? paintNumber(cell, unit, metric) : paintLabel(cell, unit)));
  const key = document.getElementById("key");
  key.replaceChildren(...(metric ? metricKey(metric) : kindKey()));
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

function numberColor(metric, value) {
  const share = value === null || !(metric.top > 0) ? 0 : Math.min(Math.max(value / metric.top, -1), 1);
  if (metric.signed) return signedColor(Math.sign(share) * Math.ceil(Math.abs(share) * SIGNED_STEPS));
  return rampColor(Math.ceil(Math.max(share, 0) * (data.rampSteps - 1)));
}

function paintNumber(cell, unit, metric) {
  const value = metric.value[unit];
  cell.className = `cell number${value === null ? " missing" : ""}`;
  cell.style.backgroundColor = numberColor(metric, value);
  cell.replaceChildren(...(value === null ? ["–"] : []));
  cell.setAttribute("aria-label", `${headName(unit)}, ${metric.text[unit]}`);
}

function paintLabel(cell, unit) {
  const kind = kindOf(unit);
  cell.className = `cell ${kind.look}`;
  cell.style.backgroundColor = "";
  hued(cell, kind.hue).replaceChildren(glyph(kind));
  cell.setAttribute("aria-label", `${headName(unit)}: ${sentencesOf(unit).join("; ")}`);
}

function describe(unit) {
  const metric = metricNow();
  const number = metric ? [element("p", { class: "number" }, `${metric.label}: ${metric.text[unit]}`)] : [];
  const says = sentencesOf(unit).map((words) => element("p", {}, words.replace(/ (?=%)/g, "\u00a0")));
  const name = element("h3", {}, headLink(unit), " ", glyph(kindOf(unit)));
  document.getElementById("panel").replaceChildren(name, ...number, ...says);
}

buildChoice(document.getElementById("metric"), document.getElementById("find-number"));
buildCells();
document.getElementById("choice").hidden = !data.metrics.length;
listeners.push((selected) => {
  cells.forEach((cell, unit) => {
    if (isChosen(unit)) cell.setAttribute("aria-current", "true");
    else cell.removeAttribute("aria-current");
  });
  describe(selected ?? data.first);
});
paint();
