// Which heads are alike? The plane of multidimensional scaling, coloured by label or by layer.
const WIDEST = 640;
const TALLEST = 460;
const MARGIN = 14;
const DISC = "M-1 0A1 1 0 1 1 1 0A1 1 0 1 1-1 0Z";
const places = [];

function buildMap(holder) {
  // Drawn for the width that there is, so that marks stay large enough to hit on a phone.
  const width = Math.min(Math.max(document.querySelector("main").clientWidth, 280), WIDEST);
  const xs = data.map.map((place) => place[0]);
  const ys = data.map.map((place) => place[1]);
  const [left, bottom] = [Math.min(...xs), Math.min(...ys)];
  const across = Math.max(Math.max(...xs) - left, 1e-9);
  const up = Math.max(Math.max(...ys) - bottom, 1e-9);
  const scale = Math.min((width - 2 * MARGIN) / across, (TALLEST - 2 * MARGIN) / up);
  const height = up * scale + 2 * MARGIN;
  const inset = (width - across * scale) / 2;
  const svg = drawing("svg", { viewBox: `0 0 ${width} ${height.toFixed(0)}`, role: "group", "aria-label": "Map of heads" });
  svg.append(drawing("rect", { class: "frame", x: 0.5, y: 0.5, width: width - 1, height: height - 1 }));
  data.map.forEach(([x, y], unit) => {
    const mark = drawing("path", { class: "place", role: "button", "aria-label": placeWords(unit) });
    mark.append(drawing("title", {}, placeWords(unit)));
    const [px, py] = [inset + (x - left) * scale, height - MARGIN - (y - bottom) * scale];
    mark.dataset.at = `translate(${px.toFixed(1)} ${py.toFixed(1)})`;
    mark.addEventListener("pointerenter", () => read(unit));
    mark.addEventListener("focus", () => read(unit));
    mark.addEventListener("click", () => select(unit));
    places.push(mark);
  });
  // Heads of no special kind lie beneath the others.
  const plain = (unit) => (kindOf(unit).look === "none" ? 0 : 1);
  const order = places.map((_, unit) => unit).sort((a, b) => plain(a) - plain(b) || a - b);
  svg.append(...order.map((unit) => places[unit]));
  roving(places, mapStep);
  holder.append(svg);
}

function placeWords(unit) {
  return `${headName(unit)}, ${kindOf(unit).title}`;
}

function mapStep(at, key) {
  if (key === "ArrowRight" || key === "ArrowDown") return at + 1 < places.length ? at + 1 : null;
  if (key === "ArrowLeft" || key === "ArrowUp") return at > 0 ? at - 1 : null;
  return null;
}

function colorMap() {
  const byLayer = document.querySelector('input[name="colour"]:checked').value === "layer";
  places.forEach((mark, unit) => {
    const kind = kindOf(unit);
    const none = kind.look === "none";
    const layer = Math.floor(unit / data.heads);
    hued(mark, byLayer ? `ramp-${data.layerSteps[layer]}` : kind.hue);
    mark.classList.toggle("other", none && !byLayer);
    mark.setAttribute("d", byLayer || none ? DISC : kind.outline);
    mark.setAttribute("transform", `${mark.dataset.at} scale(${none ? 4 : byLayer ? 5.2 : 6})`);
    mark.setAttribute("vector-effect", "non-scaling-stroke");
  });
  const key = document.getElementById("map-key");
  const steps = data.layerSteps;
  key.replaceChildren(
    ...(byLayer ? rampKey(steps[0], steps[steps.length - 1] + 1, `layer ${layerName(0)}`, `layer ${layerName(data.layers - 1)}`) : kindKey()),
  );
}

function read(unit) {
  const name = element("b", {}, headLink(unit));
  document.getElementById("readout").replaceChildren(name, ` ${sentencesOf(unit).join("; ")}`);
}

if (data.map && document.getElementById("atlas")) {
  document.getElementById("atlas").hidden = false;
  buildMap(document.getElementById("places"));
  for (const input of document.querySelectorAll('input[name="colour"]')) input.addEventListener("change", colorMap);
  document.getElementById("readout").replaceChildren("Point at a mark, or move with the arrow keys.");
  colorMap();
  listeners.push((selected) => {
    places.forEach((mark, unit) => mark.classList.toggle("chosen", isChosen(unit)));
    if (selected !== null) {
      places[selected].parentNode.append(places[selected]);
      read(selected);
    }
  });
}
