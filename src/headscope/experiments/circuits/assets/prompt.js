// What does every head do for the answer of a prompt? The text, the grid, one head, its paths.
const WAYS = { q: "queries", k: "keys", v: "values" };
const SOURCE_STEPS = 32767;
const SHARE_STEPS = 65535;
const LEAST_TOP = 0.25; // of the logit difference: the darkest shade stands for no less
const LONGEST = 80; // characters of a prompt where it is named
const LISTED = 5; // paths in each direction
const at = (id) => document.getElementById(id);
const TARGETS = ["both", "answer", "rival"]; // what heads write to
const SHOWN = ["direct", "lost", "mean"];
const chosen = { prompt: 0, unit: data.first, shows: "direct", to: 0 };
const units = data.layers * data.heads;
const unpacked = new Map(); // prompt → its numbers by source token
const promptNow = () => data.prompts[chosen.prompt];

const minus = (text) => text.replace("-", "−");
const logits = (value) => (Math.abs(value) < 0.005 ? "0.00" : `${value > 0 ? "+" : ""}${minus(value.toFixed(2))}`);
const share = (value) => (value === null ? "–" : value < 0.001 ? "<\u00a00.1\u00a0%" : `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)}\u00a0%`);
const trimmed = (token) => token.trim() || token.replace(/ /g, "␣");
const endOf = (prompt, end) => trimmed(prompt.ends[end]) + (prompt.choices[end] > 1 ? ` and ${prompt.choices[end] - 1} more` : "");
const topOf = (values) => Math.max(...values.map(Math.abs), 1e-9);
const targetOf = (prompt, to) => (to === 0 ? `${endOf(prompt, 0)} less ${endOf(prompt, 1)}` : endOf(prompt, to - 1));
const lostOf = (value) => `${Math.abs(value).toFixed(2)} are ${value < 0 ? "gained" : "lost"}`;
const cells = [];

// By source token, of all heads of a prompt: [target, unit, token] each.
async function bySource(prompt) {
  if (!unpacked.has(prompt)) {
    const { buffer } = await unzipped(prompt.codes);
    const [size, rows] = [units * prompt.tokens.length, units * prompt.writes.length];
    const scale = new Float32Array(buffer, 0, rows);
    const codes = new Int16Array(buffer, 4 * rows, prompt.writes.length * size);
    const shares = new Uint16Array(buffer, 4 * rows + codes.byteLength, size);
    unpacked.set(prompt, { scale, codes, shares });
  }
  const { scale, codes, shares } = unpacked.get(prompt);
  const n = prompt.tokens.length;
  const parts = (unit, to) => prompt.tokens.map((_, place) => {
    const row = to * units + unit;
    return { writes: (codes[row * n + place] / SOURCE_STEPS) * scale[row], attends: shares[unit * n + place] / SHARE_STEPS };
  });
  return { parts, top: (to) => Math.max(...scale.subarray(to * units, (to + 1) * units)) };
}

const shade = (value, top) => signedColor(Math.sign(value) * Math.round(Math.min(Math.abs(value) / top, 1) * SIGNED_STEPS));

function headRef(unit) {
  const link = headLink(unit);
  link.dataset.unit = unit;
  return link;
}

