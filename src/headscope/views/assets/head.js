// Which token looks at which? Tokens on both sides, lines between them; a second measure beside.
const figures = [];
const MANY = 48; // tokens of a side from which on rows are low
const TALL = 3000; // pixels from which on only what is in sight is drawn

function buildHead() {
  figures.push(headFigure("", () => state.measure), headFigure("-beside", () => state.beside));
  const follow = () => figures.filter((figure) => figure.frame.clientHeight > TALL).forEach(paintLines);
  addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true, capture: true });
  addEventListener("resize", follow);
}

function headFigure(suffix, measure) {
  const figure = { measure, options: { query: [], key: [] }, titles: {}, built: -1 };
  figure.canvas = element("canvas", { id: `lines${suffix}`, "aria-hidden": "true" });
  figure.caption = element("p", { class: "caption" });
  figure.frame = at(`figure${suffix}`);
  const lists = { query: ["from", "from"], key: ["to", "to"] };
  figure.lists = {};
  figure.frame.append(figure.caption, figure.canvas);
  for (const [side, [name]] of Object.entries(lists)) {
    figure.titles[side] = element("p", { class: `side ${name}`, id: `${name}-title${suffix}` });
    figure.frame.append(figure.titles[side]);
  }
  for (const [side, [name]] of Object.entries(lists)) {
    figure.lists[side] = element("div", { class: `tokens ${name}`, id: name + suffix, role: "listbox", "aria-labelledby": `${name}-title${suffix}` });
    figure.frame.append(figure.lists[side]);
    listen(figure, side);
  }
  figure.frame.addEventListener("pointerleave", () => point(null));
  new ResizeObserver(() => paintFigure(figure)).observe(figure.frame);
  return figure;
}

function listen(figure, side) {
  const list = figure.lists[side];
  const act = (work) => (event) => {
    const option = event.target.closest("[role=option]");
    if (option) work(figure.options[side].indexOf(option), event);
  };
  list.addEventListener("pointerover", act((index, event) => event.pointerType !== "touch" && !same(state.pointed, { side, index }) && point({ side, index })));
  list.addEventListener("focusin", act((index, event) => event.target.matches(":focus-visible") && point({ side, index })));
  list.addEventListener("focusout", (event) => figure.frame.contains(event.relatedTarget) || point(null));
  list.addEventListener("click", act((index) => keep({ side, index })));
  list.addEventListener("keydown", act((index, event) => steerToken(event, figure, side, index)));
}

function fillLists(figure) {
  figure.built = arrangement;
  figure.frame.classList.toggle("many", Math.max(places("query").length, places("key").length) > MANY);
  for (const side of ["query", "key"]) {
    figure.options[side] = places(side).map((place, index) => {
      const option = element("div", { role: "option", tabindex: "-1", title: placeText(side, index) });
      option.append(element("span", { class: "text" }, placeElement(side, index)), element("span", { class: "value", "aria-hidden": "true" }));
      option.classList.toggle("special", place.special);
      option.classList.toggle("second", place.second && index > 0);
      return option;
    });
    figure.lists[side].replaceChildren(...figure.options[side]);
    const { name } = sideOf(side);
    write(figure.titles[side], (side === "query" ? "from" : "to") + (name ? ` the ${name}` : ""));
  }
}

function steerToken(event, figure, side, index) {
  const other = side === "query" ? "key" : "query";
  const [end, across] = [places(side).length - 1, Math.min(index, places(other).length - 1)];
  const moves = { ArrowUp: [side, index - 1], ArrowDown: [side, index + 1], Home: [side, 0], End: [side, end] };
  moves[side === "query" ? "ArrowRight" : "ArrowLeft"] = [other, across];
  if (event.key === "Enter" || event.key === " ") keep({ side, index });
  else if (event.key === "Escape") change({ kept: null, pointed: null });
  else if (moves[event.key]) figure.options[moves[event.key][0]][moves[event.key][1]]?.focus();
  else return;
  event.preventDefault();
}

