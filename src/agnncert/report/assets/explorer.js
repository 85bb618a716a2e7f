// The budget explorer: sliders in, certified accuracy and surviving targets out.

const COUNT_FIELDS = [
  "add_edges", "delete_edges", "change_edges", "inject_nodes", "edges_per_injected", "delete_nodes", "change_features",
];
const IDS_PER_PAGE = 60;

// No attack. Whoever then injects nodes means nodes with any number of edges, until told otherwise: as Budget() of the library.
function emptyBudget() {
  return { ...Object.fromEntries(COUNT_FIELDS.map((field) => [field, 0])), edges_per_injected: Infinity, target_features: false };
}

// A whole number from 0 on, whatever was typed.
function asCount(text) {
  const value = Math.floor(Number(text));
  return Number.isFinite(value) && value > 0 ? value : 0;
}

function readBudget() {
  const budget = emptyBudget();
  for (const field of COUNT_FIELDS) {
    budget[field] = byId(`u-${field}`).checked ? Infinity : asCount(byId(`f-${field}`).value);
  }
  budget.target_features = byId("f-target_features")?.checked ?? false; // the graph task has no such switch
  return budget;
}

function showBudget(budget) {
  for (const field of COUNT_FIELDS) {
    const unlimited = budget[field] === Infinity;
    byId(`u-${field}`).checked = unlimited;
    byId(`r-${field}`).value = unlimited ? 0 : budget[field];
    byId(`f-${field}`).value = unlimited ? "" : budget[field];
  }
  if (byId("f-target_features")) byId("f-target_features").checked = budget.target_features;
}

function budgetAsPython(budget) {
  const parts = COUNT_FIELDS
    .filter((field) => (field === "edges_per_injected" ? budget.inject_nodes !== 0 : budget[field] !== 0))
    .map((field) => `${field}=${budget[field] === Infinity ? "math.inf" : budget[field]}`);
  if (budget.target_features) parts.push("target_features=True");
  return `certificate.holds_against(ac.Budget(${parts.join(", ")}))`;
}

// Which combinations make sense: an unlimited field needs no number, and without new nodes their edges do not matter.
function dimControls(budget) {
  for (const field of COUNT_FIELDS) {
    const unlimited = budget[field] === Infinity;
    byId(`f-${field}`).disabled = byId(`r-${field}`).disabled = unlimited;
  }
  byId("controls").querySelector('[data-field="edges_per_injected"]').classList.toggle("off", budget.inject_nodes === 0);
}

