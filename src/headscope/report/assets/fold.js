// What is folded opens when the address leads to it, and all of it before the page is printed.
function unfold(id) {
  const goal = id && document.getElementById(id);
  if (!goal) return;
  const inside = goal.querySelector(":scope.folded > details");
  if (inside) inside.open = true;
  unfoldAround(goal);
  goal.scrollIntoView();
}

function unfoldAround(node) {
  for (let at = node; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
}

let shut = [];
addEventListener("beforeprint", () => {
  shut = [...document.querySelectorAll("details:not([open])")];
  for (const one of shut) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of shut) one.open = false;
});
// A link to where the address already leads changes no address.
addEventListener("click", (event) => {
  const link = event.target.closest?.('a[href^="#"]');
  if (link && link.hash === location.hash) unfold(addressWords(location.hash).get(""));
});
