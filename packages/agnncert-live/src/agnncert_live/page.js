"use strict";
// Asks the service every two seconds and shows what it says. All text comes from elsewhere: it is set as text, never as HTML.
(() => {
  const at = (id) => document.getElementById(id);
  if (!at("live-rows")) return; // the page that describes the interface has no live part
  const EVERY = 2000;
  let seen = -1;
  let chosen = null;
  const flips = [];

  const token = () => sessionStorage.getItem("agnncert-token");
  async function ask(place) {
    const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
    const answer = await fetch(place, { headers, cache: "no-store" });
    if (answer.status === 401) {
      at("live-key").hidden = false;
      throw new Error("this service wants its token.");
    }
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.error || answer.statusText);
    return found;
  }

  const element = (name, text, className) => {
    const made = document.createElement(name);
    made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const KINDS = { add_edges: "added edges", delete_edges: "deleted edges", inject_nodes: "new nodes with any edges", delete_nodes: "deleted nodes", change_features: "changed features of others" };
  const shown = (radius) => (radius < 0 ? "none" : radius.toLocaleString("en"));

  function showRows(rows) {
    at("live-rows").replaceChildren(
      ...rows.map((row) => {
        const line = document.createElement("tr");
        line.className = "live-row";
        line.tabIndex = 0;
        if (row.target === chosen) line.setAttribute("aria-current", "true");
        line.append(element("td", row.target), element("td", row.label), element("td", shown(row.radius), row.radius < 3 ? "num fell" : "num"));
        const choose = () => { chosen = row.target; showOne(); };
        line.addEventListener("click", choose);
        line.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
        return line;
      }),
    );
  }

  async function showOne() {
    if (chosen === null) return;
    at("one").hidden = false;
    at("one-title").textContent = `Target ${chosen}`;
    try {
      const one = await ask(`/decision?target=${encodeURIComponent(chosen)}`);
      const facts = [
        ["label", one.truth === null ? one.label : `${one.label} (truth: ${one.truth})`],
        ["radius", shown(one.radius)],
        ["votes by class", one.votes.join(" : ")],
        ...Object.entries(one.withstands).map(([kind, most]) => [`withstands, of ${KINDS[kind] ?? kind} alone`, most === -1 ? "nothing proved" : most]),
      ];
      if (one.since_reference) facts.push(["since the reference", one.since_reference.text]);
      at("live-detail").replaceChildren(...facts.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
    } catch (error) {
      at("live-detail").replaceChildren(element("dd", error.message));
    }
  }

  function showChanges(found) {
    flips.unshift(...found.reverse());
    flips.length = Math.min(flips.length, 100);
    if (!flips.length) return;
    at("live-changes").replaceChildren(
      ...flips.map((one) => {
        const when = new Date(one.time * 1000).toLocaleTimeString("en");
        const what = one.flipped ? `flipped from ${one.label[0]} to ${one.label[1]}` : `radius fell from ${one.radius[0] ?? "new"} to ${shown(one.radius[1])}`;
        return element("li", `${when}, after event ${one.number.toLocaleString("en")}: ${one.target} ${what}`, one.flipped ? "fell" : "");
      }),
    );
  }

  async function refresh() {
    try {
      const rows = await ask("/closest?limit=25");
      at("live-key").hidden = true;
      const health = await ask("/summary");
      at("live-name").textContent = `${health.data} · ${health.division}`;
      for (const name of ["events", "nodes", "directed_edges", "targets"]) at(`live-${name}`).textContent = health[name].toLocaleString("en");
      showRows(rows);
      showChanges(await ask(`/changes?since=${Math.max(seen, 0)}`));
      if (health.events !== seen) await showOne();
      seen = health.events;
      at("live-status").textContent = `Current as of ${new Date().toLocaleTimeString("en")}.`;
    } catch (error) {
      at("live-status").textContent = `Not current: ${error.message}`;
    }
    setTimeout(refresh, EVERY);
  }

  at("live-key").addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem("agnncert-token", at("live-token").value);
    at("live-token").value = "";
    at("live-status").textContent = "Connecting …";
  });
  refresh();
})();
