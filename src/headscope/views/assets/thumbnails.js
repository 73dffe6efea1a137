// What does a map look like from afar? Places pooled into pixels.

// The value furthest from 0 of those that fall on a pixel: thin diagonals stay whole.
function pooled(map, width, height, top) {
  const [rows, columns] = [places("query").length, places("key").length];
  const codes = new Int16Array(width * height);
  const dim = new Uint8Array(width * height);
  const across = Int32Array.from({ length: columns }, (_, key) => Math.floor((key * width) / columns));
  const most = new Float32Array(width * height);
  for (let query = 0; query < rows; query += 1) {
    const start = Math.floor((query * height) / rows) * width;
    for (let key = 0; key < columns; key += 1) {
      const value = map.values[query * columns + key];
      if (value === 0 || !visible(query, key)) continue;
      const pale = dimmed(query, key);
      const size = Math.abs(value) * (pale ? 0.3 : 1);
      const pixel = start + across[key];
      if (size <= most[pixel]) continue;
      most[pixel] = size;
      codes[pixel] = codeOf(value, top);
      dim[pixel] = pale;
    }
  }
  return { codes, dim };
}

// No more pixels than there are places, and no more than fit.
function paintThumbnail(canvas, place, layer, head, colors, room) {
  const map = shows("model") ? folded(place, layer, head) : mapOf(place, layer, head);
  const width = Math.max(1, Math.min(places("key").length, Math.round(room * devicePixelRatio)));
  const height = Math.max(1, Math.min(places("query").length, Math.round((room / shapeOfMap()) * devicePixelRatio)));
  const { codes, dim } = pooled(map, width, height, topOf(place, layer, head, map));
  const image = new ImageData(width, height);
  const pixels = new Int32Array(image.data.buffer);
  for (let pixel = 0; pixel < pixels.length; pixel += 1) pixels[pixel] = (dim[pixel] ? colors.pale : colors.plain)[255 + codes[pixel]];
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(image, 0, 0);
}

// Width over height, within reason.
const shapeOfMap = () => Math.min(Math.max(places("key").length / (places("query").length || 1), 0.5), 2);

// At what value a colour is full. Differences share one scale, so that heads that did not change
// look empty; other maps have each their own.
function topOf(place, layer, head, map) {
  const measure = stack().measures[place];
  return (measure.signed ? scaleOf(measure, unitOf(layer, head)) : map.largest) || 1;
}
