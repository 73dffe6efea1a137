// How is the view that is shown saved as a figure for a paper: which parts, which words, which file?
const MARGIN = 8;
const BESIDE = 28; // between two measures
const SMALL_PRINT = { size: 11, row: 15, least: 420, most: 900 };
const TEXT_SHOWN = 90; // letters of the example in the caption
const KEEP_FILE = 60000; // milliseconds that a browser has to take it

function buildExport() {
  const buttons = ["SVG", "PNG"].map((kind) => {
    const button = element("button", { type: "button", class: "ask", id: `save-${kind.toLowerCase()}`, "aria-label": `Save figure as ${kind}` }, kind);
    button.addEventListener("click", () => saveFigure(kind).catch((error) => write(at("saved"), `Not saved: ${error.message}`)));
    return button;
  });
  const title = element("span", { id: "export-title" }, "Save figure");
  at("export").append(title, ...buttons, element("span", { id: "saved", role: "status" }));
  put(at("export"), "role", "group");
  put(at("export"), "aria-labelledby", "export-title");
}

async function saveFigure(kind) {
  const missing = notYet();
  if (missing) return write(at("saved"), missing);
  const { paper, words } = onPaper(drawFigure);
  const blob = kind === "SVG" ? new Blob([onPaper(() => paper.svg(words[0], words.join(" ")))], { type: "image/svg+xml" }) : await onPaper(() => paper.png());
  const name = `${fileName()}.${kind.toLowerCase()}`;
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), KEEP_FILE);
  return write(at("saved"), `Saved ${name}`);
}

// While `work` runs, colours are those of the light page.
function onPaper(work) {
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  inks = rules.find((rule) => rule.selectorText === ":root" && rule.style.getPropertyValue("--page")).style;
  try {
    return work();
  } finally {
    inks = null;
  }
}

function notYet() {
  if (front() === "neuron") return neuron.now ? "" : "The vectors of this head are not shown: nothing to save.";
  const layers = front() === "model" ? count(stack().layers) : [state.layer];
  const here = measuresShown().every((place) => layers.every((layer) => isHere(place, layer)));
  return here ? "" : "Still unpacking: try again in a moment.";
}

const twoShown = () => state.beside !== null && (front() === "head" || front() === "matrix");
const measuresShown = () => (twoShown() ? [state.measure, state.beside] : [state.measure]);
const PANELS = { model: modelOnPaper, head: linesOnPaper, matrix: mapOnPaper, neuron: neuronsOnPaper };

function drawFigure() {
  const paper = new Paper();
  let [x, y, high] = [MARGIN, MARGIN, 0];
  for (const place of measuresShown()) {
    const named = twoShown() ? 18 : 0;
    if (named) paper.text(x, y + 8, stack().measures[place].label, { weight: "bold" });
    paper.group(`view ${front()}`, () => {
      const room = PANELS[front()](paper, x, y + named, place);
      x += room.width + BESIDE;
      high = Math.max(high, named + room.height);
    });
  }
  paper.width = Math.max(x - BESIDE + MARGIN, SMALL_PRINT.least);
  y += high + 12;
  const words = captionOfFigure();
  const rows = wrapped(words.join(" "), Math.min(paper.width - 2 * MARGIN, SMALL_PRINT.most), { size: SMALL_PRINT.size });
  paper.group("caption", () => rows.forEach((row, place) => paper.text(MARGIN, y + (place + 0.5) * SMALL_PRINT.row, row, { size: SMALL_PRINT.size })));
  paper.height = y + rows.length * SMALL_PRINT.row + MARGIN;
  return { paper, words };
}

// --- in words -----------------------------------------------------------------------------------

