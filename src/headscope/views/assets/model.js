// What does every head do with this example? Layers by heads, one small map each.
const cells = [];
const painted = []; // [layer] what its maps were painted for
let boardOf = null; // the stack that the board was built for
let cellRoom = 0; // pixels

function buildModel() {
  at("cells").addEventListener("pointerleave", () => leaveCell());
  new ResizeObserver(() => paintModel()).observe(at("cells"));
}

function buildBoard() {
  const board = at("cells");
  const { layers, heads } = stack();
  boardOf = stack();
  cells.length = painted.length = 0;
  board.style.setProperty("--heads", heads);
  put(board, "aria-rowcount", layers + 1);
  put(board, "aria-colcount", heads + 1);
  const corner = element("span", { role: "columnheader" }, element("span", { class: "unseen" }, "layer"));
  const names = count(heads).map((head) => element("span", { role: "columnheader", "aria-label": `head ${headNumber(head)}` }, headNumber(head)));
  const rows = count(layers).map((layer) => {
    const name = element("span", { role: "rowheader", "aria-label": `layer ${layerName(layer)}` }, String(layerName(layer)));
    return element("div", { role: "row" }, name, ...count(heads).map((head) => buildCell(layer, head)));
  });
  board.replaceChildren(element("div", { role: "row" }, corner, ...names), ...rows);
}

function buildCell(layer, head) {
  const label = labelOf(layer, head);
  const name = headName(layer, head) + (label ? `, ${label}` : "");
  const cell = element("div", { role: "gridcell", tabindex: "-1", "aria-label": name });
  cell.append(element("canvas", { "aria-hidden": "true" }), element("small", { "aria-hidden": "true" }, label.replace(/ (?=%)/g, "\u00a0")));
  cell.addEventListener("pointerenter", (event) => event.pointerType !== "touch" && lookAt(cell, layer, head));
  cell.addEventListener("focus", () => {
    for (const other of cells) other.tabIndex = other === cell ? 0 : -1;
    if (cell.matches(":focus-visible")) lookAt(cell, layer, head);
  });
  cell.addEventListener("blur", () => leaveCell());
  cell.addEventListener("click", (event) => openHead(layer, head, event.shiftKey));
  cell.addEventListener("keydown", (event) => steer(event, layer, head));
  cells.push(cell);
  return cell;
}

function steer(event, layer, head) {
  const { layers, heads } = stack();
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -head], End: [0, heads - 1 - head] };
  const step = steps[event.key];
  if (event.key === "Enter" || event.key === " ") openHead(layer, head);
  else if (event.key === "Escape") leaveCell();
  else if (step) {
    const [down, right] = [layer + step[0], head + step[1]];
    if (down >= 0 && down < layers && right >= 0 && right < heads) cells[unitOf(down, right)].focus();
  } else return;
  event.preventDefault();
}

// Beside the other views it is chosen there, with Shift beside those that are.
function openHead(layer, head, more = false) {
  const kept = layer === state.layer && (more || state.heads.includes(head));
  const others = kept ? state.heads.filter((other) => other !== head) : [];
  leaveCell();
  if (together()) return change({ layer, heads: more ? [...others, head] : [head] });
  change({ layer, heads: [...others, head], view: "head" });
  return at("tab-head").focus();
}

// --- an enlarged look at the head pointed at --------------------------------------------------

function lookAt(cell, layer, head) {
  if (!isHere(state.measure, layer)) return;
  const look = at("look");
  const words = chosen() ? "" : largestLink(layer, head);
  say(layer, [head], [labelOf(layer, head), words].filter(Boolean).join("; "));
  look.hidden = false;
  write(at("look-name"), `${headName(layer, head)} ${labelOf(layer, head)}`);
  paintThumbnail(at("look-map"), state.measure, layer, head, palette(measureNow().signed), 240);
  at("look-map").style.aspectRatio = shapeOfMap();
  const [frame, here] = [at("view-model").getBoundingClientRect(), cell.getBoundingClientRect()];
  const [room, size] = [document.documentElement.clientHeight, look.getBoundingClientRect()];
  const right = here.right + 10 + size.width <= frame.right;
  const across = right ? here.right + 10 : Math.max(here.left - 10 - size.width, frame.left);
  const lower = Math.min(here.top, Math.max(room - size.height - 8, 0));
  look.style.left = `${across - frame.left}px`;
  look.style.top = `${Math.max(lower, 4) - frame.top}px`;
}

function leaveCell() {
  at("look").hidden = true;
  say();
}

function largestLink(layer, head) {
  const { values } = folded(state.measure, layer, head);
  const columns = places("key").length;
  let best = -1;
  for (let pair = 0; pair < values.length; pair += 1) {
    if (best >= 0 && Math.abs(values[pair]) <= Math.abs(values[best])) continue;
    const [query, key] = [Math.floor(pair / columns), pair % columns];
    if (visible(query, key) && !dimmed(query, key)) best = pair;
  }
  if (best < 0) return "";
  return `largest: ${quoted("query", Math.floor(best / columns))} → ${quoted("key", best % columns)}, ${number(values[best])}`;
}

// --- painting ---------------------------------------------------------------------------------

function paintModel() {
  if (!shows("model")) return;
  if (boardOf !== stack()) buildBoard();
  cellRoom = cells[0].clientWidth;
  at("cells").classList.toggle("roomy", cellRoom >= 60);
  at("cells").style.setProperty("--shape", shapeOfMap());
  cells.forEach((cell, unit) => {
    const [layer, head] = [Math.floor(unit / stack().heads), unit % stack().heads];
    const on = layer === state.layer && state.heads.includes(head);
    cell.classList.toggle("chosen", on);
    put(cell, "aria-selected", on);
    if (!cells.includes(document.activeElement)) cell.tabIndex = layer === state.layer && head === headNow() ? 0 : -1;
  });
  paintRows();
  paintModelKey();
}

// A row at a time, and then a breath, so that long texts do not hold up the page.
const BREATH = 24; // milliseconds
let later = null;
function paintRows() {
  if (!shows("model")) return;
  const colors = palette(measureNow().signed);
  const start = performance.now();
  clearTimeout(later);
  for (let layer = 0; layer < stack().layers; layer += 1) {
    if (performance.now() - start > BREATH) {
      later = setTimeout(paintRows);
      return;
    }
    if (isHere(state.measure, layer)) paintRow(layer, colors);
  }
  if (count(stack().layers).every((layer) => isHere(state.measure, layer))) reached("drawn");
}

// Only when what it shows has changed.
function paintRow(layer, colors) {
  const wanted = [arrangement, state.measure, state.filter, state.special, cellRoom, devicePixelRatio, colorOf("page")].join("/");
  if (painted[layer] === wanted) return;
  painted[layer] = wanted;
  for (let head = 0; head < stack().heads; head += 1) {
    paintThumbnail(cells[unitOf(layer, head)].firstChild, state.measure, layer, head, colors, cellRoom);
  }
  reached("first");
}

function paintModelKey() {
  const measure = measureNow();
  const most = amount(Math.max(...scalesOf(measure)));
  const key = measure.signed
    ? rampKey([`−${most}`, "0", `+${most}`], `${measure.label}, the same scale for all heads (square-root scale)`, true)
    : rampKey(["0", "¼", "1"], `${measure.label}, of each ${ofLayer(measure) ? "layer" : "head"}’s largest value (square-root scale)`);
  at("model-key").replaceChildren(...key);
}
