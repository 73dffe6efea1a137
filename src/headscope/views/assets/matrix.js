// How large is every weight of one head? Heat maps with the tokens on both axes.
const sheets = [];
const SMALLEST = 10; // pixels of a cell that can be read
const LARGEST = 28;
const LEGIBLE = 7; // below this, labels are left out
const BARE_AXIS = 24; // pixels of an axis without labels
let cellSize = LARGEST;
let axisRoom = BARE_AXIS;

function buildMatrix() {
  sheets.push(sheet("", () => state.measure), sheet("-beside", () => state.beside));
  new ResizeObserver(() => paintMatrix()).observe(at("view-matrix"));
}

function sheet(suffix, measure) {
  const one = { measure, built: -1, labels: { query: [], key: [] }, frame: at(`matrix${suffix}-frame`), scroll: at(`matrix${suffix}`) };
  const axis = (name, id) => element("div", { class: name, id: id + suffix, "aria-hidden": "true" });
  one.axes = { key: axis("top", "columns"), query: axis("left", "rows") };
  one.heat = element("canvas", { id: `heat${suffix}`, "aria-hidden": "true" });
  one.bands = { query: element("i", { class: "band row" }), key: element("i", { class: "band column" }) };
  one.point = element("i", { class: "point", id: `point${suffix}` });
  one.map = element("div", { class: "map", id: `map${suffix}` }, one.heat, one.bands.query, one.bands.key, one.point);
  one.sheet = element("div", { class: "sheet" }, element("div", { class: "corner" }), one.axes.key, one.axes.query, one.map);
  one.caption = element("p", { class: "caption" });
  one.key = element("div", { class: "key" });
  one.scroll.append(one.sheet);
  one.frame.prepend(one.caption, one.key);
  one.map.addEventListener("pointermove", (event) => aim(cellUnder(event, one.map)));
  one.map.addEventListener("pointerleave", () => aim(null));
  one.map.addEventListener("click", (event) => keepCell(cellUnder(event, one.map), event.shiftKey));
  one.scroll.addEventListener("keydown", (event) => steerCell(event, one));
  one.scroll.addEventListener("blur", () => aim(null));
  return one;
}

function fillAxes(one) {
  one.built = arrangement;
  for (const side of ["query", "key"]) {
    one.labels[side] = places(side).map((place, index) => {
      const label = element("span", { title: placeText(side, index) }, placeElement(side, index));
      label.classList.toggle("special", place.special);
      label.addEventListener("click", () => keep({ side, index }));
      return label;
    });
    one.axes[side].replaceChildren(...one.labels[side]);
  }
}

// --- the cursor -------------------------------------------------------------------------------

function cellUnder(event, map) {
  const frame = map.getBoundingClientRect();
  const inside = (offset, side) => Math.min(Math.max(Math.floor(offset / cellSize), 0), places(side).length - 1);
  return [inside(event.clientY - frame.top, "query"), inside(event.clientX - frame.left, "key")];
}

const sameCell = (one, other) => one === other || (one && other && one[0] === other[0] && one[1] === other[1]);

function aim(cell) {
  if (sameCell(state.cell, cell)) return;
  state.cell = cell;
  if (together()) {
    state.pointed = cell && { side: "query", index: cell[0] };
    paintHead();
  }
  sheets.forEach(paintAim);
  say();
}

// Keeps the row and asks why the weight is what it is; the same once more closes both. Or the column.
function keepCell([query, key], column) {
  const place = column ? { side: "key", index: key } : { side: "query", index: query };
  const asks = !column && visible(query, key);
  const again = same(state.kept, place) && (!asks || (neuron.told && sameCell(askedCell(), [query, key])));
  if (asks && !again) askWeight(query, key);
  else neuron.told = false;
  change({ kept: again ? null : place, cell: [query, key] });
  if (alone("matrix")) at("neuron-question").scrollIntoView({ block: "nearest" });
}

function steerCell(event, one) {
  const far = Math.max(places("query").length, places("key").length);
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -far], End: [0, far] };
  const here = state.cell ?? startCell();
  const inside = (index, side) => Math.min(Math.max(index, 0), places(side).length - 1);
  const step = steps[event.key];
  if (event.key === "Enter" || event.key === " ") keepCell(here, event.shiftKey);
  else if (event.key === "Escape") {
    neuron.told = false;
    change({ kept: null, cell: null });
  } else if (step) {
    aim(state.cell ? [inside(here[0] + step[0], "query"), inside(here[1] + step[1], "key")] : here);
    one.point.scrollIntoView({ block: "nearest", inline: "nearest" });
  } else return;
  event.preventDefault();
}

