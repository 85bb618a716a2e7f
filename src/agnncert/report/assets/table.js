// The table of all targets: filter, sort, one page at a time.

const ROWS_PER_PAGE = 25;

function tableColumns(report) {
  const { meta, arrays } = report;
  const columns = [
    { key: "id", title: meta.target_title, first: 1, value: report.idRank,
      cell: (v) => make("button", { type: "button", class: "link", title: arrays.ids[v], onclick: () => report.showTarget(v, true) }, arrays.ids[v]) },
    { key: "label", title: "Label", first: 1, value: (v) => arrays.label[v], cell: (v) => report.className(arrays.label[v]) },
  ];
  if (meta.has_truth) {
    columns.push({
      key: "truth", title: "Truth", first: 1, value: (v) => arrays.truth[v],
      cell: (v) => (arrays.truth[v] < 0 || arrays.truth[v] === arrays.label[v] ? report.className(arrays.truth[v]) : make("span", { class: "wrong" }, `${report.className(arrays.truth[v])} ✗`)),
    });
  }
  columns.push({ key: "radius", title: "Radius", number: true, first: -1, value: (v) => arrays.radius[v], cell: (v) => report.amount(arrays.radius[v]) });
  if (arrays.structure) {
    columns.push({ key: "structure", title: "Added or deleted only", number: true, first: -1, value: (v) => arrays.structure[v], cell: (v) => report.amount(arrays.structure[v]) });
  }
  if (arrays.neighbours) {
    columns.push({ key: "neighbours", title: meta.neighbours_title, number: true, first: -1, value: (v) => arrays.neighbours[v], cell: (v) => report.amount(arrays.neighbours[v]) });
  }
  if (meta.has_degree) {
    columns.push({ key: "degree", title: meta.degree_title, number: true, first: -1, value: (v) => arrays.degree[v], cell: (v) => whole(arrays.degree[v]) });
  }
  columns.push({ key: "votes", title: meta.count_words.title, first: -1, value: (v) => report.topTwo(v)[0] - report.topTwo(v)[1], cell: (v) => votesCell(report, v) });
  return columns;
}

function votesCell(report, v) {
  const [top, next] = report.topTwo(v);
  const [first, second] = [report.votes(top), report.votes(next)];
  const total = report.meta.most_votes;
  const bar = make("span", { class: "votesbar", "aria-hidden": "true" },
    make("span", { class: "win", style: { width: `${(100 * Math.max(0, top)) / total}%` } }),
    make("span", { class: "next", style: { width: `${(100 * Math.max(0, next)) / total}%` } }));
  return make("span", { title: `${first} for the label, ${second} for the runner-up` }, bar, `${first} : ${second}`);
}

function startTable(report) {
  const { meta, arrays } = report;
  const columns = tableColumns(report);
  const searched = arrays.ids.map((id) => id.toLowerCase());
  const state = { sort: columns[0], order: 1, page: 0, rows: [], holds: null, chosen: -1 };

  function passes(v, wanted) {
    if (wanted.search && !searched[v].includes(wanted.search)) return false;
    if (wanted.label !== "" && arrays.label[v] !== Number(wanted.label)) return false;
    if (wanted.right && (arrays.truth[v] < 0 || (arrays.truth[v] === arrays.label[v]) !== (wanted.right === "right"))) return false;
    if (wanted.holds && state.holds && (state.holds[v] === 1) !== (wanted.holds === "kept")) return false;
    return wanted.radius === "" || arrays.radius[v] >= Number(wanted.radius);
  }

  function readFilters() {
    return {
      search: byId("t-search").value.trim().toLowerCase(), label: byId("t-label").value,
      right: byId("t-right")?.value ?? "", holds: byId("t-holds")?.value ?? "", radius: byId("t-radius").value.trim(),
    };
  }

  function find() {
    const wanted = readFilters();
    const rows = [];
    for (let v = 0; v < meta.num_targets; v++) if (passes(v, wanted)) rows.push(v);
    const keys = new Float64Array(meta.num_targets);
    for (const v of rows) keys[v] = state.sort.value(v);
    rows.sort((a, b) => (keys[a] === keys[b] ? a - b : state.order * (keys[a] < keys[b] ? -1 : 1)));
    state.rows = rows;
    draw();
  }

  function draw() {
    const numPages = Math.max(1, Math.ceil(state.rows.length / ROWS_PER_PAGE));
    state.page = Math.min(state.page, numPages - 1);
    const shown = state.rows.slice(state.page * ROWS_PER_PAGE, (state.page + 1) * ROWS_PER_PAGE);
    byId("targets").tBodies[0].replaceChildren(...shown.map((v) =>
      make("tr", { class: v === state.chosen ? "chosen" : null }, ...columns.map((column) => make("td", { class: column.number ? "num" : null }, column.cell(v))))));
    byId("t-status").textContent = `${plural(state.rows.length, "target")}${state.rows.length < meta.num_targets ? ` of ${whole(meta.num_targets)}` : ""}`;
    drawPager(byId("t-pager"), state.page, numPages, "the table", (page) => { state.page = page; draw(); });
  }

  function drawHead() {
    byId("targets").tHead.rows[0].replaceChildren(...columns.map((column) => make("th", {
      scope: "col", class: column.number ? "num" : null, "data-key": column.key,
      "aria-sort": column === state.sort ? (state.order > 0 ? "ascending" : "descending") : "none",
    }, make("button", { type: "button", onclick: () => sortBy(column) }, column.title))));
  }

  function sortBy(column) {
    state.order = column === state.sort ? -state.order : column.first;
    state.sort = column;
    state.page = 0;
    drawHead();
    byId("targets").tHead.querySelector(`[data-key="${column.key}"] button`).focus();
    find();
  }

  const refind = () => { state.page = 0; find(); };
  for (let k = 0; k < meta.num_classes; k++) byId("t-label").append(make("option", { value: k }, report.className(k)));
  for (const id of ["t-search", "t-label", "t-right", "t-holds", "t-radius"]) byId(id)?.addEventListener("input", refind);
  drawHead();
  find();
  return {
    onHolds(holds) { state.holds = holds; if (byId("t-holds").value) find(); },
    choose(v) { state.chosen = v; draw(); },
  };
}
