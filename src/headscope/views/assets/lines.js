// Which lines does a head draw, and how strong is each? Opacity is weight.
const INK_STEPS = 40;

// The value at which a line is fully opaque.
function fullInk() {
  if (state.full === "whole" && isAttention()) return 1;
  const which = state.full === "whole" ? Array.from({ length: heads }, (_, head) => head) : state.heads;
  return Math.max(...which.map((head) => data.measures[state.measure].scale[unitOf(state.layer, head)])) || 1;
}

const leastValue = () => (state.least / 100) ** 2 * fullInk();

// [query, key, value] of a head: of the chosen token's, or of every query, the largest that pass.
function linesOf(head, place) {
  const unit = unitOf(state.layer, head);
  const whole = Array.from({ length: n }, (_, index) => index);
  const starts = place ? [place] : whole.map((index) => ({ side: "query", index }));
  return starts.flatMap(({ side, index }) => {
    const found = [];
    for (const other of whole) {
      const [query, key] = side === "query" ? [index, other] : [other, index];
      if (!visible(query, key)) continue;
      const value = valueAt(unit, query, key);
      if (value > 0 && value >= leastValue()) found.push([query, key, value]);
    }
    if (state.top && found.length > state.top) {
      found.sort((one, two) => two[2] - one[2]);
      found.length = state.top;
    }
    return found;
  });
}

// Lines of several heads between the same tokens lie beside each other.
const FAN = 2.5; // pixels

function drawLines(canvas, { left, right, middle, width, height, pitch }) {
  const context = fitted(canvas, width, height);
  const full = fullInk();
  const place = chosen();
  const apart = Math.min(FAN, (pitch * 0.7) / state.heads.length);
  state.heads.forEach((head, rank) => {
    const shift = (rank - (state.heads.length - 1) / 2) * apart;
    const paths = new Map();
    for (const [query, key, value] of linesOf(head, place)) {
      const opacity = Math.min(value / full, 1) * (dimmed(query, key) ? 0.2 : 1);
      const step = Math.round(opacity * INK_STEPS * 5) / 5;
      if (step === 0) continue;
      if (!paths.has(step)) paths.set(step, new Path2D());
      const [from, to, half] = [middle(query) + shift, middle(key) + shift, (left + right) / 2];
      paths.get(step).moveTo(left, from);
      paths.get(step).bezierCurveTo(half, from, half, to, right, to);
    }
    context.strokeStyle = colorOf(hueOf(head));
    context.setLineDash(dashOf(head));
    context.lineWidth = place ? 2.2 : 1.5;
    for (const [step, path] of [...paths].sort((one, two) => one[0] - two[0])) {
      context.globalAlpha = step / INK_STEPS;
      context.stroke(path);
    }
  });
}

function fitted(canvas, width, height) {
  const dots = devicePixelRatio;
  if (canvas.width !== Math.round(width * dots) || canvas.height !== Math.round(height * dots)) {
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