// Sentences; the first one is the title.
function captionOfFigure() {
  const neuronView = front() === "neuron";
  const label = neuronView ? "query, keys and weights" : measuresShown().map((place) => stack().measures[place].label).join(" beside ");
  const which = data.stacks.length > 1 ? `, ${stack().label}` : "";
  const sizes = [...new Set([sideOf("query"), sideOf("key")])].map((side) => `${side.tokens.length} ${side.name ? `${side.name} ` : ""}tokens`);
  const text = [...legible(data.title)];
  const shown = text.length > TEXT_SHOWN ? `${text.slice(0, TEXT_SHOWN).join("")}…` : text.join("");
  const rest = neuronView ? [at("neuron-note").firstChild.textContent] : [at("note").textContent, filterWords(), lineWords(), front() === "model" ? `Framed: ${chosenHeads()}.` : ""];
  return [`${sentenced(headsInWords())} of ${data.model.name}${which}: ${label}, ${sizes.join(" and ")} of “${shown}”.`, readingWords(), ...rest, data.left_out].filter(Boolean);
}

const sentenced = (words) => words[0].toUpperCase() + words.slice(1);

function headsInWords() {
  const { layers, heads } = stack();
  if (front() === "model") return `the ${layers} × ${heads} heads (rows are layers)`;
  return front() === "head" ? chosenHeads() : headName(state.layer, headNow());
}

function chosenHeads() {
  const { heads } = stack();
  const numbers = [...state.heads].sort((one, two) => one - two);
  if (numbers.length === 1) return headName(state.layer, numbers[0]);
  if (numbers.length === heads) return `all ${heads} heads of layer ${layerName(state.layer)}`;
  return numbers.map((head) => headName(state.layer, head)).join(", ");
}

function readingWords() {
  if (front() === "head") return `Lines go from the ${thing()} that looks (left) to those looked at (right); their opacity is the value.${signWords()}`;
  if (front() !== "neuron") return `Rows of a map are the ${thing()}s that look, columns those looked at; blank is 0${stack().causal && front() === "matrix" ? ", grey is later and not seen" : ""}.${signWords()}`;
  const { row, key } = neuron.now;
  const parts = key === null ? "" : `; the bars are what each neuron adds to the score of ${tokenQuote(keyTokens(), key)} beyond the other keys’`;
  const marked = importantNeurons().length ? `; ▾ marks the ${MARKED} neurons of largest importance in the corpus` : "";
  return `Above, the query vector of ${tokenQuote(queryTokens(), row.query)}; below, for each key its vector, the products, and what they become${parts}${marked}. Neurons are in ${WHYS[neuron.order].replace(/^by/, "the order")}. Blue is positive, vermillion negative.`;
}

function signWords() {
  const place = measuresShown().find((one) => stack().measures[one].signed);
  if (place === undefined) return "";
  const { measures } = stack();
  const [more, less] = [measures[place].minuend, measures[place].subtrahend].map((one) => measures[one].label);
  return ` Blue: more ${more} than ${less}; vermillion: less.`;
}

function filterWords() {
  if (state.filter === "all" || !paired()) return "";
  return `Only from sentence ${state.filter[0]} to sentence ${state.filter[1]}.`;
}

function lineWords() {
  if (front() !== "head") return "";
  const found = [];
  if (state.kept) found.push(`Only the lines of ${quoted(state.kept.side, state.kept.index)}.`);
  if (state.top) found.push(state.top === 1 ? `The strongest line of each ${thing()}.` : `The ${state.top} strongest lines of each ${thing()}.`);
  if (state.least) found.push(`None below ${measuresShown().map((place) => number(leastValue(place), 1, place).replace("+", "")).join(" and ")}.`);
  return found.join(" ");
}

function fileName() {
  const who = front() === "model" ? "" : `-L${layerName(state.layer)}${front() === "head" && state.heads.length > 1 ? "" : `H${headNumber(headNow())}`}`;
  const model = data.model.name.normalize("NFKD").replace(/[^A-Za-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 40) || "model";
  const what = front() === "neuron" ? "" : `-${measureNow().name}`;
  return `${model}-${front()}${who}${what}`.replace(/_/g, "-");
}
