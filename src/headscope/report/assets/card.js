// What is this head? Its card stands in the place of the report while the address names the head:
// report.html#L8H10. Everything on it is drawn from what the page holds.
const card = document.getElementById("card");
const SHORT = 6; // where a label stands in few words
const before = { scroll: 0, title: document.title, place: "" };

function unitOf(place) {
  for (let unit = 0; unit < data.layers * data.heads; unit += 1) if (cardId(unit) === place) return unit;
  return null;
}

// The place of the address: a head, or a part of the page.
function showPlace(place) {
  const unit = unitOf(place) ?? data.card ?? null;
  if (unit !== null && card.hidden) before.from = before.place;
  before.place = place;
  if (unit !== null) showCard(unit);
  else {
    const back = !card.hidden && place === before.from;
    if (!card.hidden) hideCard();
    if (!back) unfold(place);
  }
  return true;
}

function showCard(unit) {
  const open = !card.hidden;
  if (!open) before.scroll = scrollY;
  card.replaceChildren(...cardParts(unit));
  card.hidden = false;
  document.body.classList.add("one-head");
  document.title = `${headName(unit)}, ${before.title}`;
  if (page.selected !== unit) select(unit);
  scrollTo(0, 0);
  focusCard();
}

function focusCard() {
  card.querySelector("h2")?.focus({ preventScroll: true });
}

function hideCard() {
  card.hidden = true;
  card.replaceChildren();
  document.body.classList.remove("one-head");
  document.title = before.title;
  scrollTo(0, before.scroll);
}

function cardParts(unit) {
  const name = element("h2", { id: "card-title", tabindex: "-1" }, headName(unit));
  const labels = data.labels[unit].map((label) => labelItem(...label));
  const what = labels.length ? element("ol", { class: "labels" }, ...labels) : unlabelled(unit);
  const most = data.closest[unit] ? `What stands out most, though it is no label: ${data.closest[unit]}.` : "";
  const closest = most && element("p", { class: "closest" }, most);
  const more = extras.map((extra) => extra(unit)).filter(Boolean);
  return [walk(unit), name, what, closest, ...more, mapsPart(unit), rulesPart(unit), besidePart(unit), numbersPart(unit)].filter(Boolean);
}

// Neighbours in the order of the layers, and the way back.
function walk(unit) {
  const total = data.layers * data.heads;
  const step = (to, words) => (to >= 0 && to < total ? [element("a", { href: `#${cardId(to)}` }, words(headName(to)))] : []);
  const back = data.card === undefined ? [element("a", { href: "#grid" }, "All heads"), element("a", { href: "#table" }, "Table of heads")] : [];
  const steps = [...step(unit - 1, (name) => `‹ ${name}`), ...step(unit + 1, (name) => `${name} ›`)];
  return element("nav", { class: "walk", "aria-label": "Cards" }, ...back, ...steps);
}

function labelItem(label, sentence, kind, effect, documents, analysis) {
  const item = element("li", {}, element("b", {}, label));
  if (sentence) item.append(element("p", {}, sentence));
  const counted = `n = ${documents} document${documents === 1 ? "" : "s"}`;
  const rule = element("details", {}, element("summary", {}, "rule"), element("p", {}, `${data.rules[kind]}.`));
  item.append(element("p", { class: "evidence" }, `Effect ${effect}; ${counted}; from the analysis ${analysis}.`), rule);
  return item;
}

function unlabelled(unit) {
  const words = data.verdicts[unit].length ? data.verdicts[unit].join("; ") : data.nothing;
  return element("p", {}, element("b", {}, words), words === "unlabelled" ? " No rule is passed." : "");
}

// --- what stands beside it ------------------------------------------------------------------

function besidePart(unit) {
  const parts = [relationsPart(unit), nearestPart(unit)].filter(Boolean);
  return parts.length ? element("div", { class: "beside" }, ...parts) : null;
}

function relationsPart(unit) {
  const rows = data.cards.relations[unit];
  if (!rows.length) return null;
  const table = element("table", { class: "rows" });
  const names = ["relation", "accuracy", "baseline", "rank among heads"];
  table.append(element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))));
  const body = rows.map(([words, ...cells]) =>
    element("tr", {}, element("th", { scope: "row" }, words), ...cells.map((cell) => element("td", {}, String(cell)))),
  );
  table.append(element("tbody", {}, ...body));
  const note = "Farthest above the best fixed offset (baseline), on the data that they are scored on.";
  return element("section", {}, element("h3", {}, "Best relations"), table, element("p", { class: "caption" }, note));
}

