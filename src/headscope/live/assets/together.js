// On a wide screen the four views stand side by side: what is chosen in one is chosen in all.
const ABOUT_VIEWS = { model: "every head", head: "which token looks at which", neuron: "why it looks there", matrix: "every weight of the head" };
const OWN_CHOICES = { head: "line-choices", matrix: "map-choices" }; // that stand in the view itself

function buildTogether() {
  for (const [view, words] of Object.entries(ABOUT_VIEWS)) {
    const title = element("h2", { class: "title" }, element("b", {}, at(`tab-${view}`).textContent), element("span", {}, words));
    at(`view-${view}`).prepend(title);
    for (const event of ["pointerover", "focusin"]) at(`view-${view}`).addEventListener(event, () => toFront(view));
  }
  wide.addEventListener("change", repaint);
  painters.push(paintTogether);
  paintTogether();
}

// The view that was used last is read aloud, and saved.
function toFront(view) {
  if (!together() || state.front === view) return;
  state.front = view;
  paintTogether();
  say();
}

// While somebody types, the maps of all heads come first, and the other views a moment later.
const MOMENT = 40; // milliseconds
let others = null;
function holdOthers() {
  held = true;
  clearTimeout(others);
  requestAnimationFrame(() => {
    clearTimeout(others);
    others = setTimeout(paintOthers, MOMENT);
  });
}

function paintOthers() {
  held = false;
  if (together()) for (const paint of [paintHeads, paintHead, paintMatrix, paintNeuron]) paint();
  document.body.dataset.shown = live.answers; // for tests and timings
}

function paintTogether() {
  const on = together();
  document.querySelector(".page").classList.toggle("together", on);
  at("body").classList.toggle("deep", stack().layers > 1.5 * stack().heads); // all layers stand beside the other views
  for (const [view, choices] of Object.entries(OWN_CHOICES)) {
    const home = on ? at(`view-${view}`).querySelector(".title") : at("aside");
    if (at(choices).parentNode !== home) home.append(at(choices));
  }
  for (const view of Object.keys(ABOUT_VIEWS)) at(`view-${view}`).classList.toggle("front", on && front() === view);
  write(at("export-title"), on ? `Save the ${at(`tab-${front()}`).textContent.toLowerCase()} view` : "Save figure");
  write(at("model-hint"), `Rows of a map are the tokens that look, columns those looked at. ${on ? "A click chooses a head for all views, with Shift one more." : "Enter or a click opens a head."}`);
}
