// How does the live page come up, follow what is typed, and keep it in its address?
const KEPT_AFTER = 400; // milliseconds without a key, so that typing does not fill the history
const FIELDS = ["text", "pair"];
const keptTexts = { text: live.text, pair: live.pair };

const wordOfHead = (word) => {
  const [place, layer, head] = word.split(".").map(Number);
  return `${place ? `${place}:` : ""}L${layer + countsFrom}H${head + countsFrom}`;
};

// Addresses may come from anywhere: a word that is no head is left out.
function headOfWord(word) {
  const found = /^(?:(\d):)?L(\d{1,4})H(\d{1,4})$/.exec(word);
  if (!found) return null;
  const [layer, head] = [Number(found[2]) - countsFrom, Number(found[3]) - countsFrom];
  return layer < 0 || head < 0 ? null : headWord(Number(found[1] ?? 0), layer, head);
}

const wordOfToken = (word) => {
  const [side, token] = word.split(".").map(Number);
  return `${side ? `${side}:` : ""}${token + 1}`;
};

function tokenOfWord(word) {
  const found = /^(?:(\d):)?(\d{1,4})$/.exec(word);
  return found && Number(found[2]) > 0 ? `${Number(found[1] ?? 0)}.${Number(found[2]) - 1}` : null;
}

const CODES = { off: [wordOfHead, headOfWord], even: [wordOfHead, headOfWord], zero: [wordOfToken, tokenOfWord] };

const changeWords = (name) => [...live.changes[name]].map(CODES[name][0]).join(".");

function setChanges(name, words) {
  const found = words ? words.split(".").map(CODES[name][1]) : [];
  if (found.includes(null)) return false;
  live.changes[name] = new Set(found);
  for (const word of live.changes.off) live.changes.even.delete(word);
  return true;
}

// The layer in which values are zero; "" for all.
function setLayer(word) {
  if (!/^\d{0,4}$/.test(word) || (word && Number(word) < countsFrom)) return false;
  live.layer = word ? Number(word) - countsFrom : null;
  return true;
}

function buildLiveAddress() {
  for (const name of FIELDS) {
    addressable(name, () => keptTexts[name], (word) => {
      keptTexts[name] = live[name] = word;
      showTexts();
      askSoon();
      return true;
    }, { quiet: true });
  }
  addressable("in", () => (live.layer === null ? "" : String(live.layer + countsFrom)), (word) => setLayer(word) && (askSoon(), true), { quiet: true });
  for (const name of Object.keys(CODES)) {
    addressable(name, () => changeWords(name), (word) => setChanges(name, word) && (askSoon(), true), { quiet: true });
  }
}

let soon = null;
function askSoon() {
  clearTimeout(soon);
  soon = setTimeout(askModel);
}

// --- the fields ---------------------------------------------------------------------------------

function showTexts() {
  for (const name of FIELDS) {
    if (at(name).value !== live[name]) at(name).value = live[name];
    fit(at(name));
  }
}

// As high as what is in it, within reason.
function fit(field) {
  field.style.height = "auto";
  field.style.height = `${Math.min(field.scrollHeight + 2, 160)}px`;
}

let keeping = null;
function typed(name) {
  live[name] = at(name).value;
  fit(at(name));
  askModel();
  clearTimeout(keeping);
  keeping = setTimeout(() => {
    for (const one of FIELDS) keptTexts[one] = live[one];
    if (data.stacks.length) tellAddress();
  }, KEPT_AFTER);
}

function startLive() {
  buildLiveAddress();
  const words = addressWords(location.hash);
  for (const name of FIELDS) if (words.has(name)) keptTexts[name] = live[name] = words.get(name).slice(0, at(name).maxLength);
  for (const name of Object.keys(CODES)) setChanges(name, words.get(name) ?? "");
  setLayer(words.get("in") ?? "");
  for (const name of FIELDS) at(name).addEventListener("input", () => typed(name));
  showTexts();
  buildChanges();
  addEventListener("resize", showTexts);
  if (!live.settings.longest) { // there is no model
    at("panels").hidden = true;
    for (const name of FIELDS) at(name).disabled = true;
    write(at("readout"), "");
    return;
  }
  askModel();
  at("text").focus();
  at("text").setSelectionRange(live.text.length, live.text.length);
}

try {
  startLive();
} catch (error) {
  failed(error);
}
