// What does the model answer, as it is and changed? Probabilities where it has a head, else how far
// its output vectors moved.
const TITLES = { next: "Next token", mask: "Masked token", classes: "Class", vectors: "Output vectors" };
const share = (value) => (value >= 0.1 ? `${(100 * value).toFixed(0)} %` : value >= 0.001 ? `${(100 * value).toFixed(1)} %` : value === 0 ? "0 %" : "< 0.1 %");

function paintOutcome() {
  const { kind, rows, moved } = live.outcome;
  write(at("outcome-title"), TITLES[kind]);
  const tables = rows.map((row) => table(row, kind));
  const said = [];
  if (kind === "mask" && !rows.length) said.push(element("p", { class: "hint" }, `Write ${live.settings.mask} where the model shall tell a word.`));
  if (kind === "next" && !rows.length) said.push(element("p", { class: "hint" }, "Write as Decoder what the model has written so far: it tells what comes next."));
  if (moved && rows.length) said.push(element("p", { class: "hint" }, "Bars and bold numbers: changed; black marks: as it is."));
  const words = movedWords(moved);
  if (kind === "vectors" && !moved) said.push(element("p", {}, "This checkpoint answers nothing by itself: it has no classifier or language model on top. Switch an attention head off, and the page says how far each token’s output vector moves."));
  else if (words) said.push(element("p", { class: kind === "vectors" ? "" : "hint" }, ...words));
  at("outcome").replaceChildren(...tables, ...said);
}

function table({ place, told }, kind) {
  const most = Math.max(...told.flatMap(([, before, after]) => [before, after ?? 0]), 1e-9);
  const body = told.map(([name, before, after]) => {
    const now = after ?? before;
    const bar = element("span", { class: "share" }, element("i", { class: "now" }));
    bar.style.setProperty("--now", now / most);
    if (after !== null) {
      bar.append(element("i", { class: "before" }));
      bar.style.setProperty("--before", before / most);
    }
    const numbers = after === null ? [share(before)] : [`${share(before)} → `, element("b", {}, share(after))];
    return element("tr", {}, element("th", { scope: "row" }, element("bdi", {}, kind === "classes" ? legible(name) : shownToken(name))), element("td", { class: "room" }, bar), element("td", {}, ...numbers));
  });
  const rows = element("table", { class: "told" }, element("tbody", {}, ...body));
  if (kind !== "mask" || place === null) return rows;
  return element("div", {}, element("p", { class: "hint" }, `at token ${place + 1}`), rows);
}

// A space before it is part of a token: it is seen as such only where there is none.
const shownToken = (name) => (/^ \S/.test(name) ? legible(name.slice(1)) : /^\S+$/.test(name) && live.settings.answers === "next" ? `·${legible(name)}` : legible(name));

function movedWords(moved) {
  if (!moved) return null;
  const side = data.sides[data.sides.length - 1];
  const pieces = piecesOf(side);
  const mean = moved.reduce((sum, one) => sum + one, 0) / moved.length;
  if (!(mean > 0)) return ["No output vector moved."];
  const order = count(moved.length).sort((one, two) => moved[two] - moved[one]).slice(0, 3).filter((place) => moved[place] > 0);
  const named = order.flatMap((place, rank) => [rank ? ", " : "", element("bdi", {}, `${quotedText(legible(pieces[place]))}`), ` ${moved[place].toPrecision(2)}`]);
  return [`Output vectors moved by ${mean.toPrecision(2)} on the mean (1 − cosine, 0 to 2); most: `, ...named, "."];
}
