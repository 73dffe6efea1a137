// What is changed in the model: heads that are off or even, tokens whose value is zero?
const WAYS = [["on", "on"], ["off", "off"], ["even", "even"]];
const changeNames = { off: "off", even: "even" };
const headWord = (place, layer, head) => `${place}.${layer}.${head}`;

function wayOf(word) {
  return Object.keys(changeNames).find((way) => live.changes[way].has(word)) ?? "on";
}

function setWay(words, way) {
  for (const word of words) {
    for (const name of Object.keys(changeNames)) live.changes[name].delete(word);
    if (way !== "on") live.changes[way].add(word);
  }
  changed();
}

function setZero(word, zero) {
  live.changes.zero[zero ? "add" : "delete"](word);
  changed();
}

function changed() {
  paintChanges();
  askModel();
}

const chosenWords = () => (shows("head") ? state.heads : [headNow()]).map((head) => headWord(state.stack, state.layer, head));

function buildChanges() {
  at("ways").append(...switched("way", WAYS, (way) => setWay(chosenWords(), way)));
  at("layer-off").addEventListener("click", () => {
    const words = count(stack().heads).map((head) => headWord(state.stack, state.layer, head));
    setWay(words, words.every((word) => wayOf(word) === "off") ? "on" : "off");
  });
  at("zero-layer").addEventListener("change", (event) => {
    live.layer = event.target.value ? Number(event.target.value) : null;
    if (live.changes.zero.size) changed();
    else tellAddress();
  });
  at("cells").addEventListener("keydown", (event) => {
    const way = { o: "off", e: "even" }[event.key.toLowerCase()];
    const unit = cells.indexOf(event.target);
    if (!way || unit < 0 || event.ctrlKey || event.metaKey || event.altKey || !live.settings.changes) return;
    const word = headWord(state.stack, ...partOf(unit));
    setWay([word], wayOf(word) === way ? "on" : way);
  });
}

// --- painting ---------------------------------------------------------------------------------

function paintChanges() {
  if (!data.stacks.length) return;
  const words = chosenWords();
  const ways = new Set(words.map(wayOf));
  const several = words.length > 1 ? `${headName(state.layer, headNow())} and ${words.length - 1} more` : headName(state.layer, headNow());
  write(at("which"), data.stacks.length > 1 ? `${stack().name} ${several}` : several);
  for (const input of document.querySelectorAll("input[name=way]")) input.checked = ways.size === 1 && ways.has(input.value);
  const all = count(stack().heads).every((head) => wayOf(headWord(state.stack, state.layer, head)) === "off");
  write(at("layer-off"), `all of layer ${layerName(state.layer)} ${all ? "on" : "off"}`);
  paintZeroLayer();
  paintMost();
  paintChangeList();
  paintStrips();
  foldRows();
  cells.forEach((cell, unit) => {
    const way = wayOf(headWord(state.stack, ...partOf(unit)));
    if (way === "on") delete cell.dataset.way;
    else cell.dataset.way = way;
  });
  for (const chip of document.querySelectorAll(".chip")) {
    const way = wayOf(headWord(state.stack, state.layer, Number(chip.dataset.head)));
    if (way === "on") delete chip.dataset.way;
    else chip.dataset.way = way;
  }
}

function paintZeroLayer() {
  const select = at("zero-layer");
  const layers = Math.max(...data.stacks.map((one) => one.layers));
  if (select.length !== layers + 1) {
    const names = count(layers).map((layer) => element("option", { value: layer }, `in layer ${zeroLayerName(layer)}`));
    select.replaceChildren(element("option", { value: "" }, "in all layers"), ...names);
  }
  select.value = live.layer ?? "";
}

const zeroLayerName = (layer) => (data.stacks[0].numbers?.[layer] ?? layer) + countsFrom;

// Of the change of attention, the layers before the first changed one show nothing.
function foldRows() {
  const layers = [...live.changes.off, ...live.changes.even].map((word) => word.split(".").map(Number)).filter(([place]) => place === state.stack).map(([, layer]) => layer);
  const others = layers.length < live.changes.off.size + live.changes.even.size || (live.changes.zero.size > 0 && data.stacks.length > 1);
  if (live.changes.zero.size) layers.push((live.layer ?? 0) + 1); // what a layer mixes is changed, not its weights
  const from = measureNow().signed && !others && layers.length ? Math.min(...layers) : 0;
  at("cells").querySelectorAll("[role=row]").forEach((row, place) => row.classList.toggle("folded", place > 0 && place - 1 < from));
  const which = from > 1 ? `Layers ${layerName(0)} to ${layerName(from - 1)} stand` : `Layer ${layerName(0)} stands`;
  write(at("folded"), from && shows("model") ? `${which} before the change: no weight moves there.` : "");
}