function paintHead() {
  for (const figure of figures) paintFigure(figure);
}

function paintFigure(figure) {
  const place = figure.measure();
  figure.frame.hidden = place === null;
  if (!due("head") || place === null || !isHere(place, state.layer)) return;
  if (figure.built !== arrangement) fillLists(figure);
  const darkest = byShown(place) ? `, darkest line ${number(fullInk(place), 0, place)}` : "";
  write(figure.caption, state.beside === null ? "" : stack().measures[place].label + darkest);
  for (const side of ["query", "key"]) paintOptions(figure, side, place);
  paintLines(figure);
}

function paintLines(figure) {
  const place = figure.measure();
  if (!due("head") || place === null || figure.built !== arrangement) return;
  if (places("query").length && places("key").length) drawLines(figure.canvas, geometry(figure), place);
}

function paintOptions(figure, side, place) {
  const options = figure.options[side];
  const focused = options.includes(document.activeElement);
  const entry = state.kept ?? { side: "query", index: 0 };
  const partner = chosen() !== null && chosen().side !== side;
  const maps = partner ? state.heads.map((head) => mapOf(place, state.layer, head)) : [];
  const full = partner ? fullInk(place) : 1;
  options.forEach((option, index) => {
    const here = { side, index };
    const kept = same(state.kept, here);
    put(option, "aria-selected", kept);
    option.classList.toggle("kept", kept);
    option.classList.toggle("pointed", same(chosen(), here));
    option.classList.toggle("dimmed", state.special === "dimmed" && special(side, index));
    const way = focused ? option === document.activeElement : index === (entry.side === side ? entry.index : 0);
    put(option, "tabindex", way ? 0 : -1);
    const [query, key] = side === "key" ? [chosen()?.index, index] : [index, chosen()?.index];
    const shown = partner && visible(query, key);
    option.classList.toggle("outside", partner && !shown);
    paintPartner(option, shown ? maps.map((map) => map.values[query * places("key").length + key]) : [], full, place);
  });
}

function geometry({ frame, options }) {
  const edge = frame.getBoundingClientRect();
  const box = (side) => options[side][0].getBoundingClientRect();
  const tops = { query: box("query"), key: box("key") };
  const pitch = tops.query.height;
  const middle = (side, index) => tops[side].top - edge.top + pitch / 2 + index * pitch;
  const room = document.documentElement.clientHeight;
  const top = edge.height > TALL ? Math.min(Math.max(-edge.top, 0), edge.height) : 0;
  const height = edge.height > TALL ? Math.min(room, edge.height - top) : edge.height;
  return { left: tops.query.right - edge.left + 3, right: tops.key.left - edge.left - 3, middle, width: edge.width, top, height, pitch };
}

// What the chosen token's partners get: a tint per head, and the number where one head is shown.
function paintPartner(option, values, full, place) {
  const tinted = values.some((value) => Math.abs(value) / full > 0.004);
  if (tinted || option.classList.contains("tinted")) option.style.background = tinted ? stripes(values, full, place) : "";
  option.classList.toggle("tinted", tinted);
  write(option.lastChild, values.length === 1 ? number(values[0], 0, place) : "");
  option.classList.toggle("slight", values.length === 1 && Math.abs(values[0]) / full < 0.01);
}

function stripes(values, full, place) {
  const share = 100 / values.length;
  const stops = values.map((value, rank) => {
    const tint = Math.min(Math.abs(value) / full, 1) * 42;
    const hue = stack().measures[place].signed ? signName(value) : hueOf(state.heads[rank]);
    const shade = `color-mix(in srgb, var(--${hue}) ${tint.toFixed(1)}%, transparent)`;
    return `${shade} ${(rank * share).toFixed(2)}% ${((rank + 1) * share).toFixed(2)}%`;
  });
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
