// How is a head looked at in an input? Its views are a page of their own, which is put together when
// it is asked for and shown in a frame: one at a time, below what asked for it.
const views = JSON.parse(document.getElementById("views")?.textContent ?? "null");
const open = { button: null, holder: null, word: "", view: "", unit: null };
const lookers = []; // {button, about}
const HIGHEST_FRAME = 1600; // pixels of a frame; what is taller scrolls in it

// As in the page's own islands: no character may end the element.
function inert(value) {
  const escaped = (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, escaped);
}

function viewPage(example, start) {
  const { parts, payload } = views.pages[example];
  const stacks = payload.stacks.map((stack) => ({ ...stack, labels: views.labels }));
  const between = [views.style, inert({ ...payload, stacks, start }), views.script];
  return parts.map((part, place) => part + (between[place] ?? "")).join("");
}

// A head opens as lines, with the token that shows it; an input without a head as all maps. Of two
// models a head opens as the maps of both, and all heads as the difference.
// Behind that stands what was chosen within the views, as their own address would say it.
function startOf(unit, example) {
  return { ...opensWith(unit, example), address: open.view };
}

function opensWith(unit, example) {
  const measure = (name) => views.pages[example].payload.stacks[0].measures.findIndex((one) => one.name === name);
  const versus = measure("versus");
  if (unit === null) {
    return { framed: true, view: "model", layer: 0, heads: [0], query: null, measure: Math.max(measure("difference"), 0) };
  }
  const [layer, head] = [Math.floor(unit / data.heads), unit % data.heads];
  const start = { framed: true, view: "head", layer, heads: [head], query: views.looks[unit][1] };
  return versus < 0 ? start : { ...start, view: "matrix", query: null, beside: versus };
}

function lookWords(unit) {
  return [`Look at ${headName(unit)} in `, element("span", {}, `“${views.names[views.looks[unit][0]]}”`)];
}

function closeLook() {
  open.holder?.remove();
  open.button?.setAttribute("aria-expanded", "false");
  Object.assign(open, { button: null, holder: null, word: "", view: "", unit: null });
}

function look(button, unit, example, view = "") {
  closeLook();
  Object.assign(open, { word: lookWord(unit, example), view, unit });
  const title = `${unit === null ? "All heads" : headName(unit)} in “${views.names[example]}”`;
  const frame = element("iframe", { title, sandbox: "allow-scripts allow-downloads" });
  const close = element("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", () => {
    closeLook();
    tellAddress();
    button.focus();
  });
  frame.addEventListener("load", () => {
    frame.focus({ preventScroll: true });
    if (holder.getBoundingClientRect().bottom > innerHeight) holder.parentElement.scrollIntoView();
  });
  frame.srcdoc = viewPage(example, startOf(unit, example));
  const holder = element("div", { class: "look" }, close, frame);
  (button.closest("li") ?? button.parentElement).append(holder);
  unfoldAround(holder);
  button.setAttribute("aria-expanded", "true");
  Object.assign(open, { button, holder });
}

// The page in the frame tells how high it is; the frame follows, so that only one thing scrolls.
addEventListener("message", ({ source, data: told }) => {
  const frame = open.holder?.querySelector("iframe");
  if (!frame || source !== frame.contentWindow) return;
  if (Number.isFinite(told?.height)) frame.style.height = `${Math.min(told.height + 2, HIGHEST_FRAME)}px`;
  if (typeof told?.address !== "string" || told.address === open.view) return;
  const before = headIn(open.view);
  open.view = told.address;
  const [unit, loud] = [headIn(open.view), told.loud === true];
  if (unit === null || unit === before || unit === page.selected || !card.hidden) tellAddress(loud);
  else select(unit, null, loud);
});

// The head that the views name. Where all heads are open, the first is only where keys begin.
function headIn(view) {
  const words = addressWords(view);
  const unit = unitOf(words.get("").split(".")[0]) ?? open.unit;
  return open.unit === null && unit === 0 && !words.has("tab") ? null : unit;
}

// A head that is chosen in the report is shown in the views that are open.
function showChosen() {
  if (!open.holder || page.selected === null || page.selected === headIn(open.view)) return;
  const words = addressWords(open.view);
  words.delete("");
  showView([cardId(page.selected), words.toString()].filter(Boolean).join("&"));
}

// What is looked at, in the address: the input from 1, and the head; and what its views show.
const lookWord = (unit, example) => `${example + 1}${unit === null ? "" : `.${cardId(unit)}`}`;

function showLook(word) {
  closeLook();
  const onCard = document.body.classList.contains("one-head");
  const fits = ({ button, about }) => button.isConnected && Boolean(button.closest("#card")) === onCard && lookWord(...about()) === word;
  if (word && !onCard && !lookers.some(fits)) {
    // Perhaps below the grid, of a head that was kept there.
    const unit = views.looks.findIndex(([example], one) => lookWord(one, example) === word);
    if (unit >= 0 && page.selected !== unit) select(unit);
  }
  const found = lookers.find(fits);
  if (found) look(found.button, ...found.about(), address.words.get("view") ?? "");
  return !word || Boolean(found);
}

function showView(word) {
  if (!open.holder) return !word;
  open.view = word;
  open.holder.querySelector("iframe").contentWindow.postMessage({ address: word }, "*");
  return true;
}

function lookingButton(button, about) {
  button.hidden = false;
  button.setAttribute("aria-expanded", "false");
  lookers.push({ button, about });
  button.addEventListener("click", () => {
    if (open.button === button) closeLook();
    else look(button, ...about());
    tellAddress();
  });
}

if (views) {
  for (const button of document.querySelectorAll("button[data-look]")) {
    const unit = Number(button.dataset.look);
    lookingButton(button, () => [unit, views.looks[unit][0]]);
  }
  for (const button of document.querySelectorAll("button[data-example]")) {
    const unit = button.dataset.unit === undefined ? null : Number(button.dataset.unit);
    lookingButton(button, () => [unit, Number(button.dataset.example)]);
  }
  // The head that is kept in the grid, or the one that it opens with.
  const here = document.getElementById("look-here");
  const now = () => page.selected ?? data.first;
  lookingButton(here, () => [now(), views.looks[now()][0]]);
  here.parentElement.hidden = false;
  const name = () => here.replaceChildren(...lookWords(now()));
  extras.push((unit) => {
    closeLook();
    const button = element("button", { type: "button", class: "look-at" }, ...lookWords(unit));
    lookingButton(button, () => [unit, views.looks[unit][0]]);
    return element("div", { class: "look-here" }, button);
  });
  listeners.push(name, showChosen);
  name();
  addressable("example", () => open.word, showLook);
  addressable("view", () => open.view, showView, { quiet: true });
}
