// Which head is this mark? Every chart whose marks are heads names the one that is pointed at, by
// pointer, key or tap, with its number; a head that is chosen is marked in all of them.
const tip = element("div", { class: "tip", role: "status", hidden: "" });
const REACH = 9; // pixels around a mark that is no cell
const charts = [];

// Of a chart: its marks, each with its unit, place, half size in points, and words.
function marksOf(svg) {
  return JSON.parse(svg.dataset.heads).flatMap(({ u, x, y, t, s, w, h }) =>
    t.map((text, at) => ({ unit: u ? u[at] : at, x: x[at], y: y[at], w, h, words: s ? `${s}: ${text}` : text })),
  );
}

function buildChart(svg) {
  const marks = marksOf(svg);
  const title = svg.closest(".plot").querySelector("h3, h4")?.textContent ?? "Chart";
  const chart = { svg, marks, at: -1, now: drawing("path", { class: "pointed" }), chosen: drawing("path", { class: "chosen-mark" }) };
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
    if (at >= 0) select(marks[at].unit);
  });
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && point(chart, Math.max(chart.at, firstOf(chart))));
  svg.addEventListener("blur", () => point(chart, -1));
  svg.addEventListener("keydown", (event) => moveIn(chart, event));
  charts.push(chart);
}

const firstOf = (chart) => Math.max(chart.marks.findIndex(({ unit }) => unit === page.selected), 0);

function moveIn(chart, event) {
  const mark = chart.marks[chart.at];
  if (event.key === "Escape") return point(chart, -1);
  if (!mark) return;
  if (event.key === "Enter" || event.key === " ") select(mark.unit);
  else {
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

const outline = ({ x, y, w, h }) => `M${x - w} ${y - h}h${2 * w}v${2 * h}h${-2 * w}z`;

function point(chart, at) {
  chart.at = at;
  const mark = chart.marks[at];
  chart.now.setAttribute("d", mark ? outline(mark) : "");
  tip.hidden = !mark;
  if (!mark) return;
  tip.replaceChildren(element("b", {}, headName(mark.unit)), ` ${mark.words}`);
  const matrix = chart.svg.getScreenCTM();
  const [x, y] = [matrix.e + matrix.a * mark.x, matrix.f + matrix.d * (mark.y + mark.h)];
  tip.style.left = `${Math.max(4, Math.min(x + 8, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${Math.min(y + 6, innerHeight - tip.offsetHeight - 4)}px`;
}

function markChosen(unit) {
  for (const { marks, chosen } of charts) {
    chosen.setAttribute("d", marks.filter((mark) => mark.unit === unit).map(outline).join(""));
  }
}

for (const svg of document.querySelectorAll(".plot svg[data-heads]")) buildChart(svg);
document.body.append(tip);
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });
listeners.push(markChosen);
// The chosen head stands in the address; a card's own address names it already.
addressable(
  "head",
  () => (page.selected === null || cardId(page.selected) === before.place ? "" : cardId(page.selected)),
  (word) => {
    const unit = unitOf(word);
    const ofCard = unitOf(before.place) !== null; // the card of a head chooses it
    if (unit !== null && unit !== page.selected && !ofCard) select(unit);
    return !word || unit !== null;
  },
  { quiet: true },
);
