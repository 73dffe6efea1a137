// Which lines does a head draw, and how strong is each? Opacity is weight.
const INK_STEPS = 200;
const MOST_LINES = 8000; // in sight; more would be a grey field, and slow
const BUNDLE = 64; // lines stroked at once: one long path takes the browser far longer

// Norms have no whole: beside another measure the darkest line is the largest shown, so that a head
// whose norms are small in its layer can be seen.
const byShown = (place) => twoShown() && stack().measures[place].unit !== "probability" && !stack().measures[place].signed;

// The value at which a line is fully opaque.
function fullInk(place) {
  const measure = stack().measures[place];
  if (state.full === "whole" && measure.unit === "probability" && !measure.signed) return 1;
  if (state.full === "whole" && measure.signed) return Math.max(...scalesOf(measure)) || 1;
  const which = state.full === "whole" && !byShown(place) ? count(stack().heads) : state.heads;
  return Math.max(...which.map((head) => mapOf(place, state.layer, head).largest)) || 1;
}

const leastValue = (place) => (state.least / 100) ** 2 * fullInk(place);

// [query, key, value] of a head: of the chosen token's, or of every query, the largest that pass.
function linesOf(head, chosenPlace, place = state.measure) {
  const { values } = mapOf(place, state.layer, head);
  const columns = places("key").length;
  const starts = chosenPlace ? [chosenPlace] : count(places("query").length).map((index) => ({ side: "query", index }));
  const least = Math.max(leastValue(place), fullInk(place) / INK_STEPS / 2);
  return starts.flatMap(({ side, index }) => {
    const best = [];
    const others = places(side === "query" ? "key" : "query").length;
    for (let other = 0; other < others; other += 1) {
      const [query, key] = side === "query" ? [index, other] : [other, index];
      const value = values[query * columns + key];
      if (Math.abs(value) >= least && visible(query, key)) admit(best, [query, key, value]);
    }
    return best;
  });
}

// Keeps the largest `top` lines, largest first; all, in any order, without a limit.
function admit(best, line) {
  if (!state.top) return best.push(line);
  let rank = best.length;
  while (rank && Math.abs(best[rank - 1][2]) < Math.abs(line[2])) rank -= 1;
  if (rank === state.top) return best.length;
  best.splice(rank, 0, line);
  if (best.length > state.top) best.pop();
  return best.length;
}

// Lines of several heads between the same tokens lie beside each other.
const FAN = 2.5; // pixels

function drawLines(canvas, frame, place) {
  const { left, right, width, top, height, pitch } = frame;
  const context = fitted(canvas, width, height);
  canvas.style.top = `${top}px`;
  context.translate(0, -top);
  const signed = stack().measures[place].signed;
  const full = fullInk(place);
  const apart = Math.min(FAN, (pitch * 0.7) / state.heads.length);
  const half = (left + right) / 2;
  const shown = thinned(state.heads.map((head) => linesOf(head, chosen(), place).filter((line) => inSight(line, frame))));
  state.heads.forEach((head, rank) => {
    const shift = (rank - (state.heads.length - 1) / 2) * apart;
    context.setLineDash(dashOf(head));
    context.lineWidth = chosen() ? 2.2 : 1.5;
    for (const [step, lines] of byStep(shown[rank], full)) {
      context.strokeStyle = colorOf(signed ? signName(step) : hueOf(head));
      context.globalAlpha = Math.abs(step) / INK_STEPS;
      for (let start = 0; start < lines.length; start += BUNDLE) {
        const path = new Path2D();
        for (const [query, key] of lines.slice(start, start + BUNDLE)) {
          const [from, to] = [frame.middle("query", query) + shift, frame.middle("key", key) + shift];
          path.moveTo(left, from);
          path.bezierCurveTo(half, from, half, to, right, to);
        }
        context.stroke(path);
      }
    }
  });
}

function inSight([query, key], { middle, top, height }) {
  const [from, to] = [middle("query", query), middle("key", key)];
  return Math.max(from, to) >= top && Math.min(from, to) <= top + height;
}

// Lines by their step of ink, with the sign of the value; the faintest first.
function byStep(lines, full) {
  const steps = new Map();
  for (const line of lines) {
    const opacity = Math.min(Math.abs(line[2]) / full, 1) * (dimmed(line[0], line[1]) ? 0.2 : 1);
    const step = Math.round(opacity * INK_STEPS) * Math.sign(line[2]);
    if (step !== 0) steps.has(step) ? steps.get(step).push(line) : steps.set(step, [line]);
  }
  return [...steps].sort((one, two) => Math.abs(one[0]) - Math.abs(two[0]));
}

// The strongest lines of all heads, where there are too many; the page says so.
function thinned(lines) {
  const sizes = Float32Array.from(lines.flatMap((some) => some.map((line) => Math.abs(line[2])))).sort();
  const few = sizes.length <= MOST_LINES;
  write(at("lines-note"), few ? "" : `Of ${sizes.length.toLocaleString("en")} lines in sight, the ${MOST_LINES.toLocaleString("en")} strongest are drawn.`);
  if (few) return lines;
  const least = sizes[sizes.length - MOST_LINES];
  let ties = MOST_LINES - sizes.subarray(-MOST_LINES).filter((size) => size > least).length;
  const passes = (size) => size > least || (size === least && ties-- > 0);
  return lines.map((some) => some.filter((line) => passes(Math.abs(Math.fround(line[2])))));
}

function fitted(canvas, width, height) {
  const dots = devicePixelRatio;
  const [across, down] = [Math.round(width * dots), Math.round(height * dots)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(dots, 0, 0, dots, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