function startExplorer(report) {
  const { meta, arrays, rules } = report;
  const n = meta.num_targets;
  const state = { page: 0, holds: new Uint8Array(n), listed: [] };
  let speaking = 0;

  function summarise(holds) {
    let kept = 0, right = 0, rare = 0, alarms = 0;
    for (let v = 0; v < n; v++) {
      kept += holds[v];
      const correct = meta.has_truth && holds[v] && arrays.truth[v] === arrays.label[v];
      right += correct ? 1 : 0;
      rare += correct && arrays.truth[v] === meta.rare ? 1 : 0;
      const isOther = meta.has_truth && arrays.truth[v] >= 0 && arrays.truth[v] !== meta.rare;
      alarms += isOther && (arrays.label[v] === meta.rare || !holds[v]) ? 1 : 0; // two classes: what does not hold may be the other one
    }
    return { kept, right, rare, alarms };
  }

  function drawList() {
    const wanted = byId("survivors-which").value === "kept" ? 1 : 0;
    const chosen = [];
    for (let v = 0; v < n; v++) if (state.holds[v] === wanted) chosen.push(v);
    const numPages = Math.max(1, Math.ceil(chosen.length / IDS_PER_PAGE));
    state.page = Math.min(state.page, numPages - 1);
    const shown = chosen.slice(state.page * IDS_PER_PAGE, (state.page + 1) * IDS_PER_PAGE);
    byId("survivors-list").replaceChildren(...shown.map((v) =>
      make("li", {}, make("button", { type: "button", title: arrays.ids[v], onclick: () => report.showTarget(v, true) }, arrays.ids[v]))));
    byId("survivors-title").textContent = wanted
      ? `${plural(chosen.length, "target")} provably ${chosen.length === 1 ? "keeps its label" : "keep their label"}`
      : `For ${plural(chosen.length, "target")} nothing is proved under this budget`;
    drawPager(byId("survivors-pager"), state.page, numPages, "targets", (page) => { state.page = page; drawList(); });
  }

  function inOneGraph(broken, fallen) {
    if (broken === 0) return "One attacked graph, all targets together: no label can change.";
    const most = `at most ${plural(broken, "label")} can change.`;
    return broken < fallen
      ? `So far the whole budget is spent on each target by itself. If it is for the whole graph, once, ${most}`
      : `One attacked graph, all targets together: ${most}`;
  }

  function drawAnswer(budget) {
    const { kept, right, rare, alarms } = summarise(state.holds);
    const accuracy = (meta.has_truth ? right : kept) / meta.num_judged;
    const broken = rules.brokenAtMost(budget);
    const why = rules.whyNothing(budget);
    // The large figure is about what the headline is about: the rarest class if it is rare, else all targets.
    const detected = meta.rare === null ? "" : `of ${plural(meta.num_rare, "target")} of class ${meta.class_names?.[meta.rare] ?? meta.rare} stay detected.`;
    const certified = atLeast(detected ? rare / meta.num_rare : accuracy);
    byId("answer-accuracy").textContent = certified;
    byId("answer-meaning").textContent = detected || (meta.has_truth
      ? `of the targets${meta.num_judged < n ? " with a known class" : ""} are classified correctly and provably stay so.` : "of the targets provably keep their label.");
    byId("answer-count").textContent = meta.has_truth
      ? `${whole(kept)} of ${plural(n, "target")} keep their label, ${whole(right)} of them the correct one.`
      : `${whole(kept)} of ${plural(n, "target")} keep their label.`;
    const others = meta.num_judged - meta.num_rare;
    const taken = detected && meta.num_classes === 2 && others ? `Of the ${plural(others, "other")} at most ${atMost(alarms / others)} can be taken for it. ` : "";
    const all = detected ? `Of all targets ${atLeast(accuracy)} are classified correctly and provably stay so. ` : "";
    const low = meta.majority !== null && accuracy < meta.majority ? `The most frequent class alone is right for ${atLeast(meta.majority)}, which is more.` : "";
    byId("answer-classes").textContent = taken + all + low;
    byId("answer-collective").hidden = meta.task !== "node";
    byId("answer-collective").textContent = inOneGraph(broken, n - kept);
    byId("answer-why").hidden = !why;
    byId("answer-why").textContent = why ?? "";
    byId("bar-right").style.width = `${(100 * (meta.has_truth ? right : kept)) / n}%`;
    byId("bar-wrong").style.width = `${meta.has_truth ? (100 * (kept - right)) / n : 0}%`;
    byId("answer-code").textContent = budgetAsPython(budget);
    Object.assign(byId("answer").dataset, { kept, right, broken });
    clearTimeout(speaking); // a screen reader hears the result, not every step of the slider
    speaking = setTimeout(() => {
      byId("announce").textContent = `${certified} certified ${byId("answer-meaning").textContent} ${byId("answer-count").textContent} ${why ?? ""}`;
    }, 500);
  }

  function update() {
    const budget = readBudget();
    dimControls(budget);
    state.holds = rules.holds(budget);
    drawAnswer(budget);
    drawList();
    report.onHolds(state.holds);
    report.onBudget(budget);
  }

  function show(budget) {
    showBudget(budget);
    state.page = 0;
    update();
  }

  function wireField(field) {
    const number = byId(`f-${field}`), slider = byId(`r-${field}`), unlimited = byId(`u-${field}`);
    slider.max = meta.slider_max[field];
    slider.addEventListener("input", () => { number.value = slider.value; update(); });
    number.addEventListener("input", () => { slider.value = asCount(number.value); update(); });
    number.addEventListener("change", () => { number.value = asCount(number.value); });
    unlimited.addEventListener("change", () => {
      number.value = unlimited.checked ? "" : slider.value; // empty, it shows ∞
      update();
    });
  }

  COUNT_FIELDS.forEach(wireField);
  byId("f-target_features")?.addEventListener("change", update);
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("survivors-which").addEventListener("change", () => { state.page = 0; drawList(); });
  byId("presets").replaceChildren(...meta.presets.map((preset) => make("button", {
    type: "button",
    onclick: () => {
      const unlimited = Object.fromEntries(preset.unlimited.map((field) => [field, Infinity]));
      show({ ...emptyBudget(), ...preset.budget, ...unlimited });
    },
  }, preset.name)));
  const keys = meta.has_truth
    ? [["b1", "correct, and proved to stay so"], ["b2", `wrong${meta.num_judged < n ? " or of no known class" : ""}, and proved to stay so`], ["", "not proved"]]
    : [["b1", "proved to keep the label"], ["", "not proved"]];
  byId("answer-keys").replaceChildren(...keys.map(([look, text]) => make("li", {}, make("i", { class: look }), text)));
  show(emptyBudget());
  return { show };
}
