// A page in a frame cannot see whether the notebook around it is dark, and the system may say otherwise:
// each frame hears it, as it has loaded and when the notebook changes its theme.
(() => {
  if (window.headscopeFrames) return; // another view of this notebook tells all
  window.headscopeFrames = true;
  // Light text stands on a dark page, whatever the notebook calls its themes.
  const dark = (element) => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    canvas.fillStyle = getComputedStyle(element).color;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
    return red + green + blue > (3 * 255) / 2;
  };
  const tell = (frame) => {
    const scheme = dark(frame.parentElement) ? "dark" : "light";
    frame.contentWindow?.postMessage({ scheme }, "*");
  };
  const tellAll = () => document.querySelectorAll("iframe.headscope").forEach(tell);
  document.addEventListener("load", ({ target }) => target.matches?.("iframe.headscope") && tell(target), true);
  const observer = new MutationObserver(tellAll);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellAll);
  tellAll();
})();
