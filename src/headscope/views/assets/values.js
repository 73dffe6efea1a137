// How large is a value? Codes are unpacked layer by layer as they are needed, read without copies,
// and added up to what stands on the axes only for the heads that are looked at.
const codes = new Map(); // stored measure → [layer] bytes [head, key, query]
const norms = new Map(); // weighted measure → codes [layer, head, key]
const MOST_KEPT = 2 ** 24; // numbers in the maps kept at hand

// Text of the page; or a function, of a live page, that asks for the bytes.
async function unzipped(text) {
  if (typeof text === "function") return text();
  const letters = atob(text);
  const raw = new Uint8Array(letters.length);
  for (let place = 0; place < raw.length; place += 1) raw[place] = letters.charCodeAt(place);
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// --- unpacking ------------------------------------------------------------------------------

// The measures of the page that a measure is worked out from.
function sourcesOf(measure, measures = stack().measures) {
  if (measure.norm) return [measure, ...sourcesOf(measures[0], measures)];
  if (measure.minuend === undefined) return [measure];
  return [measure.minuend, measure.subtrahend].flatMap((place) => sourcesOf(measures[place], measures));
}

const isUnpacked = (measure, layer) => (measure.norm ? norms.has(measure) : Boolean(codes.get(measure)?.[layer]));
const isHere = (place, layer) => sourcesOf(stack().measures[place]).every((measure) => isUnpacked(measure, layer));

// The layer that is looked at comes first.
function missing() {
  const wanted = [state.measure, state.beside].filter((place) => place !== null).flatMap((place) => sourcesOf(stack().measures[place]));
  const order = [state.layer, ...count(stack().layers).filter((layer) => layer !== state.layer)];
  for (const layer of shows("model") ? count(stack().layers) : order) {
    const measure = wanted.find((one) => !isUnpacked(one, layer));
    if (measure) return { measure, layer, shape: stack() };
  }
  return null;
}

let unpacking = false;
async function unpackMissing() {
  if (unpacking || !missing()) return;
  unpacking = true;
  put(document.body, "aria-busy", true);
  for (let next = missing(); next; next = missing()) {
    await unpack(next);
    if (next.shape === stack()) arrived(next.layer);
  }
  unpacking = false;
  put(document.body, "aria-busy", false);
  arrived(null);
}

async function unpack({ measure, layer, shape }) {
  const [queries, keys] = [shape.queries, shape.keys].map((side) => data.sides[side].tokens.length);
  const bytes = await unzipped(measure.norm ?? measure.data[layer]);
  const wanted = measure.norm ? shape.layers * shape.heads * keys * 2 : (measure.heads ?? shape.heads) * queries * keys;
  if (bytes.length !== wanted) throw new Error("maps and tokens do not fit together");
  if (measure.norm) norms.set(measure, new Uint16Array(bytes.buffer));
  else if (codes.has(measure)) codes.get(measure)[layer] = bytes;
  else codes.set(measure, Object.assign([], { [layer]: bytes }));
}

// The exact weights of a head, where the page has them and they were unpacked (neuron_data.js).
const exactly = (layer, head) => neuronBlocks.get(`${state.stack}:${detailPlace(layer, head)}`)?.weight ?? null;

// --- reading --------------------------------------------------------------------------------

const tables = new Map(); // levels → the share of the scale for each code
function tableOf(levels) {
  if (!tables.has(levels)) tables.set(levels, Float64Array.from({ length: 256 }, (_, code) => Math.min(code / levels, 1) ** 2));
  return tables.get(levels);
}

const scaleOf = (measure, unit) => (Array.isArray(measure.scale) ? measure.scale[unit] : measure.scale);
// Some measures belong to a layer: one map, which all its heads show.
const ofLayer = (measure) => measure.heads === 1;
const scalesOf = (measure) => [measure.scale].flat();

// A function from query and key, both tokens, to their value: exact where the page has that, but
// not within a difference, where one exact side would show the rounding of the other.
function reader(place, layer, head, exact = true) {
  const measure = stack().measures[place];
  const [queries, keys] = [tokenCount("query"), tokenCount("key")];
  if (measure.norm) {
    const [read, norm, unit] = [reader(0, layer, head), norms.get(measure), unitOf(layer, head)];
    const step = measure.norm_scale[unit] / 65535;
    return (query, key) => read(query, key) * norm[unit * keys + key] * step;
  }
  if (measure.minuend !== undefined) {
    const [more, less] = [measure.minuend, measure.subtrahend].map((one) => reader(one, layer, head, false));
    return (query, key) => more(query, key) - less(query, key);
  }
  const weights = exact && place === 0 && exactly(layer, head);
  if (weights) return (query, key) => weights[query * keys + key];
  const unit = ofLayer(measure) ? layer : unitOf(layer, head);
  const [bytes, table, scale] = [codes.get(measure)[layer], tableOf(measure.levels), scaleOf(measure, unit)];
  const start = ofLayer(measure) ? 0 : head * queries * keys;
  return (query, key) => table[bytes[start + key * queries + query]] * scale;
}

// What a head gives, [query, key] of the places on the axes: over the tokens of a key, the sum;
// over those of a query, the mean (Clark et al. 2019, section 4.1).
function folded(place, layer, head) {
  const read = reader(place, layer, head);
  const [columns, keys] = [places("key").length, tokenCount("key")];
  const values = new Float32Array(places("query").length * columns);
  places("query").forEach(({ members }, query) => {
    const start = query * columns;
    for (const token of members) {
      for (let key = 0; key < keys; key += 1) {
        const column = placeOf.key[key];
        if (column >= 0) values[start + column] += read(token, key) / members.length;
      }
    }
  });
  if (renormalised(place)) renormalise(values, columns);
  let largest = 0;
  for (let pair = 0; pair < values.length; pair += 1) largest = Math.max(largest, Math.abs(values[pair]));
  return { values, largest };
}

const canRenormalise = (place) => stack().measures[place].unit === "probability" && !stack().measures[place].signed;
const renormalised = (place) => state.special === "renormalised" && canRenormalise(place);

function renormalise(values, columns) {
  for (let start = 0; start < values.length; start += columns) {
    const row = values.subarray(start, start + columns);
    const sum = row.reduce((total, value) => total + value, 0);
    if (sum > 0) row.forEach((value, key) => (row[key] = value / sum));
  }
}

const maps = new Map(); // "measure/layer/head/…" → {values, largest}; the latest at the end
function mapOf(place, layer, head) {
  const name = `${place}/${layer}/${head}/${exactly(layer, head) ? "exact" : "coded"}`;
  const map = maps.get(name) ?? folded(place, layer, head);
  maps.delete(name);
  maps.set(name, map);
  while (maps.size > 1 && maps.size * map.values.length > MOST_KEPT) maps.delete(maps.keys().next().value);
  return map;
}

function valueOf(place, layer, head, query, key) {
  return mapOf(place, layer, head).values[query * places("key").length + key];
}

const valueAt = (layer, head, query, key) => valueOf(state.measure, layer, head, query, key);
