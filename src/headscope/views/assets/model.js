// What does every head do with this example? Layers by heads, one small map each.
const cells = [];

function buildModel(board) {
  board.style.setProperty("--heads", heads);
  board.setAttribute("aria-rowcount", layers + 1);
  board.setAttribute("aria-colcount", heads + 1);
  const top = element("div", { role: "row" }, element("span", { role: "columnheader", "aria-label": "layer" }));
  for (let head = 0; head < heads; head += 1) {
    top.append(element("span", { role: "columnheader", "aria-label": `head ${head + 1}` }, String(head + 1)));
  }
  board.append(top);
  for (let layer = 0; layer < layers; layer += 1) {
    const row = element("div", { role: "row" }, element("span", { role: "rowheader", "aria-label": `layer ${layer + 1}` }, String(layer + 1)));
    for (let head = 0; head < heads; head += 1) row.append(buildCell(layer, head));
    board.append(row);
  }
  board.addEventListener("pointerleave", () => say());
  new ResizeObserver(() => paintModel()).observe(board);
}

function buildCell(layer, head) {
  const label = data.labels[layer]?.[head] ?? "";
  const name = headName(layer, head) + (label ? `, ${label}` : "");
  const cell = element("div", { role: "gridcell", tabindex: "-1", "aria-label": name, title: name });
  cell.append(element("canvas", { "aria-hidden": "true" }), element("small", { "aria-hidden": "true" }, label.replace(/ (?=%)/g, "\u00a0")));
  const describe = () => say(layer, [head], chosen() ? "" : label || largestLink(unitOf(layer, head)));
  cell.addEventListener("pointerenter", describe);
  cell.addEventListener("focus", () => {
    for (const other of cells) other.tabIndex = other === cell ? 0 : -1;
    describe();
  });
  cell.addEventListener("click", () => openHead(layer, head));
  cell.addEventListener("keydown", (event) => steer(event, layer, head));
  cells.push(cell);
  return cell;
}

function steer(event, layer, head) {
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    openHead(layer, head);
    return;
  }
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -head], End: [0, heads - 1 - head] };
  const step = steps[event.key];
  if (!step) return;
  event.preventDefault();
  const [down, right] = [layer + step[0], head + step[1]];
  if (down >= 0 && down < layers && right >= 0 && right < heads) cells[unitOf(down, right)].focus();
}

function openHead(layer, head) {
  const kept = layer === state.layer && state.heads.includes(head);
  const others = kept ? state.heads.filter((other) => other !== head) : [];
  change({ layer, heads: [...others, head], view: "head" });
  at("tab-head").focus();
}

function largestLink(unit) {
  let [most, query, key] = [-1, 0, 0];
  for (let from = 0; from < n; from += 1) {
    for (let to = 0; to < n; to += 1) {
      if (visible(from, to) && !dimmed(from, to) && byteAt(unit, from, to) > most) [most, query, key] = [byteAt(unit, from, to), from, to];
    }
  }
  return most < 0 ? "" : `largest: ${quoted(query)} → ${quoted(key)}, ${number(valueAt(unit, query, key))}`;
}

function paintModel() {
  if (state.view !== "model" || !maps[state.measure]) return;
  const wide = cells[0].clientWidth;
  const size = Math.max(1, Math.min(n, Math.round(wide * devicePixelRatio)));
  const colors = shades();
  at("cells").classList.toggle("roomy", wide >= 60);
  cells.forEach((cell, unit) => {
    const [layer, head] = [Math.floor(unit / heads), unit % heads];
    const on = layer === state.layer && state.heads.includes(head);
    cell.classList.toggle("chosen", on);
    cell.setAttribute("aria-selected", on);
    cell.tabIndex = layer === state.layer && head === headNow() ? 0 : -1;
    paintThumbnail(cell.firstChild, unit, size, colors);
  });
  at("model-key").replaceChildren(...rampKey("0", "¼", "1", "of each head’s largest value (square-root scale)"));
}

// The largest value of the cells that fall on a pixel: thin diagonals stay whole.
function pooled(unit, size) {
  const pool = new Float32Array(size * size);
  for (let query = 0; query < n; query += 1) {
    const row = Math.floor((query * size) / n) * size;
    for (let key = 0; key < n; key += 1) {
      if (!visible(query, key)) continue;
      const byte = byteAt(unit, query, key) * (dimmed(query, key) ? 0.3 : 1);
      const place = row + Math.floor((key * size) / n);
      if (byte > pool[place]) pool[place] = byte;
    }
  }
  return pool;
}

function paintThumbnail(canvas, unit, size, colors) {
  canvas.width = size;
  canvas.height = size;
  canvas.getContext("2d").putImageData(picture(pooled(unit, size), size, colors), 0, 0);
}

function picture(bytes, size, colors) {
  const image = new ImageData(size, size);
  bytes.forEach((byte, place) => {
    image.data.set(colors[Math.round(byte)], place * 4);
    image.data[place * 4 + 3] = 255;
  });
  return image;
}
