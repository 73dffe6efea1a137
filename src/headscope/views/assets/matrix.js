// How large is every weight of one head? A heat map with the tokens on both axes.
const axes = { rows: [], columns: [] };
const SMALLEST = 10;
const LARGEST = 28;
let side = LARGEST;

function buildMatrix() {
  for (let index = 0; index < n; index += 1) {
    for (const axis of ["rows", "columns"]) {
      const label = element("span", { title: tokenText(index) }, token(index));
      label.addEventListener("click", () => keep({ side: axis === "rows" ? "query" : "key", index }));
      axes[axis].push(label);
      at(axis).append(label);
    }
  }
  const map = at("map");
  map.addEventListener("pointermove", (event) => aim(cellUnder(event)));
  map.addEventListener("pointerleave", () => aim(null));
  map.addEventListener("click", (event) => keepCell(cellUnder(event), event.shiftKey));
  at("matrix").addEventListener("keydown", steerCell);
  at("matrix").addEventListener("blur", () => aim(null));
  new ResizeObserver(() => paintMatrix()).observe(at("view-matrix"));
}

function cellUnder(event) {
  const frame = at("map").getBoundingClientRect();
  const place = (offset) => Math.min(Math.max(Math.floor(offset / side), 0), n - 1);
  return [place(event.clientY - frame.top), place(event.clientX - frame.left)];
}

function aim(cell) {
  if (state.cell === cell || (cell && state.cell && cell[0] === state.cell[0] && cell[1] === state.cell[1])) return;
  state.cell = cell;
  paintAim();
  say();
}

function keepCell([query, key], column) {
  const place = column ? { side: "key", index: key } : { side: "query", index: query };
  const kept = same(state.kept, place) ? null : place;
  change({ kept, cell: [query, key] });
}

function steerCell(event) {
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -n], End: [0, n] };
  const here = state.cell ?? startCell();
  const inside = (place) => Math.min(Math.max(place, 0), n - 1);
  if (event.key === "Enter" || event.key === " ") keepCell(here, event.shiftKey);
  else if (event.key === "Escape") change({ kept: null, cell: null });
  else if (steps[event.key]) {
    aim(state.cell ? [inside(here[0] + steps[event.key][0]), inside(here[1] + steps[event.key][1])] : here);
    at("point").scrollIntoView({ block: "nearest", inline: "nearest" });
  } else return;
  event.preventDefault();
}

// Where the cursor enters: on the kept token, at its strongest partner.
function startCell() {
  if (!state.kept) return [0, 0];
  const other = strongest(unitOf(state.layer, headNow()), state.kept)?.other ?? 0;
  return state.kept.side === "query" ? [state.kept.index, other] : [other, state.kept.index];
}

function paintMatrix() {
  if (state.view !== "matrix" || !maps[state.measure]) return;
  const sheet = at("sheet");
  const room = at("view-matrix").clientWidth - axisRoom() - 2;
  side = Math.max(SMALLEST, Math.min(LARGEST, Math.floor(room / n)));
  sheet.style.setProperty("--side", `${side}px`);
  sheet.style.setProperty("--type", `${Math.min(13, side - 1)}px`);
  sheet.style.setProperty("--axis", `${axisRoom()}px`);
  paintHeat();
  paintAim();
  const scale = data.measures[state.measure].scale[unitOf(state.layer, headNow())];
  at("matrix-key").replaceChildren(...rampKey("0", number(scale / 4), number(scale), `${data.measures[state.measure].label}, square-root scale`));
}

// Long enough for the longest token, within reason.
function axisRoom() {
  const longest = Math.max(...data.tokens.map((_, index) => tokenText(index).length));
  return Math.round(Math.min(Math.max(longest * 7 + 14, 44), at("view-matrix").clientWidth < 480 ? 84 : 120));
}

function paintHeat() {
  const unit = unitOf(state.layer, headNow());
  const colors = shades();
  const [page, rule] = [parts(colorOf("page")), parts(colorOf("rule"))];
  const image = new ImageData(n, n);
  for (let query = 0; query < n; query += 1) {
    for (let key = 0; key < n; key += 1) {
      const color = colors[byteAt(unit, query, key)];
      const pale = dimmed(query, key) ? color.map((tone, channel) => page[channel] + 0.3 * (tone - page[channel])) : color;
      const away = page.map((tone, channel) => tone + 0.35 * (rule[channel] - tone));
      image.data.set(visible(query, key) ? pale : away, (query * n + key) * 4);
      image.data[(query * n + key) * 4 + 3] = 255;
    }
  }
  const small = element("canvas", { width: n, height: n });
  small.getContext("2d").putImageData(image, 0, 0);
  const context = fitted(at("heat"), n * side, n * side);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, n * side, n * side);
}

function paintAim() {
  const place = state.cell;
  const row = place?.[0] ?? (state.kept?.side === "query" ? state.kept.index : null);
  const column = place?.[1] ?? (state.kept?.side === "key" ? state.kept.index : null);
  axes.rows.forEach((label, index) => mark(label, index, row, "query"));
  axes.columns.forEach((label, index) => mark(label, index, column, "key"));
  at("band-row").hidden = row === null;
  at("band-column").hidden = column === null;
  at("point").hidden = !place;
  at("band-row").style.top = `${(row ?? 0) * side}px`;
  at("band-column").style.left = `${(column ?? 0) * side}px`;
  at("point").style.top = `${(row ?? 0) * side}px`;
  at("point").style.left = `${(column ?? 0) * side}px`;
}

function mark(label, index, pointed, axis) {
  label.classList.toggle("pointed", index === pointed);
  label.classList.toggle("kept", same(state.kept, { side: axis, index }));
  label.classList.toggle("dimmed", state.dim && data.special[index]);
}