function nameOf(word) {
  const [place, layer, head] = word.split(".").map(Number);
  const one = data.stacks[place];
  if (!one) return word;
  const name = `L${(one.numbers?.[layer] ?? layer) + countsFrom}·H${head + countsFrom}`;
  return data.stacks.length > 1 ? `${one.name} ${name}` : name;
}

const tokenText = (word) => {
  const [side, token] = word.split(".").map(Number);
  return legible(piecesOf(data.sides[side])[token] ?? "");
};

function paintChangeList() {
  const rows = Object.keys(changeNames).flatMap((way) => [...live.changes[way]].sort((one, two) => one.localeCompare(two, "en", { numeric: true })).map((word) => changeRow([nameOf(word)], way, () => setWay([word], "on"))));
  for (const word of live.changes.zero) rows.push(changeRow(["value of ‘", element("bdi", {}, tokenText(word)), "’"], live.layer === null ? "zero" : `zero in layer ${zeroLayerName(live.layer)}`, () => setZero(word, false)));
  if (rows.length > 1) {
    const all = element("button", { type: "button", class: "ask" }, "undo all");
    all.addEventListener("click", () => {
      for (const some of Object.values(live.changes)) some.clear();
      changed();
    });
    rows.push(element("li", {}, all));
  }
  at("changed").replaceChildren(...rows);
}

// Where to look first: heads that are not changed themselves.
let mostOf = null; // the outcome that they are named for
function paintMost() {
  if (mostOf === live.outcome) return;
  mostOf = live.outcome;
  const named = (mostOf.most ?? []).flatMap(([place, layer, head, moved], rank) => {
    const look = textButton(nameOf(headWord(place, layer, head)), () => {
      if (place !== state.stack) showStack(place);
      change({ layer, heads: [head] });
    });
    return [rank ? ", " : "Attention moves most in ", look, ` (${share(moved)}${rank ? "" : " of it"})`];
  });
  at("most").replaceChildren(...named);
}

function changeRow(name, way, undo) {
  const button = element("button", { type: "button" }, element("b", {}, ...name), ` ${way} `, element("span", { "aria-hidden": "true" }, "×"));
  button.setAttribute("aria-label", `${button.textContent.replace("×", "").trim()}: undo`);
  button.addEventListener("click", undo);
  return element("li", {}, button);
}

// --- the tokens as the model reads them -------------------------------------------------------

let stripsOf = null; // the sides that they were built for
function paintStrips() {
  if (stripsOf !== data.sides) buildStrips();
  const moved = live.outcome?.moved ?? null;
  const most = Math.max(...(moved ?? [0]), 1e-9);
  const last = data.sides.length - 1; // whose output it is
  for (const token of document.querySelectorAll("#strips button")) {
    const [side, place] = token.dataset.token.split(".").map(Number);
    put(token, "aria-pressed", live.changes.zero.has(token.dataset.token));
    const share = moved && side === last ? moved[place] : null;
    token.style.setProperty("--moved", share === null ? 0 : Math.sqrt(Math.max(share, 0) / most));
    token.title = share === null ? "set its value to zero" : `output moved by ${share.toPrecision(2)} (1 − cosine)`;
  }
}

function buildStrips() {
  stripsOf = data.sides;
  const strips = data.sides.map((side, place) => {
    const strip = element("div", { class: "tokens-read", dir: "auto" });
    if (side.name) strip.append(element("span", { class: "side" }, side.name));
    strip.append(...piecesOf(side).map((text, token) => buildToken(side, place, token, text)));
    return strip;
  });
  at("strips").replaceChildren(...strips);
}

function buildToken(side, place, token, text) {
  const button = element("button", { type: "button", "data-token": `${place}.${token}` }, element("bdi", {}, legible(text)));
  button.classList.toggle("special", side.special[token]);
  button.disabled = !live.settings.changes;
  button.addEventListener("click", () => setZero(button.dataset.token, !live.changes.zero.has(button.dataset.token)));
  return button;
}