function nearestPart(unit) {
  const rows = data.cards.nearest[unit];
  if (!rows.length) return null;
  const items = rows.map(([other, divergence]) => {
    const label = element("span", {}, data.labels[other][0]?.[SHORT] ?? "unlabelled");
    return element("li", {}, headLink(other), element("span", { class: "js" }, divergence), label);
  });
  const cluster = data.cards.cluster[unit] ?? -1;
  const within = cluster < 0 ? "" : ` In cluster ${cluster + 1}: ${data.cards.clusters[cluster]}.`;
  const note = `Jensen–Shannon divergence of attention in nats: 0 alike, 0.69 never on the same token.${within}`;
  const list = element("ol", { class: "nearest" }, ...items);
  return element("section", {}, element("h3", {}, "Nearest heads"), list, element("p", { class: "caption" }, note));
}

// --- numbers --------------------------------------------------------------------------------

function numbersPart(unit) {
  if (!data.metrics.length) return null;
  const table = element("table", { class: "numbers" });
  const names = ["number", "value", "rank", "among all heads"];
  table.append(element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))));
  let group = "";
  for (const metric of data.metrics) {
    if (metric.group !== group) {
      group = metric.group;
      const title = element("th", { scope: "rowgroup", colspan: "4" }, group);
      table.append(element("tbody", {}, element("tr", { class: "group" }, title)));
    }
    table.tBodies[table.tBodies.length - 1].append(numberRow(metric, unit));
  }
  const bounded = data.metrics.some((metric) => metric.low.some((low) => low !== null));
  const note = `Value${bounded ? " with its 95 % interval" : ""}; rank: 1 is the largest. Thin marks: all heads, from the smallest value to the largest; thick mark${bounded ? " and band: this head and its interval" : ": this head"}.` + (data.metrics.some((metric) => metric.control) ? " Thin line below: the heads of networks without training." : "");
  return element("section", {}, element("h3", {}, "Numbers"), table, element("p", { class: "caption" }, note));
}

function numberRow(metric, unit) {
  const of = metric.value.filter((value) => value !== null).length;
  const rank = metric.rank[unit] ? `${metric.rank[unit]} of ${of}` : "–";
  const cells = [metric.text[unit], rank].map((text) => element("td", {}, text));
  const name = element("th", { scope: "row" }, metric.label.replace(/^attention /, ""));
  return element("tr", {}, name, ...cells, element("td", { class: "strip" }, strip(metric, unit)));
}

// Where the head stands among all: one thin mark each, from the smallest to the largest.
function strip(metric, unit) {
  const there = metric.value.filter((value) => value !== null);
  const ends = [metric.low[unit], metric.high[unit]].filter((value) => value !== null);
  const [low, high] = [Math.min(...there, ...ends), Math.max(...there, ...ends)];
  const svg = drawing("svg", { viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "bar", "aria-hidden": "true" });
  if (!(high > low)) return svg;
  const x = (number) => Math.min(Math.max((100 * (number - low)) / (high - low), 0), 100).toFixed(1);
  svg.append(drawing("path", { class: "heads", d: there.map((value) => `M${x(value)} 2.5V7.5`).join("") }));
  if (metric.control) svg.append(drawing("path", { class: "control", d: `M${x(metric.control[0])} 9.5H${x(metric.control[1])}` }));
  if (metric.value[unit] === null) return svg;
  if (metric.low[unit] !== null) {
    svg.append(drawing("path", { class: "interval", d: `M${x(metric.low[unit])} 5H${x(metric.high[unit])}` }));
  }
  svg.append(drawing("path", { class: "value", d: `M${x(metric.value[unit])} 0V10` }));
  return hued(svg, "vermillion");
}

// Without scripts the address leads to the head's row of the table; with them the row would only
// move the page under the card, and take the focus.
for (const row of document.querySelectorAll("#heads tr[id]")) row.removeAttribute("id");
addressable("", () => before.place, showPlace, { early: true });
showPlace("");
startAddress();
addEventListener("load", () => setTimeout(focusCard));
