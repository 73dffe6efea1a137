// How is a figure drawn once and saved twice: as SVG with real text, and as PNG? Its marks are put
// on a paper, which is light whatever the page is; then they become elements, or are painted on a
// canvas. Nothing is loaded for that: the page's policy forbids it.
const FACE = "Helvetica, Arial, 'Liberation Sans', sans-serif";
const MOST_BOXES = 20000; // cells drawn as boxes; where a paper has more, each map is a picture
const PNG_DOTS = 3; // per unit
const MOST_PNG_DOTS = 2 ** 26; // of a whole picture, and along one side, as browsers allow
const LONGEST_PNG = 32000;

// Elements of a document that is never shown: nothing in them is loaded, also not their pictures.
const unseen = document.implementation.createDocument(null, null);
const inert = (tag, attributes, ...children) => fill(unseen.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

class Paper {
  constructor() {
    this.marks = [];
    this.width = this.height = 0;
  }

  // look: {fill, stroke, thick, opacity, dash}; text also {size, anchor, weight, style, turned}.
  box(x, y, width, height, look) {
    this.marks.push({ kind: "box", x, y, width, height, ...look });
  }

  // Two points, or four of a curve.
  line(points, look) {
    this.marks.push({ kind: "line", points, ...look });
  }

  // y is the middle of small letters and capitals alike.
  text(x, y, words, look = {}) {
    this.marks.push({ kind: "text", x, y, words: printed(words), size: 12, anchor: "start", fill: colorOf("ink"), ...look });
  }

  // colors: [row, column], as ImageData packs them.
  cells(x, y, width, height, { rows, columns, colors }) {
    this.marks.push({ kind: "cells", x, y, width, height, rows, columns, colors });
  }

  group(name, draw) {
    const outer = this.marks;
    this.marks = [];
    draw();
    outer.push({ kind: "group", name, marks: this.marks });
    this.marks = outer;
  }

  // --- as SVG ---------------------------------------------------------------------------------

  svg(title, about) {
    const size = { width: rounded(this.width), height: rounded(this.height), viewBox: `0 0 ${rounded(this.width)} ${rounded(this.height)}` };
    const root = inert("svg", { ...size, role: "img", "aria-labelledby": "title about", "font-family": FACE });
    root.setAttributeNS("http://www.w3.org/XML/1998/namespace", "xml:space", "preserve");
    root.append(inert("title", { id: "title" }, printed(title)), inert("desc", { id: "about" }, printed(about)));
    root.append(inert("rect", { width: "100%", height: "100%", fill: colorOf("page") }));
    const small = cellCount(this.marks) <= MOST_BOXES;
    root.append(...this.marks.map((mark) => SVG_MARKS[mark.kind](mark, small)));
    return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(root)}\n`;
  }

  // --- as PNG ---------------------------------------------------------------------------------

  png() {
    const { width, height } = this;
    const dots = Math.min(PNG_DOTS, LONGEST_PNG / Math.max(width, height), Math.sqrt(MOST_PNG_DOTS / (width * height)));
    const canvas = element("canvas", { width: Math.floor(width * dots), height: Math.floor(height * dots) });
    const context = canvas.getContext("2d");
    context.fillStyle = colorOf("page");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.scale(dots, dots);
    context.imageSmoothingEnabled = false;
    context.direction = "ltr";
    paintMarks(context, this.marks);
    let waits = true; // browsers encode between frames: where nothing moves it took up to seven seconds
    const frame = () => waits && requestAnimationFrame(frame);
    frame();
    return new Promise((tell, refuse) => canvas.toBlob((blob) => {
      waits = false;
      if (blob) tell(blob);
      else refuse(new Error("the picture is too large"));
    }, "image/png"));
  }
}

// What XML cannot hold, also within words that are already legible.
const printed = (words) => String(words).replace(/[\0-\x1f\x7f-\x9f]/g, " ").replace(/[\ufffe\uffff\p{Cs}]/gu, "\ufffd");
const rounded = (number) => String(Math.round(number * 100) / 100);
const cellCount = (marks) => marks.reduce((sum, mark) => sum + (mark.kind === "group" ? cellCount(mark.marks) : mark.kind === "cells" ? mark.colors.length : 0), 0);
const baseline = ({ y, size }) => y + 0.35 * size;

// Attributes of what a mark has, and no others.
function looks({ fill, stroke, thick, opacity, dash }) {
  const found = { fill: fill ?? "none" };
  if (stroke) Object.assign(found, { stroke, "stroke-width": rounded(thick ?? 1) });
  if (stroke && dash?.length) found["stroke-dasharray"] = dash.join(" ");
  if (opacity !== undefined && opacity < 1) found[stroke ? "stroke-opacity" : "fill-opacity"] = String(Math.round(opacity * 1e4) / 1e4);
  return found;
}

const SVG_MARKS = {
  group: ({ name, marks }, small) => inert("g", { class: name }, ...marks.map((mark) => SVG_MARKS[mark.kind](mark, small))),
  box: (mark) => inert("rect", { x: rounded(mark.x), y: rounded(mark.y), width: rounded(mark.width), height: rounded(mark.height), ...looks(mark) }),
  line: (mark) => inert("path", { d: pathOf(mark.points), ...looks(mark) }),
  text: (mark) => {
    const x = rounded(mark.turned ? mark.x + 0.35 * mark.size : mark.x);
    const y = rounded(mark.turned ? mark.y : baseline(mark));
    const found = { x, y, "font-size": mark.size, fill: mark.fill };
    if (mark.anchor !== "start") found["text-anchor"] = mark.anchor;
    if (mark.weight) found["font-weight"] = mark.weight;
    if (mark.style) found["font-style"] = mark.style;
    if (mark.turned) found.transform = `rotate(-90 ${x} ${y})`;
    return inert("text", found, mark.words);
  },
  cells: (mark, small) => (small ? cellBoxes(mark) : inert("image", {
    x: rounded(mark.x), y: rounded(mark.y), width: rounded(mark.width), height: rounded(mark.height),
    preserveAspectRatio: "none", "image-rendering": "pixelated", href: cellCanvas(mark).toDataURL("image/png"),
  })),
};

function pathOf([start, ...rest]) {
  const pair = ([x, y]) => `${rounded(x)} ${rounded(y)}`;
  return `M${pair(start)}${rest.length === 1 ? "L" : "C"}${rest.map(pair).join(" ")}`;
}

// Neighbours of one colour are one box; what is the paper's own colour is left out.
function cellBoxes({ x, y, width, height, rows, columns, colors }) {
  const [wide, high, empty] = [width / columns, height / rows, packed(parts(colorOf("page")))];
  const boxes = [];
  for (let row = 0; row < rows; row += 1) {
    for (let from = 0, to = 0; from < columns; from = to) {
      const shade = colors[row * columns + from];
      for (to = from + 1; to < columns && colors[row * columns + to] === shade;) to += 1;
      if (shade !== empty) boxes.push(inert("rect", { x: rounded(x + from * wide), y: rounded(y + row * high), width: rounded((to - from) * wide), height: rounded(high), fill: hexOf(shade) }));
    }
  }
  return inert("g", { class: "cells", "shape-rendering": "crispEdges" }, ...boxes);
}

const hexOf = (shade) => `#${[0, 8, 16].map((bits) => ((shade >>> bits) & 255).toString(16).padStart(2, "0")).join("")}`;

function cellCanvas({ rows, columns, colors }) {
  const canvas = element("canvas", { width: columns, height: rows });
  const image = new ImageData(columns, rows);
  new Int32Array(image.data.buffer).set(colors);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// --- painting on a canvas -----------------------------------------------------------------------

function paintMarks(context, marks) {
  for (const mark of marks) {
    if (mark.kind === "group") {
      paintMarks(context, mark.marks);
      continue;
    }
    context.globalAlpha = mark.opacity ?? 1;
    context.lineWidth = mark.thick ?? 1;
    context.setLineDash(mark.dash ?? []);
    context.fillStyle = mark.fill ?? "#000000";
    context.strokeStyle = mark.stroke ?? "#000000";
    CANVAS_MARKS[mark.kind](context, mark);
  }
  context.globalAlpha = 1;
}

const CANVAS_MARKS = {
  box: (context, { x, y, width, height, fill, stroke }) => {
    if (fill) context.fillRect(x, y, width, height);
    if (stroke) context.strokeRect(x, y, width, height);
  },
  line: (context, mark) => context.stroke(new Path2D(pathOf(mark.points))),
  text: (context, mark) => {
    context.font = fontOf(mark);
    context.textAlign = { start: "left", middle: "center", end: "right" }[mark.anchor];
    if (!mark.turned) return context.fillText(mark.words, mark.x, baseline(mark));
    context.save();
    context.translate(mark.x, mark.y);
    context.rotate(-Math.PI / 2);
    context.fillText(mark.words, 0, 0.35 * mark.size);
    return context.restore();
  },
  cells: (context, mark) => context.drawImage(cellCanvas(mark), mark.x, mark.y, mark.width, mark.height),
};

const fontOf = ({ size, weight, style }) => `${style ?? "normal"} ${weight ?? "normal"} ${size}px ${FACE}`;

// --- the room that words take -------------------------------------------------------------------

let ruler = null;
function widthOf(words, look) {
  ruler ??= element("canvas").getContext("2d");
  ruler.font = fontOf({ size: 12, ...look });
  return ruler.measureText(printed(words)).width;
}

// As many letters as there is room for.
function cutTo(words, room, look) {
  if (widthOf(words, look) <= room) return words;
  const letters = [...words];
  let [fits, over] = [0, letters.length];
  while (over - fits > 1) {
    const half = (fits + over) >> 1;
    if (widthOf(`${letters.slice(0, half).join("")}…`, look) <= room) fits = half;
    else over = half;
  }
  return `${letters.slice(0, fits).join("")}…`;
}

// Lines of words; what is longer than a line is broken anywhere.
function wrapped(words, room, look) {
  const rows = [];
  let row = "";
  for (const word of words.split(" ")) {
    const longer = row ? `${row} ${word}` : word;
    if (widthOf(longer, look) <= room) {
      row = longer;
      continue;
    }
    if (row) rows.push(row);
    row = "";
    for (const letter of word) {
      if (widthOf(row + letter, look) > room) rows.push(row), (row = "");
      row += letter;
    }
  }
  return row ? [...rows, row] : rows;
}
