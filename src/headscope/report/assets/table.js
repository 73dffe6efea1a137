// How do heads compare? The table that the page came with, sorted and filtered in place.
const table = document.getElementById("heads");

function sortBy(at, kind, descending) {
  const body = table.tBodies[0];
  const sign = descending ? -1 : 1;
  const order = (row) => row.cells[at].dataset.order;
  const compare = (a, b) => {
    if (order(a) === "" || order(b) === "") return (order(a) === "") - (order(b) === "");
    return sign * (kind === "number" ? Number(order(a)) - Number(order(b)) : order(a).localeCompare(order(b)));
  };
  const byUnit = (a, b) => Number(a.dataset.unit) - Number(b.dataset.unit);
  body.append(...[...body.rows].sort((a, b) => compare(a, b) || byUnit(a, b)));
}

function buildSorting() {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const button = element("button", { type: "button" }, ...head.childNodes);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      // Numbers are first asked for from the top, names from the start.
      const first = at === 0 || head.dataset.sort === "text" ? "ascending" : "descending";
      const other = first === "ascending" ? "descending" : "ascending";
      const next = head.getAttribute("aria-sort") === first ? other : first;
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", next);
      sortBy(at, head.dataset.sort, next === "descending");
    });
  });
}

function filterRows() {
  const words = document.getElementById("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of table.tBodies[0].rows) {
    // "L1" is meant to find L1·H2, not L12·H2.
    const [name, labels] = [...row.cells].map((cell) => cell.textContent);
    const text = `${name.replace("·", " ")} ${name} ${labels}`;
    const parts = text.toLowerCase().split(/\s+/);
    const fits = (word) => parts.some((part) => (/^[lh]\d+$/.test(word) ? part === word : part.includes(word)));
    row.hidden = !words.every(fits);
    if (!row.hidden) shown += 1;
  }
  const total = table.tBodies[0].rows.length;
  document.getElementById("shown").textContent = `${shown} of ${total} heads`;
}

if (table) {
  buildSorting();
  document.getElementById("filters").hidden = false;
  document.getElementById("search").addEventListener("input", filterRows);
  filterRows();
  for (const row of table.tBodies[0].rows) {
    row.addEventListener("click", (event) => event.target.closest("a") || select(Number(row.dataset.unit)));
  }
  listeners.push(() => {
    for (const row of table.tBodies[0].rows) row.classList.toggle("chosen", isChosen(Number(row.dataset.unit)));
  });
}
