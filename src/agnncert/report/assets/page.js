// Puts the page together.

function prepare({ meta, arrays }) {
  const report = { meta, arrays, rules: null, onHolds() {}, onBudget() {}, onTarget() {}, showTarget() {} };
  const C = meta.num_classes;
  report.className = (k) => (k < 0 ? "unknown" : meta.class_names?.[k] ?? `class ${k}`);
  report.amount = (value) => (value === meta.any ? "any" : value === Infinity ? "any" : value < 0 ? "none" : whole(value));
  report.votes = (count) => (meta.count_words.scale === 1 ? whole(count) : (count / meta.count_words.scale).toFixed(2));
  report.counts = (v) => arrays.counts.subarray(v * C, (v + 1) * C);
  report.topTwo = (v) => {
    const counts = report.counts(v);
    let next = -Infinity; // votes given in advance may be negative
    for (let k = 0; k < C; k++) if (k !== arrays.label[v] && counts[k] > next) next = counts[k];
    return [counts[arrays.label[v]], C > 1 ? next : 0];
  };
  let rank = null;
  report.idRank = (v) => {
    if (!rank) {
      // Names that end in a number are sorted by it. Others are text: digits inside a UUID are no numbers.
      const numbered = arrays.ids.every((id) => /^\D*\d+$/.test(id));
      const collator = new Intl.Collator("en", { numeric: numbered });
      const order = [...arrays.ids.keys()].sort((a, b) => collator.compare(arrays.ids[a], arrays.ids[b]));
      rank = new Float64Array(order.length);
      order.forEach((row, place) => { rank[row] = place; });
    }
    return rank[v];
  };
  return report;
}

async function start() {
  wireCopyButtons();
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser is too old to unpack the data (it needs DecompressionStream, in all browsers since 2023)");
  }
  const report = prepare(await readPayload());
  report.proof = makeProof(report);
  startCharts(report.meta.charts);
  if (report.meta.theorem) report.rules = makeRules(report);
  const table = startTable(report);
  report.onHolds = table.onHolds;
  report.showTarget = (v, scroll) => {
    drawTarget(report, v);
    byId("choose-id").value = report.arrays.ids[v];
    table.choose(v);
    report.onTarget(v);
    if (scroll) {
      byId("target").scrollIntoView();
      byId("onetarget").focus({ preventScroll: true });
    }
  };
  startDetail(report);
  const explorer = report.rules ? startExplorer(report) : null;
  followAddress(report, explorer);
  wireTableBoxes(document);
  document.documentElement.dataset.ready = "yes";
  await startCheck(report);
}

start().catch((error) => {
  byId("trouble").hidden = false;
  byId("trouble").textContent = `Parts of this page could not be drawn: ${error.message}.`;
  throw error;
});
