// What stands on an axis? Tokens or words of one side, with or without the special tokens.
const standing = { query: [], key: [] }; // places
const placeOf = { query: [], key: [] }; // of every token; -1 where it is removed
const first = { query: [], key: [] }; // token of every place
const last = { query: [], key: [] };
let arrangement = 0; // counts up; what was built for another one is built anew

const removed = () => state.special === "removed" || state.special === "renormalised";
const sideNumber = (axis) => (axis === "query" ? stack().queries : stack().keys);
const sideOf = (axis) => data.sides[sideNumber(axis)];
const tokenCount = (axis) => sideOf(axis).tokens.length;
const places = (axis) => standing[axis];
const special = (axis, index) => standing[axis][index].special;
const someSpecial = () => data.sides.some((side) => side.special.some(Boolean));
const someSink = () => data.sides.some((side) => side.sink);
const onlySpecial = () => data.sides.some((side) => side.special.every(Boolean));
const paired = () => sideOf("query").boundary !== null && sideOf("key").boundary !== null;
const someWords = () => data.sides.some((side) => side.word.some((word, token) => word >= 0 && word === side.word[token - 1]));

// The selection moves along with its first token, and is dropped where that is gone.
let arrangedFor = null; // the stack
function arrange() {
  const anchor = (place) => place && { token: first[place.side][place.index], side: place.side, of: arrangedFor?.[place.side] };
  const kept = anchor(state.kept);
  const cell = state.cell && [anchor({ side: "query", index: state.cell[0] }), anchor({ side: "key", index: state.cell[1] })];
  state.layer = Math.min(state.layer, stack().layers - 1);
  state.heads = state.heads.filter((head) => head < stack().heads);
  if (!state.heads.length) state.heads = [0];
  for (const axis of ["query", "key"]) {
    standing[axis] = stand(sideOf(axis));
    first[axis] = Int32Array.from(standing[axis], (place) => place.members[0]);
    last[axis] = Int32Array.from(standing[axis], (place) => place.members[place.members.length - 1]);
    placeOf[axis] = new Int32Array(tokenCount(axis)).fill(-1);
    standing[axis].forEach((place, index) => place.members.forEach((token) => (placeOf[axis][token] = index)));
  }
  arrangedFor = { query: sideNumber("query"), key: sideNumber("key") };
  arrangement += 1;
  maps.clear();
  state.pointed = null;
  state.kept = found(kept);
  const cells = cell?.map(found);
  state.cell = cells?.every(Boolean) ? cells.map((place) => place.index) : null;
}

function found(anchor) {
  if (!anchor || anchor.of !== arrangedFor[anchor.side]) return null;
  const index = placeOf[anchor.side][anchor.token];
  return index >= 0 ? { side: anchor.side, index } : null;
}

function stand(side) {
  const row = [];
  side.tokens.forEach((text, token) => {
    if (removed() && side.special[token]) return;
    const before = row[row.length - 1];
    const word = side.word[token];
    if (state.level === "word" && word >= 0 && word === before?.word) before.members.push(token);
    else row.push({ members: [token], word, special: side.special[token], second: false });
  });
  const written = state.level === "word" && side.written?.length ? side.written : null;
  for (const place of row) place.text = place.members.length === 1 && !written ? piecesOf(side)[place.members[0]] : written?.[place.members[0]] ? place.members.map((token) => written[token]).join("").trim() : joined(place.members.map((token) => side.tokens[token]));
  const second = side.boundary === null ? -1 : row.findIndex((place) => place.members[0] >= side.boundary);
  if (second >= 0) row[second].second = true;
  return row;
}

// WordPiece marks the continuation of a word with ##.
const joined = (pieces) => pieces.map((piece, place) => (place ? piece.replace(/^##(?=.)/s, "") : piece)).join("");

// As they are shown one by one: with a hyphen for that mark.
const piecesOf = (side) => side.pieces ?? side.tokens;

const ofSecond = (axis, index) => first[axis][index] >= sideOf(axis).boundary;

function seen(query, key) {
  return !stack().causal || first.key[key] <= last.query[query];
}

function visible(query, key) {
  if (!seen(query, key)) return false;
  if (state.filter === "all" || !paired()) return true;
  return ofSecond("query", query) === (state.filter[0] === "B") && ofSecond("key", key) === (state.filter[1] === "B");
}

const dimmed = (query, key) => state.special === "dimmed" && (special("query", query) || special("key", key));

const placeText = (axis, index) => legible(standing[axis][index].text);
const placeElement = (axis, index) => element("bdi", {}, placeText(axis, index));

// Control characters and direction marks would break lines, vanish, or turn what follows around;
// joiners and variation selectors stay, since emoji and some scripts need them.
const INVISIBLE = /^[\s\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\u{e0000}-\u{e0fff}]*$/u;
const TURNING = /[\u0080-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2028\u2029\u2060-\u206f\ufeff]/g;

function legible(text) {
  if (text === "") return "∅";
  if (/^ +$/.test(text)) return "␣".repeat(text.length);
  const shown = text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/[\0-\x1f]/g, (sign) => String.fromCharCode(0x2400 + sign.charCodeAt(0))).replace(/\x7f/g, "␡");
  if (INVISIBLE.test(shown)) return [...shown].map((sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`).join(" ");
  return (/^\p{M}/u.test(shown) ? "◌" : "") + shown.replace(TURNING, "\ufffd");
}
