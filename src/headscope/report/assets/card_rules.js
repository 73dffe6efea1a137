// Which rules say where a head looks, and where do they fail? For each rule a query of every tenth,
// from the least used on, in the text around it.
const AROUND = 8; // tokens on either side of the query

function rulesPart(unit) {
  const rules = data.cards.rules;
  if (!rules?.lines[unit].length) return null;
  const said = rules.lines[unit].map((line) => element("li", {}, line));
  const tables = rules.names[unit].map((name, at) => contextsPart(name, rules.of[unit][at])).filter(Boolean);
  const note = "Where each rule is used, and where it fails: of the queries that it applies to, drawn at random from inputs that chose no rule, one of each tenth, the least used first. Use is the share that goes to the keys of the rule; these are underlined.";
  const more = tables.length ? [element("p", { class: "caption" }, note), ...tables] : [];
  return element("section", { class: "rules" }, element("h3", {}, "Rules"), element("ul", {}, ...said), ...more);
}

function contextsPart(name, rows) {
  if (!rows.length) return null;
  const table = element("table", { class: "rows" });
  const names = ["use", "query, in its text", "takes most from"].map((text) => element("th", { scope: "col" }, text));
  const body = rows.map(([query, use, taken]) =>
    element("tr", {}, element("th", { scope: "row" }, `${use} %`), contextCell(query), takenCell(taken)),
  );
  table.append(element("thead", {}, element("tr", {}, ...names)), element("tbody", {}, ...body));
  const range = `${rows[0][1]} % to ${rows[rows.length - 1][1]} %`;
  return element("details", {}, element("summary", {}, element("b", {}, name), `, used by ${range}`), table);
}

function contextCell(query) {
  const { tokens, starts } = data.cards.rules;
  const begin = starts.findLast((start) => start <= query);
  const end = starts.find((start) => start > query) ?? tokens.length;
  const [first, last] = [Math.max(begin, query - AROUND), Math.min(end, query + AROUND + 1)];
  const before = `${first > begin ? "… " : ""}${tokens.slice(first, query).join("").trimStart()}${tokens[query].startsWith(" ") ? " " : ""}`;
  const after = `${tokens.slice(query + 1, last).join("")}${last < end ? " …" : ""}`;
  return element("td", {}, element("bdi", {}, before, element("mark", {}, tokens[query].trim()), after));
}

function takenCell(taken) {
  const { tokens } = data.cards.rules;
  const parts = taken.flatMap(([key, share, own], at) => [
    element(own ? "u" : "span", {}, element("bdi", {}, tokens[key].trim())),
    ` ${share} %${at < taken.length - 1 ? ",  " : ""}`,
  ]);
  return element("td", {}, ...parts);
}
