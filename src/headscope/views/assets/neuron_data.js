// What is a weight made of? Of the heads that have them: exact weights and vectors, unpacked when a
// head is first asked for, and the scores and parts worked out of them. All places are tokens.
const neuronBlocks = new Map(); // "stack:place in detail.heads" -> block, or null until unpacked

const detailPlace = (layer, head) =>
  stack().detail?.heads.findIndex(([one, other]) => one === layer && other === head) ?? -1;
const canWhy = (layer, head) => Boolean(stack().detail?.vectors) && detailPlace(layer, head) >= 0;
const queryTokens = () => piecesOf(sideOf("query"));
const keyTokens = () => piecesOf(sideOf("key"));

// The block of a head, or of the same head of an untrained network; null where there is none, or
// until it is unpacked.
function neuronBlock(layer, head, untrained = false) {
  const place = detailPlace(layer, head);
  const blocks = untrained ? stack().detail?.untrained : stack().detail?.blocks;
  if (place < 0 || !blocks) return null;
  const name = `${state.stack}:${place}${untrained ? ":untrained" : ""}`;
  if (!neuronBlocks.has(name)) {
    neuronBlocks.set(name, null);
    const whole = data; // another text may have taken its place by the time that they are unpacked
    unpackBlock(stack(), blocks[place]).then((block) => {
      if (data !== whole) return;
      neuronBlocks.set(name, block);
      repaint(); // what was shown to two digits is exact now
    }).catch((error) => {
      if (data === whole) at("readout").textContent = `The vectors of ${headName(layer, head)} cannot be read: ${error.message}`;
    });
  }
  return neuronBlocks.get(name);
}

async function unpackBlock({ detail, queries, keys }, packed) {
  const [n, m, d] = [data.sides[queries].tokens.length, data.sides[keys].tokens.length, detail.dim];
  const bytes = await unzipped(packed);
  let from = 0;
  const take = (Kind, count) => {
    const part = new Kind(bytes.buffer.slice(from, from + count * Kind.BYTES_PER_ELEMENT));
    from += count * Kind.BYTES_PER_ELEMENT;
    return part;
  };
  const [high, low] = [take(Uint8Array, n * m), take(Uint8Array, n * m)];
  const [Code, most] = detail.bits === 16 ? [Int16Array, 32767] : [Int8Array, 127];
  const block = { weight: Float64Array.from(high, (byte, cell) => ((byte * 256 + low[cell]) / 65535) ** 2) };
  if (detail.vectors) {
    const scales = [take(Float32Array, n), take(Float32Array, m)];
    block.q = signedRoots(take(Code, n * d), scales[0], d, most);
    block.k = signedRoots(take(Code, m * d), scales[1], d, most);
  }
  if (detail.bias) {
    const scale = take(Float32Array, 1);
    block.bias = signedRoots(take(Code, n * m), scale, n * m, most);
  }
  if (from !== bytes.length) throw new Error("vectors and tokens do not fit together");
  return block;
}

const signedRoots = (codes, scales, width, most) =>
  Float64Array.from(codes, (code, cell) => Math.sign(code) * (code / most) ** 2 * scales[Math.floor(cell / width)]);

function exactWeight(layer, head, query, key) {
  return neuronBlock(layer, head)?.weight[query * keyTokens().length + key] ?? null;
}

// Whether the pair belongs to the sentences shown.
function tokensShown(query, key) {
  if (state.filter === "all" || !paired()) return true;
  const letter = (axis, token) => (token < sideOf(axis).boundary ? "A" : "B");
  return state.filter === letter("query", query) + letter("key", key);
}

// Of a long text only a window is on the page; what is given to other tokens is part of the sum.
const WHOLE = 1e-3;

