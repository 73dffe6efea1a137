// Which layer and heads are shown, and which of their lines?
let headsOf = null; // the stack that the chips were built for

function buildHeads() {
  at("ink").append(element("option", { value: "whole" }), element("option", { value: "largest" }, "largest shown"));
  at("top").value = String(state.top);
  at("layer").addEventListener("change", () => change({ layer: Number(at("layer").value) }));
  at("top").addEventListener("change", () => change({ top: Number(at("top").value) }));
  at("ink").addEventListener("change", () => change({ full: at("ink").value }));
  at("least").addEventListener("input", () => change({ least: Number(at("least").value) }));
  at("whole").addEventListener("change", () => change({ whole: at("whole").checked }));
}

function buildChips() {
  headsOf = stack();
  at("layer").replaceChildren(...count(stack().layers).map((layer) => element("option", { value: layer }, String(layerName(layer)))));
  const all = textButton("all", () => change({ heads: everyHead() }));
  const only = textButton("only", () => change({ heads: [headNow()] }));
  at("chips").replaceChildren(...count(stack().heads).map(buildChip), all, only);
  at("aside").classList.toggle("terse", stack().labels.flat().every((label) => label.length <= 30));
}

// The head that is named stays the last one.
const everyHead = () => count(stack().heads).sort((one, two) => (one === headNow()) - (two === headNow()) || one - two);

function textButton(words, act) {
  const button = element("button", { type: "button", class: "plain", "data-heads": words }, words);
  button.addEventListener("click", act);
  return button;
}

function buildChip(head) {
  const chip = element("button", { type: "button", class: "chip", "data-head": head });
  const line = drawing("path", { d: "M1 4H21" });
  chip.append(drawing("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, line), element("span", {}, headNumber(head)));
  chip.addEventListener("click", (event) => (event.shiftKey ? isolate(head) : toggle(head)));
  chip.addEventListener("dblclick", () => shows("head") && isolate(head));
  return chip;
}

// Where one head is shown a click names it; elsewhere it adds or takes away its lines.
function toggle(head) {
  const others = state.heads.filter((other) => other !== head);
  const on = others.length < state.heads.length;
  if (!shows("head")) change({ heads: on ? [...others, head] : [head] });
  else if (!on) change({ heads: [...state.heads, head] });
  else if (others.length) change({ heads: others });
}

function isolate(head) {
  const one = state.heads.length === 1 && state.heads[0] === head;
  change({ heads: one && shows("head") ? everyHead() : [head] });
}

function paintHeads() {
  if (headsOf !== stack()) buildChips();
  const measure = measureNow();
  at("line-choices").hidden = !shows("head");
  at("map-choices").hidden = !shows("matrix");
  at("layer").value = String(state.layer);
  const attention = measuresShown().some((place) => stack().measures[place].unit === "probability" && !stack().measures[place].signed);
  at("ink").options[0].textContent = attention ? "a weight of 1" : `largest of ${measure.signed ? "all heads" : "the layer"}`;
  write(at("least-value"), isHere(state.measure, state.layer) ? number(leastValue(state.measure), 1).replace("+", "±") : "");
  write(at("chips-hint"), shows("head") ? "A click toggles a head; a double click, or Shift and Enter, leaves it alone." : "A click shows another head.");
  write(document.querySelector("[data-heads=only]"), `only ${headNumber(headNow())}`);
  write(at("head-name"), headName(state.layer, headNow()));
  write(at("head-does"), labelOf(state.layer, headNow()));
  if (!alone("model") && !waits()) state.heads.forEach((head) => neuronBlock(state.layer, head)); // exact weights
  for (const chip of document.querySelectorAll(".chip")) paintChip(chip, Number(chip.dataset.head));
}

function paintChip(chip, head) {
  const does = labelOf(state.layer, head);
  const name = headName(state.layer, head) + (does ? `, ${does}` : "");
  put(chip, "aria-pressed", state.heads.includes(head));
  put(chip, "aria-label", name);
  chip.title = name;
  chip.classList.toggle("named", !shows("head") && head === headNow());
  chip.style.setProperty("--hue", `var(--${measureNow().signed ? "ink" : hueOf(head)})`);
  put(chip.querySelector("path"), "stroke-dasharray", dashOf(head).join(" "));
}
