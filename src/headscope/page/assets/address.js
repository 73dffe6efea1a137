// How does the address hold what is chosen? A place, then choices: #table&tab=matrix. What is as the
// page opens with it is left out. An address may come from anywhere: its words are compared with what
// the page knows, and never shown; an unknown one counts as absent.
const addressed = []; // {name, read, show, quiet, usual}; the place has the name ""
const address = { words: new URLSearchParams(), busy: true, tell: null }; // busy: nothing is told before it was read

// read   the word for what is chosen now, "" for nothing
// show   chooses by a word that may be anything; returns whether it is known
// quiet  for a choice that nobody would go back from: the address changes in its place
function addressable(name, read, show, { quiet = false, early = false } = {}) {
  addressed[early ? "unshift" : "push"]({ name, read, show, quiet, usual: read() });
}

// The words of an address by name; its place, where it has one, stands first and has no "=".
function addressWords(text) {
  const parts = text.replace(/^#/, "").split("&");
  const place = parts[0].includes("=") ? "" : parts.shift();
  const words = new URLSearchParams(parts.join("&"));
  words.set("", place);
  return words;
}

function addressText() {
  const words = new URLSearchParams();
  let place = "";
  for (const { name, read, usual } of addressed) {
    if (!name) place = read();
    else if (read() !== usual) words.set(name, read());
  }
  if (!words.toString() && addressed.some(({ name, usual }) => !name && usual === place)) return "";
  return [place, words.toString()].filter(Boolean).join("&");
}

const ownPage = parent === window; // a page in a frame leaves the address alone

// `loud`: as a step that Back undoes; by default, if one of the choices that changed is such a step.
function tellAddress(loud = null) {
  if (address.busy) return;
  const [text, before] = [addressText(), address.words];
  address.words = addressWords(text);
  const moved = ({ name, quiet }) => !quiet && (before.get(name) ?? "") !== (address.words.get(name) ?? "");
  loud ??= addressed.some(moved);
  if (address.tell) address.tell(text, loud);
  else if (ownPage && text !== location.hash.slice(1)) writeAddress(text, loud ? "pushState" : "replaceState");
}

function writeAddress(text, how) {
  history[how]({}, "", text ? `#${text}` : location.href.split("#")[0]);
}

function showAddress(text) {
  address.busy = true;
  address.words = addressWords(text);
  for (const { name, read, show, usual } of addressed) {
    const word = (address.words.get(name) ?? usual) || (name ? "" : usual);
    if (word !== read() && !show(word) && usual !== read()) show(usual);
  }
  address.busy = false;
  address.words = addressWords(addressText());
}

// A link within the page says where to go; what was chosen stays.
function followAddress() {
  const fresh = history.state === null;
  const words = addressWords(location.hash);
  const place = words.get("");
  const kept = new URLSearchParams(fresh && !location.hash.includes("=") ? address.words : words);
  kept.delete("");
  showAddress([place, kept].join("&"));
  if (fresh) writeAddress(addressText(), "replaceState");
}

// When all choices of the page are known: what its address asks for.
function startAddress(text = location.hash) {
  showAddress(text);
  if (!ownPage) return;
  if (history.state === null) history.replaceState({}, "");
  addEventListener("hashchange", followAddress);
}

// The page around this one, such as a notebook, may say whether it is dark.
addEventListener("message", ({ source, data: told }) => {
  if (ownPage || source !== parent || !["light", "dark"].includes(told?.scheme)) return;
  if (document.documentElement.dataset.scheme === told.scheme) return;
  document.documentElement.dataset.scheme = told.scheme;
  dispatchEvent(new Event("scheme"));
});

// Calls `paint` when the page becomes light or dark: what is drawn by hand is drawn again.
function whenScheme(paint) {
  addEventListener("scheme", paint);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
}