// A bar from the middle: to the right for the answer, to the left against it.
function bar(value, top) {
  const length = (50 * Math.min(Math.abs(value) / top, 1)).toFixed(1);
  const svg = drawing("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(drawing("path", { class: "reference", d: "M50 0V10" }));
  svg.append(drawing("path", { class: "part", d: `M50 2h${value < 0 ? "-" : ""}${length}v6H50z` }));
  return hued(svg, value < 0 ? "vermillion" : "blue");
}

// --- the parts of the page -----------------------------------------------------------------------

function buildGrid() {
  const heads = Array.from({ length: data.heads }, (_, head) => element("th", { scope: "col" }, `${head + data.countsFrom}`));
  const rows = Array.from({ length: data.layers }, (_, layer) => {
    const row = Array.from({ length: data.heads }, (_, head) => {
      const unit = layer * data.heads + head;
      const cell = element("a", { class: "cell number", href: `#${cardId(unit)}`, "data-unit": unit });
      cells.push(cell);
      return element("td", {}, cell);
    });
    return element("tr", {}, element("th", { scope: "row" }, `${layerName(layer)}`), ...row);
  });
  at("cells").append(element("thead", {}, element("tr", {}, element("td"), ...heads)), element("tbody", {}, ...rows));
  roving(cells, gridStep);
}

function paintGrid() {
  const prompt = promptNow();
  const writes = prompt.writes[chosen.to];
  const values = chosen.shows === "direct" ? writes : prompt[chosen.shows];
  const top = Math.max(topOf(values), LEAST_TOP * Math.abs(prompt.difference)); // where heads do little, it looks so
  cells.forEach((cell, unit) => {
    cell.style.backgroundColor = shade(values[unit], top);
    cell.replaceChildren(...(data.followed.includes(unit) ? [element("span", { class: "followed" })] : []));
    cell.setAttribute("aria-label", `${headName(unit)}, ${logits(values[unit])} logits`);
    cell.title = `${headName(unit)}: writes ${logits(writes[unit])}, lost without it ${logits(prompt.lost[unit])}`;
    if (unit === chosen.unit) cell.setAttribute("aria-current", "true");
    else cell.removeAttribute("aria-current");
  });
  const dot = prompt.paths ? [element("span", { class: "kind" }, element("span", { class: "followed" }), "paths below")] : [];
  at("key").replaceChildren(...rampKey(-SIGNED_STEPS, SIGNED_STEPS + 1, logits(-top), `${logits(top)} logits`, signedColor), ...dot);
}

function paintPrompt() {
  const prompt = promptNow();
  const names = ["answer", "rival"];
  at("ends").replaceChildren(...prompt.ends.map((text, end) => {
    const [probability, rank, loss] = prompt.outcome[end];
    const name = element("th", { scope: "row" }, element("b", {}, trimmed(text)), ` ${names[end]}${prompt.choices[end] > 1 ? `, likeliest of ${prompt.choices[end]}` : ""}`);
    const told = [share(probability), `${rank}`, loss.toFixed(2)].map((words) => element("td", {}, words));
    return element("tr", {}, name, ...told);
  }));
  at("said").textContent = prompt.said;
  at("to").replaceChildren(...prompt.writes.map((_, to) => element("option", { value: to }, targetOf(prompt, to))));
  at("to").value = chosen.to;
}

async function paintHead() {
  const { prompt: place, unit, to } = chosen;
  const prompt = promptNow();
  const sources = await bySource(prompt);
  if (place !== chosen.prompt || unit !== chosen.unit || to !== chosen.to) return;
  at("head-name").textContent = headName(unit);
  const label = data.labels[unit] && data.labels[unit] !== "unlabelled" ? ` (over all prompts: ${data.labels[unit].replaceAll(" %", "\u00a0%")})` : "";
  at("head-says").replaceChildren(
    element("b", {}, `Writes ${logits(prompt.writes[to][unit])} logits`), ` to ${targetOf(prompt, to)}${to ? ", above the mean of all tokens" : ""}; switched off, `,
    element("b", {}, lostOf(prompt.lost[unit])), `${label}.`, prompt.mean ? ` With its mean instead, ${lostOf(prompt.mean[unit])}.` : "",
  );
  const [parts, top] = [sources.parts(unit, to), sources.top(to)];
  at("tokens").replaceChildren(...prompt.tokens.map((token, index) => {
    const [probability, rank, loss] = prompt.told[index];
    const { writes, attends } = parts[index];
    const told = [share(probability), rank === null ? "–" : rank.toLocaleString("en"), loss === null ? "–" : loss.toFixed(2)];
    const cellsOf = [...told, share(attends), logits(writes)].map((words, column) => element("td", column > 2 ? { class: "of-head" } : {}, words));
    cellsOf[3].style.setProperty("--share", `${(100 * attends).toFixed(1)}%`);
    return element("tr", {}, element("th", { scope: "row" }, trimmed(token)), ...cellsOf, element("td", { class: "strip" }, bar(writes, top)));
  }));
  at("text").replaceChildren(...prompt.tokens.map((token, index) => {
    const span = element("span", {}, token);
    span.style.backgroundColor = shade(0.6 * parts[index].writes, top); // words stay readable
    return span;
  }), element("b", { class: "next" }, prompt.ends[0]));
}

// L8·H10 and MLP 8 count from 1, as in the data.
function partRef(name) {
  const [, layer, head] = name.match(/^(?:L|MLP )(\d+)(?:·H(\d+))?$/) || [];
  if (head) return headRef((layer - 1) * data.heads + Number(head) - 1);
  return layer ? `MLP ${layerName(layer - 1)}` : name;
}

function paintWhy() {
  const prompt = promptNow();
  const [key, ...sides] = (prompt.why || [])[data.followed.indexOf(chosen.unit)] || [];
  at("why").hidden = key === undefined;
  if (key === undefined) return;
  const [seen, last] = [prompt.tokens[key], prompt.tokens.at(-1)].map((token) => `“${trimmed(token)}”`);
  const top = topOf(sides.flat().map(([, value]) => value));
  at("why-title").textContent = `Why it looks at ${seen}`;
  at("writers").replaceChildren(...sides.map((side, own) => {
    const rows = side.map(([name, value]) => element("li", {}, element("span", {}, partRef(name)), element("span", { class: "value" }, logits(value)), bar(value, top)));
    return element("section", {}, element("h4", {}, own ? `What wrote the key at ${seen}` : `What wrote the query at ${last}`), element("ul", { class: "ways" }, ...rows));
  }));
}

function paintPaths() {
  const prompt = promptNow();
  const { unit } = chosen;
  at("paths").hidden = !prompt.paths;
  if (!prompt.paths) return;
  const top = topOf(prompt.paths.map((path) => path[3]));
  const list = (title, own) => {
    const here = prompt.paths.filter((path) => path[own] === unit && logits(path[3]) !== "0.00");
    const rows = here.slice(0, LISTED).map(([sender, receiver, via, value]) => {
      const into = [headRef(sender), ` → its ${WAYS[via]}`];
      const name = element("span", {}, ...(own ? into : [`→ ${WAYS[via]} of `, headRef(receiver)]));
      return element("li", {}, name, element("span", { class: "value" }, `${logits(value)} (${share(Math.abs(value / prompt.gap))})`), bar(value, top));
    });
    const none = element("p", { class: "absent" }, data.followed.includes(unit) ? "None of 0.005 logits or more." : "Not followed.");
    return element("section", {}, element("h4", {}, title), rows.length ? element("ul", { class: "ways" }, ...rows) : none);
  };
  at("ways").replaceChildren(list(`Into ${headName(unit)}`, 1), list(`Out of ${headName(unit)}`, 0));
  at("followed").textContent = `Followed between ${data.followed.length} heads. The corrupted prompt takes ${minus(prompt.gap.toFixed(2))} logits; shares are of these.`;
  paintGraph(prompt);
}

function paint() {
  paintPrompt();
  paintGrid();
  paintHead();
  paintWhy();
  paintPaths();
}

// --- what is chosen ------------------------------------------------------------------------------

function choose(change) {
  Object.assign(chosen, change);
  at("which").value = chosen.prompt;
  document.querySelector(`input[name="shows"][value="${chosen.shows}"]`).checked = true;
  paint();
  tellAddress();
}

const ending = (text) => (text.length > LONGEST ? `…${text.slice(-LONGEST)}` : text);
at("which").append(...data.prompts.map(({ tokens, ends }, place) => element("option", { value: place }, `${place + 1}: ${ending(tokens.join(""))} → ${ends[0]}`)));
at("which").addEventListener("change", () => choose({ prompt: Number(at("which").value) }));
at("to").addEventListener("change", () => choose({ to: Number(at("to").value) }));
for (const input of document.querySelectorAll('input[name="shows"]')) input.addEventListener("change", () => choose({ shows: input.value }));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-unit]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose({ unit: Number(link.dataset.unit) });
  if (!cells.includes(link) && !at("graph").contains(document.activeElement)) at("head-name").focus();
});
listeners.push((unit) => unit !== null && choose({ unit }));
if (!promptNow().mean) at("mean").remove(); // of a run from before it was measured
addEventListener("resize", () => promptNow().paths && paintGraph(promptNow()));
buildGrid();
const known = new Map(cells.map((_, unit) => [cardId(unit), unit]));
addressable("prompt", () => `${chosen.prompt + 1}`, (word) => {
  const place = data.prompts.findIndex((_, index) => `${index + 1}` === word);
  if (place >= 0) choose({ prompt: place });
  return place >= 0;
});
addressable("shows", () => chosen.shows, (word) => {
  const fits = SHOWN.includes(word) && (word !== "mean" || Boolean(promptNow().mean));
  if (fits) choose({ shows: word });
  return fits;
});
addressable("to", () => TARGETS[chosen.to], (word) => {
  const to = TARGETS.indexOf(word);
  const fits = to >= 0 && to < promptNow().writes.length;
  if (fits) choose({ to });
  return fits;
});
addressable("", () => cardId(chosen.unit), (word) => {
  if (known.has(word)) choose({ unit: known.get(word) });
  return known.has(word);
});
paint();
startAddress();
