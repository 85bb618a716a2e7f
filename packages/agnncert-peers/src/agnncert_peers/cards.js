(() => {
"use strict";
const table = document.getElementById("cards"), body = table.tBodies[0], rows = [...body.rows];
const filters = [...document.querySelectorAll(".filters select")], search = document.getElementById("c-search");
const status = document.getElementById("c-status"), heads = [...table.tHead.rows[0].cells];
const sizes = heads.map((_, k) => k).filter(k => k > 0 && /^\d+$/.test(heads[k].textContent.trim()));
const place = row => ["dataset", "protocol", "threat"].map(name => row.dataset[name]).join("\n");
const value = (row, k) => row.cells[k].dataset.value === undefined ? -1 : Number(row.cells[k].dataset.value);
const isControl = row => !row.classList.contains("is-defence");

// Controls obey the choice of dataset, protocol and threat, and nothing else: they are always there to compare with.
function show() {
  const words = search.value.trim().toLowerCase();
  let shown = 0, controls = 0;
  for (const row of rows) {
    const here = filters.every(one => !one.value || row.dataset[one.dataset.column] === one.value);
    const fits = here && (isControl(row) || row.cells[0].textContent.toLowerCase().includes(words));
    row.hidden = !fits;
    if (fits) isControl(row) ? controls++ : shown++;
  }
  status.textContent = `${shown} results and ${controls} controls of ${rows.length} cards`;
  hideEmptySizes();
  mark();
}

// A size about which no shown card says anything has no column.
function hideEmptySizes() {
  for (const k of sizes) {
    const isStated = rows.some(row => !row.hidden && value(row, k) >= 0);
    for (const row of [table.tHead.rows[0], ...rows]) row.cells[k].hidden = !isStated;
  }
}

// Bold: the best of its dataset, protocol and threat. Coloured: a defence below a control with a proof.
function mark() {
  const groups = new Map();
  for (const row of rows) groups.set(place(row), [...(groups.get(place(row)) || []), row]);
  for (const group of groups.values()) {
    for (const k of sizes) {
      const defences = group.filter(row => !isControl(row)), best = Math.max(...defences.map(row => value(row, k)), 0);
      const proved = group.filter(row => row.classList.contains("is-control"));
      const control = Math.max(...proved.map(row => value(row, k)), 0);
      for (const row of defences) {
        row.cells[k].classList.toggle("best", value(row, k) === best && best > 0);
        row.cells[k].classList.toggle("below", value(row, k) >= 0 && value(row, k) < control - 1e-9);
      }
    }
  }
}

function sort(k, kind) {
  const down = heads[k].getAttribute("aria-sort") !== (kind === "number" ? "descending" : "ascending");
  const sign = (kind === "number") === down ? -1 : 1;
  const compare = kind === "number" ? (a, b) => value(a, k) - value(b, k)
    : (a, b) => a.cells[k].textContent.trim().localeCompare(b.cells[k].textContent.trim());
  for (const head of heads) head.setAttribute("aria-sort", "none");
  heads[k].setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
  rows.sort((a, b) => isControl(b) - isControl(a) || sign * compare(a, b)).forEach(row => body.append(row));
}

heads.forEach((head, k) => head.firstElementChild.addEventListener("click", event => sort(k, event.target.dataset.sort)));
for (const control of [...filters, search]) control.addEventListener("input", show);
show();
})();
