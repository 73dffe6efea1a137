// Which choices of the views stand in the address? #table&tab=matrix&measure=difference&from=5.
const partOf = (unit) => [Math.floor(unit / stack().heads), unit % stack().heads];
const headAddress = (layer, head) => headName(layer, head).replace("·", "");

function headAt(word) {
  const unit = count(stack().layers * stack().heads).find((one) => headAddress(...partOf(one)) === word);
  return unit === undefined ? null : partOf(unit);
}

// The head that is named comes first; behind it, after dots, others whose lines are shown.
const headsNow = () => [...state.heads].reverse().map((head) => headAddress(state.layer, head)).join(".");

function showHeads(word) {
  const found = word.split(".").map(headAt);
  if (found.some((one) => one === null || one[0] !== found[0]?.[0])) return false;
  change({ layer: found[0][0], heads: [...new Set(found.map(([, head]) => head))].reverse() });
  return true;
}

// A token that is kept, counted from 1.
const keptNow = (side) => (state.kept?.side === side ? String(first[side][state.kept.index] + 1) : "");

function keepAt(side, word) {
  const index = /^\d{1,6}$/.test(word) ? (placeOf[side][Number(word) - 1] ?? -1) : -1;
  if (word && index < 0) return false;
  change({ kept: word ? { side, index } : null, pointed: null, cell: null });
  return true;
}

// One of some words, by its place among them; `show` is not asked for a word that is not there.
function oneOf(name, words, now, show, manner) {
  const known = (word) => words().includes(word);
  addressable(name, () => words()[now()], (word) => known(word) && (show(words().indexOf(word)), true), manner);
}

// Each may use what stands before it: measures belong to a stack, tokens stand where words allow it.
function buildAddress() {
  const measures = () => stack().measures.map((measure) => measure.name);
  const [views, levels, filters] = [tabs.map((tab) => tab.dataset.view), () => (someWords() ? ["token", "word"] : ["token"]), [...at("filter").options].map((one) => one.value)];
  const specials = () => [...at("special").options].map((one) => one.value).filter(canTreat);
  const besides = () => ["", ...measures()];
  const showBeside = (place) => change({ beside: place - 1 === state.measure || !place ? null : place - 1 });
  oneOf("stack", () => data.stacks.map((one) => one.name), () => state.stack, showStack);
  oneOf("measure", measures, () => state.measure, showMeasure);
  oneOf("beside", besides, () => (state.beside === null ? 0 : state.beside + 1), showBeside);
  oneOf("level", levels, () => levels().indexOf(state.level), (place) => change({ level: levels()[place] }));
  oneOf("special", specials, () => specials().indexOf(state.special), (place) => change({ special: specials()[place] }), { quiet: true });
  oneOf("filter", () => filters, () => filters.indexOf(state.filter), (place) => change({ filter: filters[place] }), { quiet: true });
  addressable("", headsNow, showHeads);
  oneOf("tab", () => views, () => views.indexOf(state.view), (place) => change({ view: views[place], pointed: null, cell: null }));
  for (const [side, name] of [["query", "from"], ["key", "to"]]) {
    addressable(name, () => keptNow(side), (word) => keepAt(side, word), { quiet: true });
  }
}
