(() => {
"use strict";
const search = document.getElementById("s-search"), label = document.getElementById("s-label");
const edits = document.getElementById("s-edits"), status = document.getElementById("s-status");
const rows = [...document.querySelectorAll(".scanned tbody tr")], more = document.getElementById("s-more");
const AT_FIRST = 40;
let limit = AT_FIRST;

function show() {
  const words = search.value.trim().toLowerCase(), least = edits.value === "" ? -2 : Number(edits.value);
  let left = 0;
  for (const row of rows) {
    const fits = (!words || `${row.cells[0].textContent} ${row.cells[1].textContent}`.toLowerCase().includes(words))
      && (!label.value || row.dataset.label === label.value) && Number(row.dataset.edits) >= least;
    left += fits ? 1 : 0;
    row.hidden = !fits || left > limit;
  }
  status.textContent = `${left.toLocaleString("en")} of ${rows.length.toLocaleString("en")} functions`;
  more.hidden = left <= limit;
  more.textContent = `Show all ${left.toLocaleString("en")}`;
}

// A link to a function opens its text.
function unfold() {
  const wanted = document.getElementById(location.hash.slice(1));
  if (wanted instanceof HTMLDetailsElement) {
    wanted.open = true;
    wanted.scrollIntoView();
  }
}

more.addEventListener("click", () => { limit = Infinity; show(); });
for (const control of [search, label, edits]) control.addEventListener("input", show);
window.addEventListener("hashchange", unfold);
show();
unfold();
})();
