// What wrote the query and the key of a weight? The model is asked when the answer is opened.
const writers = { name: "", asked: null, sides: null, refused: "" };

function paintWriters(row, key) {
  const place = { stack: state.stack, layer: state.layer, head: headNow(), query: row.query, key };
  const name = JSON.stringify([live.answers, place]);
  if (writers.name !== name) {
    Object.assign(writers, { name, sides: null, refused: "" });
    askWriters(name, place);
  }
  const tokens = [namedToken(queryTokens(), row.query), namedToken(keyTokens(), key)];
  const most = Math.max(...(writers.sides ?? []).flat().map(([, value]) => Math.abs(value))) || 1;
  const tables = (writers.sides ?? []).map((side, own) => {
    const rows = side.map(([part, value]) => partRow(part, value, most));
    return element("div", {}, element("h3", {}, `What wrote the ${own ? "key" : "query"} at ${tokens[own]}`), element("table", {}, ...rows));
  });
  const note = writers.refused || (writers.sides ? "Parts of the model as it is, by what they add to the score beyond the query’s other keys." : "What wrote the query and the key: asking the model…");
  at("neuron-writers").replaceChildren(element("div", { class: "halves" }, ...tables), element("p", { class: "hint" }, note));
}

async function askWriters(name, place) {
  writers.asked?.abort();
  writers.asked = new AbortController();
  const { text, pair } = live;
  try {
    const buffer = await send("score", { text, pair, ...place }, writers.asked.signal);
    if (writers.name === name) writers.sides = JSON.parse(new TextDecoder().decode(buffer));
  } catch (error) {
    if (error.name === "AbortError" || error.status === 409) return;
    if (writers.name === name) writers.refused = error.message;
  }
  if (writers.name === name) repaint();
}

answerPainters.push(paintWriters);
