// Which head is this mark? Every chart whose marks are heads names the one that is pointed at, by
// pointer, key or tap, with its number; a head that is chosen is marked in all of them.
const tip = element("div", { class: "tip", role: "status", hidden: "" });
const REACH = 9; // pixels around a mark that is no cell
const charts = [];

// Of a chart: its marks, each with its unit, place, half size in points, and words. A cell of a
// matrix is a pair of heads, of its row and of its column, `other`.
function marksOf(svg) {
  return JSON.parse(svg.dataset.heads).flatMap(({ u, x, y, t, s, w, h, p }) => {
    const places = x.flatMap((_, row) => (p ? x.slice(0, row).map((_, column) => [row, column]) : [[row, row]]));
    const unit = (at) => (u ? u[at] : at);
    return t.split("\n").map((text, at) => {
      const [row, column] = places[at];
      const other = p ? unit(column) : null;
      return { unit: unit(row), other, row, column, x: x[column], y: y[row], w, h, words: s ? `${s}: ${text}` : text };
    });
  });
}

const choose = ({ unit, other }) => select(unit, other);

function buildChart(svg) {
  const marks = marksOf(svg);
  const title = svg.closest(".plot").querySelector("h3, h4")?.textContent ?? "Chart";
  const chart = { svg, marks, at: -1, now: drawing("path", { class: "pointed" }), chosen: drawing("path", { class: `chosen-mark${marks[0].other === null ? "" : " bands"}` }) };
  const pictured = drawing("g", { "aria-hidden": "true" });
  pictured.append(...svg.childNodes);
  svg.append(pictured, chart.chosen, chart.now);
  svg.removeAttribute("aria-hidden");
  svg.removeAttribute("focusable");
  fill(svg, { class: "answers", tabindex: "0", role: "application", "aria-label": `${title}: arrow keys go from head to head, Enter chooses one` }, []);
  svg.addEventListener("pointermove", (event) => point(chart, nearest(chart, event)));
  svg.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && point(chart, -1));
  svg.addEventListener("click", (event) => {
    const at = nearest(chart, event);
    point(chart, at);
    if (at >= 0) choose(marks[at]);
  });
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && point(chart, Math.max(chart.at, firstOf(chart))));
  svg.addEventListener("blur", () => point(chart, -1));
  svg.addEventListener("keydown", (event) => moveIn(chart, event));
  charts.push(chart);
}

// Of a matrix: where a key leads from a cell.
function pairStep({ marks }, { row, column }, key) {
  const to = { ArrowRight: [row, column + 1], ArrowLeft: [row, column - 1], ArrowDown: [row + 1, column], ArrowUp: [row - 1, column], Home: [row, 0], End: [row, row - 1] }[key];
  return to ? marks.findIndex((one) => one.row === to[0] && one.column === to[1]) : -1;
}

const firstOf = (chart) => Math.max(chart.marks.findIndex(({ unit }) => unit === page.selected), 0);

function moveIn(chart, event) {
  const mark = chart.marks[chart.at];
  if (event.key === "Escape") return point(chart, -1);
  if (!mark) return;
  if (event.key === "Enter" || event.key === " ") choose(mark);
  else if (mark.other !== null) {
    const at = pairStep(chart, mark, event.key);
    if (at < 0) return;
    point(chart, at);
  } else {
    const to = gridStep(mark.unit, event.key);
    if (to === null) return;
    const same = chart.marks.map((one, at) => [one, at]).filter(([one]) => one.unit === to);
    if (!same.length) return;
    // Of several series, the one that the last mark was of.
    const before = chart.marks.slice(0, chart.at).filter(({ unit }) => unit === mark.unit).length;
    point(chart, same[Math.min(before, same.length - 1)][1]);
  }
  event.preventDefault();
}

// The mark under the pointer, else the nearest in reach; -1 for none.
function nearest({ svg, marks }, event) {
  const matrix = svg.getScreenCTM();
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
  const reach = REACH / matrix.a;
  let [best, least] = [-1, Infinity];
  marks.forEach(({ x, y, w, h }, place) => {
    const across = Math.max(Math.abs(at.x - x) - w, 0);
    const up = Math.max(Math.abs(at.y - y) - h, 0);
    const apart = Math.hypot(across, up) || Math.hypot(at.x - x, at.y - y) / 1e3;
    if (apart < least && apart <= reach) [best, least] = [place, apart];
  });
  return best;
}

const outline = (first, last = first) => `M${first.x - first.w} ${first.y - first.h}H${last.x + last.w}V${last.y + last.h}H${first.x - first.w}z`;

// In a matrix a head is a row and a column.
function outlines(marks, unit) {
  const [own, across] = ["unit", "other"].map((side) => marks.filter((mark) => mark[side] === unit));
  if (marks[0].other === null) return own.map((mark) => outline(mark));
  return [own, across].filter((part) => part.length).map((part) => outline(part[0], part[part.length - 1]));
}

function point(chart, at) {
  chart.at = at;
  const mark = chart.marks[at];
  chart.now.setAttribute("d", mark ? outline(mark) : "");
  tip.hidden = !mark;
  if (!mark) return;
  const names = [mark.unit, mark.other].filter((unit) => unit !== null).map(headName);
  tip.replaceChildren(element("b", {}, names.join(" and ")), ` ${mark.words}`);
  const matrix = chart.svg.getScreenCTM();
  const [x, y] = [matrix.e + matrix.a * mark.x, matrix.f + matrix.d * (mark.y + mark.h)];
  tip.style.left = `${Math.max(4, Math.min(x + 8, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.min(y + 6, innerHeight - tip.offsetHeight - 4)}px`;
}

function markChosen() {
  const units = [page.selected, page.other].filter((unit) => unit !== null);
  for (const { marks, chosen } of charts) {
    chosen.setAttribute("d", units.flatMap((unit) => outlines(marks, unit)).join(""));
  }
}

for (const svg of document.querySelectorAll(".plot svg[data-heads]")) buildChart(svg);
document.body.append(tip);
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
listeners.push(markChosen);
// The chosen head stands in the address, of a pair both; a card's own address names it already.
const chosenWord = () => [page.selected, page.other].filter((unit) => unit !== null).map(cardId).join(".");
addressable(
  "head",
  () => (page.selected === null || chosenWord() === before.place ? "" : chosenWord()),
  (word) => {
    const [unit, other = null] = word.split(".").map(unitOf);
    const ofCard = unitOf(before.place) !== null; // the card of a head chooses it
    if (unit !== null && word !== chosenWord() && !ofCard) select(unit, other);
    return !word || unit !== null;
  },
  { quiet: true },
);
