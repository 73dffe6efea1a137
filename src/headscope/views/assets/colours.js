// Which colour is a value? From the page's own colour for 0, along the page's ramp, or to blue
// above and vermillion below; the square root of the share of the largest, so that little is seen.
let inks = null; // while a figure for paper is drawn: the colours of the light page
const colorOf = (name) => (inks ?? getComputedStyle(document.documentElement)).getPropertyValue(`--${name}`).trim();
const parts = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
const mixed = (from, to, share) => from.map((tone, channel) => tone + share * (to[channel] - tone));
const packed = ([red, green, blue]) => (255 << 24) | (Math.round(blue) << 16) | (Math.round(green) << 8) | Math.round(red);

// 256 shades [red, green, blue] between steps at equal distances.
function between(steps) {
  return count(256).map((code) => {
    const place = (code / 255) * (steps.length - 1);
    const low = Math.min(Math.floor(place), steps.length - 2);
    return mixed(steps[low], steps[low + 1], place - low);
  });
}

function shades() {
  const steps = [];
  for (let step = 0; colorOf(`ramp-${step}`); step += 1) steps.push(parts(colorOf(`ramp-${step}`)));
  return between(steps);
}

const signName = (value) => (value < 0 ? "vermillion" : "blue");

function signShades(value) {
  const [page, ink, hue] = ["page", "ink", signName(value)].map((name) => parts(colorOf(name)));
  return between([page, hue, mixed(hue, ink, 0.55)]);
}

// 511 colours for codes from -255 to 255, and the same for what is dimmed: [255 + code].
function palette(signed) {
  const page = parts(colorOf("page"));
  const above = signed ? signShades(1) : shades();
  const below = signed ? signShades(-1) : above;
  const row = [...below.slice(1).reverse(), ...above];
  const pale = row.map((color) => mixed(page, color, 0.3));
  return { plain: Int32Array.from(row, packed), pale: Int32Array.from(pale, packed), away: packed(mixed(page, parts(colorOf("rule")), 0.35)) };
}

const codeOf = (value, top) => Math.sign(value) * Math.round(Math.sqrt(Math.min(Math.abs(value) / top, 1)) * 255);

// The bar that says what the shades stand for.
function rampKey(ticks, words, signed = false) {
  const ramp = element("span", { class: "ramp", "aria-hidden": "true" });
  const below = signed ? signShades(-1) : [];
  const above = signed ? signShades(1) : shades();
  for (const shade of [...below.slice(1).reverse(), ...above].filter((_, place) => place % 10 === 0)) {
    const box = element("i");
    box.style.backgroundColor = `rgb(${shade.map(Math.round).join(" ")})`;
    ramp.append(box);
  }
  const labels = element("span", { class: "ticks" }, ...ticks.map((tick) => element("span", {}, tick)));
  return [element("span", { class: "scale" }, ramp, labels), element("span", { class: "words" }, words)];
}
