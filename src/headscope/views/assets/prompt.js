// What does every head do for the answer of a prompt? The text, the grid, one head, its paths.
const WAYS = { q: "queries", k: "keys", v: "values" };
const SOURCE_STEPS = 32767;
const SHARE_STEPS = 65535;
const LEAST_TOP = 0.25; // of the logit difference: the darkest shade stands for no less
const LONGEST = 80; // characters of a prompt where it is named
const LISTED = 5; // paths in each direction
const at = (id) => document.getElementById(id);
const chosen = { prompt: 0, unit: data.first, shows: "direct" };
const units = data.layers * data.heads;
const unpacked = new Map(); // prompt → its numbers by source token
const promptNow = () => data.prompts[chosen.prompt];

const minus = (text) => text.replace("-", "−");
const logits = (value) => (Math.abs(value) < 0.005 ? "0.00" : `${value > 0 ? "+" : ""}${minus(value.toFixed(2))}`);
const share = (value) => (value === null ? "–" : value < 0.001 ? "<\u00a00.1\u00a0%" : `${(100 * value).toFixed(value < 0.0995 ? 1 : 0)}\u00a0%`);
const trimmed = (token) => token.trim() || token.replace(/ /g, "␣");
const endOf = (prompt, end) => trimmed(prompt.ends[end]) + (prompt.choices[end] > 1 ? ` and ${prompt.choices[end] - 1} more` : "");
const topOf = (values) => Math.max(...values.map(Math.abs), 1e-9);
const cells = [];

// By source token, of all heads of a prompt: [unit, token] each.
async function bySource(prompt) {
  if (!unpacked.has(prompt)) {
    const { buffer } = await unzipped(prompt.codes);
    const size = units * prompt.tokens.length;
    const scale = new Float32Array(buffer, 0, units);
    const codes = new Int16Array(buffer, 4 * units, size);
    const shares = new Uint16Array(buffer, 4 * units + 2 * size, size);
    unpacked.set(prompt, { scale, codes, shares, top: Math.max(...scale) });
  }
  const { scale, codes, shares, top } = unpacked.get(prompt);
  const n = prompt.tokens.length;
  const parts = (unit) => prompt.tokens.map((_, place) => ({
    writes: (codes[unit * n + place] / SOURCE_STEPS) * scale[unit],
    attends: shares[unit * n + place] / SHARE_STEPS,
  }));
  return { parts, top };
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
  const values = prompt[chosen.shows];
  const top = Math.max(topOf(values), LEAST_TOP * Math.abs(prompt.difference)); // where heads do little, it looks so
  cells.forEach((cell, unit) => {
    cell.style.backgroundColor = shade(values[unit], top);
    cell.replaceChildren(...(data.followed.includes(unit) ? [element("span", { class: "followed" })] : []));
    cell.setAttribute("aria-label", `${headName(unit)}, ${logits(values[unit])} logits`);
    cell.title = `${headName(unit)}: writes ${logits(prompt.direct[unit])}, lost without it ${logits(prompt.lost[unit])}`;
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
}

async function paintHead() {
  const { prompt: place, unit } = chosen;
  const prompt = promptNow();
  const sources = await bySource(prompt);
  if (place !== chosen.prompt || unit !== chosen.unit) return;
  at("head-name").textContent = headName(unit);
  const label = data.labels[unit] && data.labels[unit] !== "unlabelled" ? ` (over all prompts: ${data.labels[unit].replaceAll(" %", "\u00a0%")})` : "";
  at("head-says").replaceChildren(
    element("b", {}, `Writes ${logits(prompt.direct[unit])} logits`), ` to ${endOf(prompt, 0)} less ${endOf(prompt, 1)}; switched off, `,
    element("b", {}, `${Math.abs(prompt.lost[unit]).toFixed(2)} are ${prompt.lost[unit] < 0 ? "gained" : "lost"}`), `${label}.`,
  );
  const [parts, top] = [sources.parts(unit), sources.top];
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
  const links = data.followed.flatMap((other, index) => [index ? ", " : "", headRef(other)]);
  at("followed").replaceChildren(`Followed between ${data.followed.length} heads: `, ...links, `. The corrupted prompt takes ${minus(prompt.gap.toFixed(2))} logits; shares are of these.`);
}

function paint() {
  paintPrompt();
  paintGrid();
  paintHead();
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
for (const input of document.querySelectorAll('input[name="shows"]')) input.addEventListener("change", () => choose({ shows: input.value }));
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-unit]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose({ unit: Number(link.dataset.unit) });
  if (!cells.includes(link)) at("head-name").focus();
});
listeners.push((unit) => unit !== null && choose({ unit }));
buildGrid();
const known = new Map(cells.map((_, unit) => [cardId(unit), unit]));
addressable("prompt", () => `${chosen.prompt + 1}`, (word) => {
  const place = data.prompts.findIndex((_, index) => `${index + 1}` === word);
  if (place >= 0) choose({ prompt: place });
  return place >= 0;
});
addressable("shows", () => chosen.shows, (word) => {
  const fits = ["direct", "lost"].includes(word);
  if (fits) choose({ shows: word });
  return fits;
});
addressable("", () => cardId(chosen.unit), (word) => {
  if (known.has(word)) choose({ unit: known.get(word) });
  return known.has(word);
});
paint();
startAddress();