// Where the cursor enters: on the kept token, at its strongest partner.
function startCell() {
  if (!state.kept || !isHere(state.measure, state.layer)) return [0, 0];
  const other = strongest(state.measure, state.layer, headNow(), state.kept)?.other ?? 0;
  return state.kept.side === "query" ? [state.kept.index, other] : [other, state.kept.index];
}

// --- painting ---------------------------------------------------------------------------------

function paintMatrix() {
  if (!due("matrix")) return;
  const shown = sheets.filter((one) => one.measure() !== null);
  for (const one of sheets) one.frame.hidden = !shown.includes(one);
  const width = (shown.length > 1 ? shown[0].frame : at("view-matrix")).clientWidth; // whatever stands beside
  axisRoom = state.whole ? BARE_AXIS : longestLabel(width);
  if (state.whole && fitting(width - longestLabel(width), 0) > LEGIBLE) axisRoom = longestLabel(width);
  const fit = fitting(width - axisRoom, document.documentElement.clientHeight - 96 - axisRoom);
  cellSize = state.whole ? Math.min(LARGEST, fit) : Math.max(SMALLEST, Math.min(LARGEST, Math.floor(fit)));
  for (const one of shown) if (isHere(one.measure(), state.layer)) paintSheet(one, one.measure());
}

function paintSheet(one, place) {
  if (one.built !== arrangement) fillAxes(one);
  const measure = stack().measures[place];
  one.sheet.style.setProperty("--side", `${cellSize}px`);
  one.sheet.style.setProperty("--type", `${Math.min(13, cellSize - 1)}px`);
  one.sheet.style.setProperty("--axis", `${axisRoom}px`);
  one.sheet.classList.toggle("bare", cellSize < LEGIBLE);
  write(one.caption, state.beside === null ? "" : measure.label);
  const map = mapOf(place, state.layer, headNow());
  paintHeat(one.heat, map, measure.signed);
  paintAim(one);
  const ticks = (share) => number(map.largest * share, 0, place);
  const marks = measure.signed ? [ticks(-1), "0", ticks(1)] : ["0", ticks(0.25), ticks(1)];
  one.key.replaceChildren(...rampKey(marks, `${measure.label}, square-root scale`, measure.signed));
}

// Pixels of a cell at which the map fills its room; seen whole, its height too.
function fitting(width, height) {
  const across = (width - 4) / (places("key").length || 1);
  return state.whole && height > 0 ? Math.min(across, height / (places("query").length || 1)) : across;
}

// Long enough for the longest token, within reason.
function longestLabel(width) {
  const lengths = ["query", "key"].flatMap((side) => places(side).map((_, index) => placeText(side, index).length));
  return Math.round(Math.min(Math.max(Math.max(...lengths, 0) * 7 + 14, 44), width < 480 ? 84 : 120));
}

// One dot per cell: the page enlarges it without smoothing, so 512 tokens are no larger than that.
function paintHeat(canvas, map, signed) {
  const [rows, columns] = [places("query").length, places("key").length];
  canvas.width = columns;
  canvas.height = rows;
  canvas.style.width = `${columns * cellSize}px`;
  canvas.style.height = `${rows * cellSize}px`;
  if (!rows || !columns) return;
  const colors = palette(signed);
  const image = new ImageData(columns, rows);
  const dots = new Int32Array(image.data.buffer);
  const top = map.largest || 1;
  for (let query = 0; query < rows; query += 1) {
    for (let key = 0; key < columns; key += 1) {
      const dot = query * columns + key;
      const shade = (dimmed(query, key) ? colors.pale : colors.plain)[255 + codeOf(map.values[dot], top)];
      dots[dot] = visible(query, key) ? shade : colors.away;
    }
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
}

function paintAim(one) {
  const cell = state.cell ?? (neuron.told ? askedCell() : null);
  const kept = (side) => (chosen()?.side === side ? chosen().index : null);
  const marked = { query: cell?.[0] ?? kept("query"), key: cell?.[1] ?? kept("key") };
  for (const side of ["query", "key"]) {
    one.labels[side].forEach((label, index) => {
      label.classList.toggle("pointed", index === marked[side]);
      label.classList.toggle("kept", same(state.kept, { side, index }));
      label.classList.toggle("dimmed", state.special === "dimmed" && special(side, index));
    });
    one.bands[side].hidden = marked[side] === null;
  }
  one.point.hidden = !cell;
  const offset = (side) => `${(marked[side] ?? 0) * cellSize}px`;
  one.bands.query.style.top = one.point.style.top = offset("query");
  one.bands.key.style.left = one.point.style.left = offset("key");
}