// What a query's weights are made of, key by key: scaling · q·k, levelled off, plus bias, softmax.
function neuronRow(layer, head, query, untrained = false) {
  const block = neuronBlock(layer, head, untrained);
  const { detail, causal } = stack();
  const [m, d] = [keyTokens().length, detail.dim];
  const row = { query, d, scaling: detail.scaling[layer], q: block.q.subarray(query * d, (query + 1) * d), k: block.k };
  row.weight = block.weight.subarray(query * m, (query + 1) * m);
  row.dot = Float64Array.from({ length: m }, (_, key) => row.scaling * dotProduct(row, key));
  row.capped = row.dot.map((value) => (detail.softcap ? detail.softcap * Math.tanh(value / detail.softcap) : value));
  row.bias = block.bias?.subarray(query * m, (query + 1) * m) ?? new Float64Array(m);
  row.score = row.capped.map((value, key) => value + row.bias[key]);
  row.seen = seenKeys(row, causal);
  row.top = Math.max(...row.seen.map((key) => row.score[key]));
  row.given = row.seen.reduce((sum, key) => sum + row.weight[key], 0);
  if (Math.abs(row.given - 1) < WHOLE) row.given = 1;
  row.exp = (key) => Math.exp(row.score[key] - row.top);
  row.sum = row.seen.reduce((sum, key) => sum + row.exp(key), 0) / (row.given || 1);
  row.share = (key) => row.exp(key) / row.sum;
  return row;
}

function dotProduct({ q, k, d }, key) {
  let sum = 0;
  for (let neuron = 0; neuron < d; neuron += 1) sum += q[neuron] * k[key * d + neuron];
  return sum;
}

// A key with a fair score but no weight at all was masked by the model (a window, say).
const MASKED = 1e-6;

function seenKeys({ weight, score, query }, causal) {
  const keys = [...score.keys()].filter((key) => !(causal && key > query));
  const given = keys.filter((key) => weight[key] > 0);
  const top = Math.max(...given.map((key) => score[key]));
  return keys.filter((key) => weight[key] > 0 || Math.exp(score[key] - top) < MASKED);
}

const meanOver = (keys, value) => keys.reduce((sum, key) => sum + value(key), 0) / (keys.length || 1);

// How much every neuron adds to the score of a key beyond what it adds to the other keys' on average.
function neuronParts(row, key) {
  const others = row.seen.filter((other) => other !== key);
  return Float64Array.from({ length: row.d }, (_, neuron) => {
    const mean = meanOver(others, (other) => row.k[other * row.d + neuron]);
    return others.length ? row.scaling * row.q[neuron] * (row.k[key * row.d + neuron] - mean) : 0;
  });
}

// The difference of a key's score from the mean of the others, and what it is the sum of.
function scoreParts(row, key) {
  const others = row.seen.filter((other) => other !== key);
  const beyond = (values) => (others.length ? values[key] - meanOver(others, (other) => values[other]) : 0);
  return {
    neurons: neuronParts(row, key),
    cap: beyond(row.capped) - beyond(row.dot),
    bias: beyond(row.bias),
    whole: beyond(row.score),
  };
}

// In which order do the neurons stand?
function neuronOrder(row, key, order) {
  const places = Array.from({ length: row.d }, (_, neuron) => neuron);
  const by = { key: () => neuronParts(row, key), importance: () => neuronImportance() }[order]?.();
  return by ? places.sort((one, two) => by[two] - by[one] || one - two) : places;
}

// Over a corpus, if the page was given it.
function neuronImportance() {
  return stack().detail.importance?.[detailPlace(state.layer, headNow())] ?? null;
}

const MARKED = 8;

function importantNeurons() {
  const values = neuronImportance();
  if (!values) return [];
  return [...values.keys()].sort((one, two) => values[two] - values[one]).slice(0, MARKED);
}

// Colours are tanh(value / size): at which size? Half of what nearly all of the head's numbers stay
// below; of the products, which are spread more widely, 19 in 20.
const SAMPLE = 20000;

function colorSizes(block, { dim }) {
  if (block.sizes) return block.sizes;
  const queries = block.q.length / dim;
  const product = (cell) => {
    const [neuron, pair] = [cell % dim, Math.floor(cell / dim)];
    const query = pair % queries;
    const key = (pair * 7 + Math.floor(pair / queries)) % (block.k.length / dim);
    return block.q[query * dim + neuron] * block.k[key * dim + neuron];
  };
  const cells = Math.min(SAMPLE, (block.q.length * block.k.length) / dim);
  const products = Array.from({ length: cells }, (_, cell) => product(cell));
  block.sizes = { vector: nearLargest([...block.q, ...block.k], 0.99), product: nearLargest(products, 0.95) };
  return block.sizes;
}

// Rounded up to one digit, so that the key of the colours reads well.
function nearLargest(values, share) {
  const sorted = values.map(Math.abs).sort((one, two) => one - two);
  const near = sorted[Math.floor(share * (sorted.length - 1))] || sorted[sorted.length - 1] || 2;
  const order = 10 ** Math.floor(Math.log10(near));
  return (Math.ceil(near / order) * order) / 2;
}
