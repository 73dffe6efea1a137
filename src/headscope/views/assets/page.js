// How do the views come up, and which one is shown?
const tabs = [...document.querySelectorAll("[role=tab]")];

function buildTabs() {
  tabs.forEach((tab) => {
    tab.addEventListener("click", () => change({ view: tab.dataset.view, pointed: null, cell: null }));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const there = tabs.filter((one) => one === tab || one.offsetParent);
      const next = there[(there.indexOf(tab) + step + there.length) % there.length];
      next.focus();
      next.click();
    });
  });
}

function paintPage() {
  const shown = together() ? "all" : front();
  for (const tab of tabs) {
    const on = tab.dataset.view === shown;
    put(tab, "aria-selected", on);
    tab.tabIndex = on ? 0 : -1;
  }
  for (const view of Object.keys(PANELS)) at(`view-${view}`).hidden = !shows(view);
  at("aside").hidden = alone("model");
  document.querySelector(".body").dataset.view = shown;
  document.querySelector(".body").classList.toggle("two", state.beside !== null);
}

// What was missing may have come: of the model view, one row; of the others, what is looked at.
function arrived(layer) {
  if (layer === null || layer === state.layer) repaint();
  else if (shows("model")) paintModel();
  if (shows("model")) return; // its rows are painted one by one
  if (isHere(state.measure, state.layer)) reached("first");
  if (layer === null) reached("drawn");
}

// For tests and timings: when the first row, and then the whole first view, was there.
function reached(name) {
  if (name in document.body.dataset) return;
  performance.mark(name);
  document.body.dataset[name] = "";
}

function failed(error) {
  at("failure").textContent = `Not all of this page can be shown: ${error.message}`;
  at("failure").hidden = false;
  put(document.body, "aria-busy", false);
}

// The page may say what it opens with, such as one head and the token that looks, and whether it
// stands in a frame that is fitted to it. Returns the address, which says what else to show.
function opening() {
  const { query = null, framed = false, address: asked = "", ...shown } = data.start ?? {};
  if (framed) tellFrame();
  Object.assign(state, shown);
  arrange();
  const index = query === null ? -1 : placeOf.query[query];
  if (index >= 0) state.kept = { side: "query", index };
  return framed ? asked : location.hash;
}

// The page around it hears how high it is and what is chosen, and may say what to show.
function tellFrame() {
  document.body.classList.add("framed");
  address.tell = (text, loud) => parent.postMessage({ address: text, loud }, "*");
  addEventListener("message", ({ source, data: told }) => {
    if (source !== parent || typeof told?.address !== "string") return;
    showAddress(told.address);
  });
  const whole = document.documentElement;
  new ResizeObserver(() => parent.postMessage({ height: whole.offsetHeight }, "*")).observe(whole);
}

function start() {
  const asked = opening();
  buildTabs();
  buildChoices();
  buildHeads();
  buildModel();
  buildHead();
  buildNeuron();
  buildMatrix();
  buildExport();
  painters.push(paintPage, paintChoices, paintHeads, paintModel, paintHead, paintNeuron, paintMatrix, () => say());
  painters.push(() => unpackMissing().catch(failed), () => tellAddress());
  buildAddress();
  startAddress(asked);
  repaint();
  whenScheme(repaint);
}
