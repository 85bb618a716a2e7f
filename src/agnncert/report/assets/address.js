// The state of the page in its address, so that a link can be sent: #add_edges=3&delete_edges=inf&target=u7

const ADDRESS_DELAY = 250; // milliseconds: browsers complain about an address that changes with every step of a slider

function budgetInAddress(budget) {
  const resting = emptyBudget();
  const said = COUNT_FIELDS.filter((field) => budget[field] !== resting[field])
    .map((field) => [field, budget[field] === Infinity ? "inf" : String(budget[field])]);
  return budget.target_features ? [...said, ["target_features", "yes"]] : said;
}

// The budget that an address names, or null if it names none.
function budgetFromAddress(said) {
  const named = COUNT_FIELDS.filter((field) => said.has(field));
  if (!named.length && !said.has("target_features")) return null;
  const budget = emptyBudget();
  for (const field of named) budget[field] = said.get(field) === "inf" ? Infinity : asCount(said.get(field));
  budget.target_features = said.get("target_features") === "yes";
  return budget;
}

function followAddress(report, explorer) {
  const kept = { budget: [], target: [] };
  let writing = 0;

  function write() {
    clearTimeout(writing);
    writing = setTimeout(() => {
      try {
        history.replaceState(null, "", `#${new URLSearchParams([...kept.budget, ...kept.target])}`);
      } catch { /* a viewer that shows files without an address */ }
    }, ADDRESS_DELAY);
  }

  function read() {
    const said = new URLSearchParams(location.hash.slice(1));
    const budget = explorer && budgetFromAddress(said);
    const v = report.arrays.ids.indexOf(said.get("target"));
    if (budget) explorer.show(budget);
    if (v >= 0) report.showTarget(v, false);
    if (budget) byId("explore").scrollIntoView();
    else if (v >= 0) byId("target").scrollIntoView();
  }

  read();
  report.onBudget = (budget) => { kept.budget = budgetInAddress(budget); write(); };
  report.onTarget = (v) => { kept.target = [["target", report.arrays.ids[v]]]; write(); };
  addEventListener("hashchange", read);
}
