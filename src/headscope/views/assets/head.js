// Which token looks at which? Tokens on both sides, lines between them.
const sides = { query: [], key: [] };

function buildHead() {
  buildSide("query", at("from"));
  buildSide("key", at("to"));
  at("figure").classList.toggle("many", n > 48);
  at("figure").addEventListener("pointerleave", () => point(null));
  new ResizeObserver(() => paintHead()).observe(at("figure"));
}

function buildSide(side, list) {
  for (let index = 0; index < n; index += 1) {
    const option = element("div", { role: "option", tabindex: "-1", title: tokenText(index) });
    option.append(element("span", { class: "text" }, token(index)), element("span", { class: "value", "aria-hidden": "true" }));
    option.classList.toggle("special", data.special[index]);
    option.classList.toggle("second", data.boundary !== null && index === data.boundary);
    option.addEventListener("pointerenter", (event) => event.pointerType !== "touch" && point({ side, index }));
    option.addEventListener("focus", () => point({ side, index }));
    option.addEventListener("blur", (event) => at("figure").contains(event.relatedTarget) || point(null));
    option.addEventListener("click", () => keep({ side, index }));
    option.addEventListener("keydown", (event) => steerToken(event, side, index));
    sides[side].push(option);
    list.append(option);
  }
}

function point(place) {
  state.pointed = place;
  state.cell = null;
  paintHead();
  say();
}

const same = (one, two) => one !== null && two !== null && one.side === two.side && one.index === two.index;

function keep(place) {
  state.pointed = null;
  change({ kept: same(state.kept, place) ? null : place, cell: null });
}

function steerToken(event, side, index) {
  const other = side === "query" ? "key" : "query";
  const moves = { ArrowUp: [side, index - 1], ArrowDown: [side, index + 1], Home: [side, 0], End: [side, n - 1] };
  moves[side === "query" ? "ArrowRight" : "ArrowLeft"] = [other, index];
  if (event.key === "Enter" || event.key === " ") keep({ side, index });
  else if (event.key === "Escape") change({ kept: null, pointed: null });
  else if (moves[event.key]) sides[moves[event.key][0]][moves[event.key][1]]?.focus();
  else return;
  event.preventDefault();
}

function paintHead() {
  if (state.view !== "head" || !maps[state.measure]) return;
  const place = chosen();
  for (const [side, options] of Object.entries(sides)) {
    options.forEach((option, index) => {
      const here = { side, index };
      option.setAttribute("aria-selected", same(state.kept, here));
      option.classList.toggle("kept", same(state.kept, here));
      option.classList.toggle("pointed", same(place, here));
      option.classList.toggle("dimmed", state.dim && data.special[index]);
      const entry = state.kept ?? { side: "query", index: 0 };
      if (!options.includes(document.activeElement)) option.tabIndex = index === (entry.side === side ? entry.index : 0) ? 0 : -1;
      else option.tabIndex = option === document.activeElement ? 0 : -1;
    });
  }
  paintPartners(place);
  drawLines(at("lines"), geometry());
}

function geometry() {
  const frame = at("figure").getBoundingClientRect();
  const first = sides.query[0].getBoundingClientRect();
  const pitch = n > 1 ? (sides.query[n - 1].getBoundingClientRect().top - first.top) / (n - 1) : first.height;
  const middle = (index) => first.top - frame.top + first.height / 2 + index * pitch;
  const right = sides.key[0].getBoundingClientRect().left - frame.left;
  return { left: first.right - frame.left + 3, right: right - 3, middle, width: frame.width, height: frame.height, pitch };
}

// What the chosen token's partners get: a tint per head, and the number where one head is shown.
function paintPartners(place) {
  const full = fullInk();
  for (const [side, options] of Object.entries(sides)) {
    options.forEach((option, index) => {
      const partner = place !== null && place.side !== side;
      const [query, key] = side === "key" ? [place?.index, index] : [index, place?.index];
      const shown = partner && visible(query, key);
      const values = shown ? state.heads.map((head) => valueAt(unitOf(state.layer, head), query, key)) : [];
      const tinted = values.some((value) => value / full > 0.004);
      option.classList.toggle("tinted", tinted);
      option.style.background = tinted ? stripes(values, full) : "";
      option.classList.toggle("outside", partner && !shown);
      option.lastChild.textContent = values.length === 1 ? number(values[0]) : "";
      option.classList.toggle("slight", values.length === 1 && values[0] / full < 0.01);
    });
  }
}

function stripes(values, full) {
  const share = 100 / values.length;
  const stops = values.map((value, place) => {
    const tint = Math.min(value / full, 1) * 42;
    const shade = `color-mix(in srgb, var(--${hueOf(state.heads[place])}) ${tint.toFixed(1)}%, transparent)`;
    return `${shade} ${(place * share).toFixed(2)}% ${((place + 1) * share).toFixed(2)}%`;
  });
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
