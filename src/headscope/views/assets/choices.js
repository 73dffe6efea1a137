// What can be chosen in every view: which attention, which measure, tokens or words, which pairs?
const FEW = 3; // choices that stand side by side; more are a list

function buildChoices() {
  const names = data.stacks.map((one, place) => [place, one.label || one.name]);
  at("stacks").append(...switched("stack", names, (place) => showStack(Number(place))));
  at("stacks").hidden = names.length < 2;
  at("levels").append(...switched("level", [["token", "tokens"], ["word", "words"]], (level) => change({ level })));
  at("levels").hidden = !someWords();
  at("special").parentNode.hidden = !someSpecial();
  if (someSink()) at("special").parentNode.firstChild.data = "Special tokens, sink ";
  at("special").addEventListener("change", () => change({ special: at("special").value }));
  at("filter").addEventListener("change", () => change({ filter: at("filter").value }));
  at("beside").addEventListener("change", () => change({ beside: at("beside").checked ? partnerOf(state.measure) : null }));
  at("second").addEventListener("change", () => change({ beside: Number(at("second").value) }));
  at("measure").addEventListener("change", () => showMeasure(Number(at("measure").value)));
}

function switched(name, options, act) {
  return options.map(([value, words]) => {
    const input = element("input", { type: "radio", name, value });
    input.addEventListener("change", () => act(value));
    return element("label", {}, input, element("span", {}, words));
  });
}

// The measure stays, where the other stack has it.
function showStack(place) {
  const find = (name) => data.stacks[place].measures.findIndex((measure) => measure.name === name);
  const beside = state.beside === null ? -1 : find(stack().measures[state.beside].name);
  const measure = Math.max(find(measureNow().name), 0);
  change({ stack: place, measure, beside: beside < 0 || beside === measure ? null : beside });
}

function showMeasure(place) {
  const special = state.special === "renormalised" && !canRenormalise(place) ? "removed" : state.special;
  const beside = state.beside === place ? state.measure : state.beside;
  change({ measure: place, beside, special });
}

// Beside weights stand norms, and the other way round, if there are both.
const partnerOf = (place) => stack().measures.findIndex((_, other) => other !== place);

// --- painting ---------------------------------------------------------------------------------

let measuresOf = null; // the stack that the measures were listed for
function listMeasures() {
  measuresOf = stack();
  const names = stack().measures.map((measure, place) => [place, measure.label]);
  at("measures").replaceChildren(at("measures").firstElementChild, ...switched("measure", names, (place) => showMeasure(Number(place))));
  for (const list of [at("measure"), at("second")]) list.replaceChildren(...names.map(([place, words]) => element("option", { value: place }, words)));
  at("measures").hidden = names.length < 2 || names.length > FEW;
  at("measure").parentNode.hidden = names.length <= FEW;
}

function paintChoices() {
  if (measuresOf !== stack()) listMeasures();
  const { measures } = stack();
  const checked = { stack: state.stack, level: state.level, measure: state.measure };
  for (const [name, value] of Object.entries(checked)) {
    for (const input of document.querySelectorAll(`input[name=${name}]`)) input.checked = input.value === String(value);
  }
  const two = shows("head") || shows("matrix");
  at("besides").hidden = measures.length < 2 || !two;
  at("beside").checked = state.beside !== null;
  at("second").hidden = state.beside === null || measures.length < 3;
  for (const option of at("second").options) option.hidden = option.disabled = Number(option.value) === state.measure;
  at("measure").value = String(state.measure);
  at("second").value = String(state.beside);
  at("filter").value = state.filter;
  at("filter").parentNode.hidden = !paired();
  at("special").value = state.special;
  for (const option of at("special").options) {
    option.hidden = option.disabled = !canTreat(option.value);
  }
  write(at("note"), [specialNote(), levelNote(), layerNote()].filter(Boolean).join(" "));
  at("note").hidden = !at("note").textContent;
}

function canTreat(way) {
  const gone = way === "removed" || way === "renormalised";
  return !(gone && onlySpecial()) && !(way === "renormalised" && !canRenormalise(state.measure));
}

function specialNote() {
  if (state.view === "neuron" || !someSpecial()) return "";
  const others = state.beside !== null && !canRenormalise(state.beside) ? `; those of ${stack().measures[state.beside].label} are not` : "";
  const those = someSink() ? "Special tokens, and the first token as a sink," : "Special tokens";
  return {
    shown: "",
    dimmed: `${those} are dimmed; every value stays as it is.`,
    removed: `${those} are removed; rows are not renormalised.`,
    renormalised: `${those} are removed; rows are divided by the sum of what is left${others}.`,
  }[state.special];
}

function layerNote() {
  const shown = [state.measure, state.beside].filter((place) => place !== null).map((place) => stack().measures[place]);
  if (state.view === "neuron" || !shown.some(ofLayer)) return "";
  const label = shown.find(ofLayer).label;
  return `All heads of a layer show the same ${label}: what each token at the layer’s output takes from each token of the input.`;
}

function levelNote() {
  if (state.view === "neuron" || state.level === "token") return "";
  return "Words: the sum over the tokens looked at, the mean over those that look.";
}
