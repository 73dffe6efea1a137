// How are the views switched, and what can be chosen in all of them?
const tabs = [...document.querySelectorAll("[role=tab]")];

function buildTabs() {
  tabs.forEach((tab, place) => {
    tab.addEventListener("click", () => change({ view: tab.dataset.view, pointed: null, cell: null }));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = tabs[(place + step + tabs.length) % tabs.length];
      next.focus();
      next.click();
    });
  });
}

function buildChoices() {
  for (let layer = 0; layer < layers; layer += 1) at("layer").append(element("option", { value: layer }, String(layer + 1)));
  at("ink").append(element("option", { value: "whole" }), element("option", { value: "largest" }, "largest shown"));
  at("top").value = String(state.top);
  at("layer").addEventListener("change", () => change({ layer: Number(at("layer").value) }));
  at("filter").addEventListener("change", () => change({ filter: at("filter").value }));
  at("dim").addEventListener("change", () => change({ dim: at("dim").checked }));
  at("top").addEventListener("change", () => change({ top: Number(at("top").value) }));
  at("ink").addEventListener("change", () => change({ full: at("ink").value }));
  at("least").addEventListener("input", () => change({ least: Number(at("least").value) }));
  for (const input of document.querySelectorAll("input[name=measure]")) {
    input.addEventListener("change", () => showMeasure(Number(input.value)));
  }
  for (let head = 0; head < heads; head += 1) at("chips").append(buildChip(head));
  at("chips").append(textButton("all", () => change({ heads: everyHead() })), textButton("only", () => change({ heads: [headNow()] })));
}

// The last one asked for is shown, whichever is unpacked first.
async function showMeasure(place) {
  await unpacked(place);
  if (document.querySelector("input[name=measure]:checked").value === String(place)) change({ measure: place });
}

const everyHead = () => Array.from({ length: heads }, (_, head) => head).sort((one, two) => (one === headNow()) - (two === headNow()));

function textButton(words, act) {
  const button = element("button", { type: "button", class: "plain", "data-heads": words }, words);
  button.addEventListener("click", act);
  return button;
}

function buildChip(head) {
  const chip = element("button", { type: "button", class: "chip", "data-head": head });
  const line = drawing("path", { d: "M1 4H21", "stroke-dasharray": dashOf(head).join(" ") });
  chip.append(drawing("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, line), element("span", {}, String(head + 1)));
  chip.style.setProperty("--hue", `var(--${hueOf(head)})`);
  chip.addEventListener("click", (event) => (event.shiftKey ? isolate(head) : toggle(head)));
  chip.addEventListener("dblclick", () => state.view === "head" && isolate(head));
  return chip;
}

// In the matrix a click names the head to show; elsewhere it adds or takes away its lines.
function toggle(head) {
  const others = state.heads.filter((other) => other !== head);
  const on = others.length < state.heads.length;
  if (state.view === "matrix") change({ heads: on ? [...others, head] : [head] });
  else if (!on) change({ heads: [...state.heads, head] });
  else if (others.length) change({ heads: others });
}

function isolate(head) {
  const alone = state.heads.length === 1 && state.heads[0] === head;
  change({ heads: alone && state.view === "head" ? everyHead() : [head] });
}

function paintPage() {
  for (const tab of tabs) {
    const on = tab.dataset.view === state.view;
    tab.setAttribute("aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
    at(`view-${tab.dataset.view}`).hidden = !on;
  }
  at("aside").hidden = state.view === "model";
  at("line-choices").hidden = state.view !== "head";
  at("matrix-key").hidden = state.view !== "matrix";
  document.querySelector(".body").dataset.view = state.view;
  at("layer").value = String(state.layer);
  at("ink").options[0].textContent = isAttention() ? "1" : "largest of layer";
  at("least-value").textContent = number(leastValue(), 1);
  at("chips-hint").textContent = state.view === "matrix" ? "A click shows another head." : "A click toggles a head; a double click, or Shift and Enter, leaves it alone.";
  paintNames();
}

function paintNames() {
  const named = headName(state.layer, headNow());
  const label = data.labels[state.layer]?.[headNow()] ?? "";
  document.querySelector("[data-heads=only]").textContent = `only ${headNow() + 1}`;
  at("head-name").textContent = named;
  at("head-does").textContent = label;
  for (const chip of document.querySelectorAll(".chip")) {
    const head = Number(chip.dataset.head);
    const does = data.labels[state.layer]?.[head] ?? "";
    const name = headName(state.layer, head) + (does ? `, ${does}` : "");
    chip.setAttribute("aria-pressed", state.heads.includes(head));
    chip.setAttribute("aria-label", name);
    chip.title = name;
    chip.classList.toggle("named", state.view === "matrix" && head === headNow());
  }
}

async function start() {
  at("aside").classList.toggle("terse", data.labels.flat().every((label) => label.length <= 30));
  buildTabs();
  buildChoices();
  buildModel(at("cells"));
  buildHead();
  buildMatrix();
  await unpacked(0);
  painters.push(paintPage, paintModel, paintHead, paintMatrix, () => say());
  change({});
  performance.mark("drawn");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => change({}));
}

start().catch((error) => {
  at("readout").textContent = `This page cannot be shown: ${error.message}`;
});
