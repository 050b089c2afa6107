"use strict";
// The benchmark report: tables sort and filter, rows of datasets open.

(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { html, svg, significant } = Draw;
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

  const rowsOf = (table) => [...table.tBodies[0].rows].filter((row) => !row.classList.contains("detail"));

  const closeRows = (table) => {
    for (const row of [...table.tBodies[0].rows]) if (row.classList.contains("detail")) row.remove();
    for (const button of table.querySelectorAll(".open")) button.setAttribute("aria-expanded", "false");
  };

  // What is missing comes last in either direction.
  const compare = (a, b, down) => {
    if (a.missing || b.missing) return a.missing - b.missing;
    const numbers = a.number !== null && b.number !== null;
    const order = numbers ? (a.number > b.number) - (a.number < b.number) : words.compare(a.text, b.text);
    return down ? -order : order;
  };
  const keyOf = (cell) => {
    const text = cell.textContent.trim();
    const number = cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    return { text, number, missing: Number(text === "" || text === "–") };
  };

  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector(".sort").addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        closeRows(table);
        const keyed = rowsOf(table).map((row) => ({ row, key: keyOf(row.cells[column]) }));
        keyed.sort((a, b) => compare(a.key, b.key, down));
        table.tBodies[0].append(...keyed.map(({ row }) => row));
      });
    });
  };

  const filterable = (label, table) => {
    const box = label.querySelector("input");
    const count = label.querySelector(".count");
    box.addEventListener("input", () => {
      closeRows(table);
      const wanted = box.value.trim().toLowerCase().split(/\s+/);
      const rows = rowsOf(table);
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((word) => text.includes(word));
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = box.value.trim() ? `${shown} of ${rows.length}` : "";
    });
  };

  // Folds of a dataset

  const time = (s) => (s < 60 ? `${significant(s)} s` : s < 3600 ? `${significant(s / 60)} min` : `${significant(s / 3600)} h`);
  const bytes = (b) => (b < 1e6 ? "<1 MB" : b < 1e9 ? `${Math.round(b / 1e6)} MB` : `${significant(b / 1e9)} GB`);
  const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : NaN);

  const strip = (values, low, high) => {
    const width = 190;
    const x = (v) => 4 + ((width - 8) * (v - low)) / (high - low || 1);
    const centre = x(mean(values)).toFixed(1);
    return svg("svg", { class: "strip", viewBox: `0 0 ${width} 22`, role: "img", "aria-label": `folds: ${values.map(significant).join(", ")}` },
      svg("line", { x1: 0, x2: width, y1: 11, y2: 11 }),
      values.map((v, k) => svg("circle", { cx: x(v).toFixed(1), cy: 11, r: 4.5 }, svg("title", {}, `fold ${k}: ${v.toFixed(4)}`))),
      svg("line", { class: "mean", x1: centre, x2: centre, y1: 3, y2: 19 }));
  };

  const paramsOf = (unit) => {
    if (!unit || !unit.params.length) return "–";
    const text = Object.entries(unit.params[0]).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ") || "defaults";
    const others = unit.params.length > 1 ? ` (first of ${unit.params.length}; folds have their own)` : "";
    return html("code", {}, text + others);
  };

  const about = (known) => {
    if (!known) return null;
    const said = [];
    const whole = (v) => Math.round(v).toLocaleString("en");
    if (known.n_rows) said.push(`${whole(known.n_rows)} rows`);
    if (known.n_columns) said.push(`${whole(known.n_columns)} columns`);
    if (known.n_classes) said.push(`${whole(known.n_classes)} classes`);
    if (known.class_ratio) said.push(`largest class ${significant(known.class_ratio)} times the smallest`);
    if (known.categorical_share !== undefined) said.push(`${Math.round(100 * known.categorical_share)} % categorical columns`);
    return said.length ? html("p", { class: "about" }, said.join(", ")) : null;
  };

  const detail = (source, dataset) => {
    const folds = source.folds[dataset] || {};
    const units = source.units[dataset] || {};
    const scores = Object.values(folds).flat().map((row) => row[0]).filter((v) => v !== null);
    const low = Math.min(...scores);
    const high = Math.max(...scores);
    const head = ["model", "balanced accuracy in each fold", ...source.measures, "fits", "tuning", "memory", "arguments"];
    const body = source.models.filter((model) => folds[model] || units[model]).map((model) => {
      const rows = folds[model] || [];
      const unit = units[model];
      const values = rows.map((row) => row[0]).filter((v) => v !== null);
      const means = source.measures.map((_, k) => mean(rows.map((row) => row[k]).filter((v) => v !== null).map(Number)));
      return html("tr", {},
        html("th", { scope: "row" }, html("bdi", { class: "name" }, model)),
        html("td", {}, values.length ? strip(values, low, high) : (unit && unit.error) || "no result"),
        means.map((v) => html("td", { class: "number" }, significant(v))),
        html("td", { class: "number" }, unit ? time(unit.seconds) : "–"),
        html("td", { class: "number" }, unit && unit.trials ? `${unit.trials} trials, ${time(unit.tuning)}` : "–"),
        html("td", { class: "number" }, unit ? bytes(unit.memory) : "–"),
        html("td", { class: "params" }, paramsOf(unit)));
    });
    const table = html("table", { "aria-label": `Folds of ${dataset}` },
      html("thead", {}, html("tr", {}, head.map((text, k) => html("th", { scope: "col", class: k === head.length - 1 ? "params" : k > 1 ? "number" : null }, text)))),
      html("tbody", {}, body));
    return [about(source.characters[dataset]), table].filter(Boolean);
  };

  const drillable = (table) => {
    const source = data[table.dataset.drill];
    for (const row of rowsOf(table)) {
      const button = row.querySelector(".open");
      button.addEventListener("click", () => {
        const open = button.getAttribute("aria-expanded") === "true";
        button.setAttribute("aria-expanded", String(!open));
        if (open) { row.nextElementSibling.remove(); return; }
        const cell = html("td", { colspan: row.cells.length }, html("div", { class: "within" }, detail(source, row.cells[0].dataset.dataset)));
        row.after(html("tr", { class: "detail" }, cell));
      });
    }
  };

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    sortable(table);
    const label = table.closest("figure").querySelector(".filter");
    if (label) filterable(label, table);
    if (table.dataset.drill) drillable(table);
  }
})();
