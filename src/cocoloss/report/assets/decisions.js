"use strict";
// Decisions: a threshold on a slider, both curves with a mark at it, and what is right and wrong.

(() => {
  const { html, svg, line, text, chart, colour, percent, significant, tip } = Draw;
  const data = JSON.parse(document.getElementById("data").textContent).decisions;
  if (!data) return;
  const get = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const [slider, select] = [get("threshold"), get("positive")];
  const LOOKS = { "test rows": { k: 1, dash: null }, "leave-one-out": { k: 2, dash: "2 4" } };
  const [LEFT, TOP, LARGEST] = [46, 24, 330];
  const sets = Object.keys(data.against);
  const chooseBy = sets[sets.length - 1];
  const state = { at: Number(slider.value), positive: data.positive };

  const part = (rows, label = state.positive) => data.against[rows].find((p) => p.label === label);

  // As decisions_report.py has it.
  const measure = (p, k, guess = false) => {
    let [found, alarmed] = [p.found[k], p.alarmed[k]];
    const [n, mine] = [p.n, p.n_of_class];
    if (guess) {
      const taken = found + alarmed;
      [found, alarmed] = [(taken * mine) / n, (taken * (n - mine)) / n];
    }
    const [missed, silent] = [mine - found, n - mine - alarmed];
    const [recall, alarms] = [found / mine, alarmed / (n - mine)];
    const costs = data.costs && data.costs[p.label];
    return {
      recall,
      alarms,
      precision: found + alarmed ? found / (found + alarmed) : null,
      f1: (2 * found) / (2 * found + alarmed + missed),
      balanced_accuracy: (recall + 1 - alarms) / 2,
      accuracy: (found + silent) / n,
      cost: costs && (silent * costs[0][0] + alarmed * costs[0][1] + missed * costs[1][0]
        + found * costs[1][1]) / n,
      cells: { "00": found, "01": missed, 10: alarmed, 11: silent },
    };
  };

  // Where the threshold is on each curve.
  const AXES = {
    roc: { across: "false positive rate", up: "recall", at: (m) => [m.alarms, m.recall] },
    precision_recall: { across: "recall", up: "precision", at: (m) => [m.recall, m.precision] },
  };
  const curves = all("[data-curve]").map((host) => {
    const kind = host.dataset.curve;
    const axes = AXES[kind];
    let frame = null;
    const keys = html("ul", { class: "keys" });
    const plot = html("div", {});
    host.append(keys, plot);
    const known = () => sets.filter((rows) => part(rows));

    const mark = () => {
      if (!frame) return;
      frame.marks.replaceChildren();
      for (const rows of known()) {
        const [x, y] = axes.at(measure(part(rows), state.at));
        if (x === null || y === null) continue;
        frame.marks.append(svg("circle", {
          class: "dot", cx: frame.x(x), cy: frame.y(y), r: 6, fill: colour(LOOKS[rows].k),
          "data-mark": rows,
        }));
      }
    };
    const draw = (width) => {
      const side = Math.min(width - LEFT - 16, LARGEST);
      const x = (v) => LEFT + side * v;
      const y = (v) => TOP + side * (1 - v);
      const root = chart(width, TOP + side + 44, `${axes.up} against ${axes.across}`);
      for (const t of [0, 0.25, 0.5, 0.75, 1]) {
        root.append(
          line("rule", x(0), y(t), x(1), y(t)),
          line("rule", x(t), y(1), x(t), y(0)),
          text(`${100 * t} %`, x(0) - 8, y(t) + 4, "end"),
          text(`${100 * t} %`, x(t), y(0) + 18, "middle"),
        );
      }
      const test = part("test rows");
      const share = test.n_of_class / test.n;
      const guess = kind === "roc" ? [0, 1] : [share, share];
      root.append(line("kept", x(0), y(guess[0]), x(1), y(guess[1])));
      root.append(text(axes.across, x(1), y(0) + 38, "end"), text(axes.up, 4, 12));
      for (const rows of known()) {
        const { k, dash } = LOOKS[rows];
        const points = part(rows)[kind].map((p) => `${x(p[0])},${y(p[1])}`).join(" ");
        const curve = svg("polyline", {
          class: "curve", points, stroke: colour(k), "stroke-dasharray": dash, "data-line": rows,
        });
        tip.on(curve, () => `${rows}\narea ${percent(area(rows))}`);
        root.append(curve);
      }
      const marks = svg("g", {});
      root.append(marks);
      frame = { x, y, marks };
      mark();
      return root;
    };
    const area = (rows) => part(rows)[kind === "roc" ? "auc" : "average_precision"];
    let width = 0;
    Draw.responsive(plot, (now) => {
      width = now;
      return draw(now);
    });
    const redraw = () => {
      keys.replaceChildren(...known().map((rows) => html(
        "li", {}, Draw.lineSwatch(colour(LOOKS[rows].k), LOOKS[rows].dash),
        `${rows} `, html("b", {}, percent(area(rows))),
      )));
      if (width) plot.replaceChildren(draw(width));
    };
    return { mark, redraw };
  });

  const named = (label) => {
    const name = data.names[label];
    return html("bdi", { class: "name" }, name.trim() ? name : "(empty)");
  };
  const show = () => {
    const threshold = String(data.thresholds[state.at]);
    const test = measure(part("test rows"), state.at);
    const said = `recall ${percent(test.recall)}, precision ${percent(test.precision)}`;
    slider.setAttribute("aria-valuetext", `${threshold}, ${said}`);
    get("threshold-now").replaceChildren(`Threshold ${threshold} `, html("small", {}, `${said} on test rows`));
    for (const cell of all("[data-at]")) {
      const rows = cell.dataset.rows;
      const of = part(rows === "guess" ? "test rows" : rows);
      const value = of ? measure(of, state.at, rows === "guess")[cell.dataset.at] : null;
      cell.textContent = (cell.dataset.at === "cost" ? significant : percent)(value);
      cell.dataset.value = value ?? "";
    }
    for (const cell of all("[data-cell]")) cell.textContent = test.cells[cell.dataset.cell];
    for (const place of all('[data-now="threshold"]')) place.textContent = threshold;
    for (const curve of curves) curve.mark();
  };
  const choose = (label) => {
    state.positive = label;
    const two = data.names.length === 2;
    for (const place of all('[data-now="class"]')) place.replaceChildren(named(label));
    for (const place of all('[data-now="other"]')) {
      place.replaceChildren(two ? named(1 - label) : "others");
    }
    for (const curve of curves) curve.redraw();
    show();
  };

  slider.addEventListener("input", () => {
    state.at = Number(slider.value);
    show();
  });
  select.addEventListener("change", () => choose(Number(select.value)));
  for (const button of all("[data-best]")) {
    button.addEventListener("click", () => {
      const of = part(chooseBy) || part("test rows");
      const sign = button.dataset.best === "cost" ? -1 : 1;
      const values = data.thresholds.map((_, k) => sign * measure(of, k)[button.dataset.best]);
      // In the middle of the best ones: they are a stretch where no row is.
      const best = Math.max(...values);
      const first = values.findIndex((v) => v === best);
      const end = values.findIndex((v, k) => k > first && v !== best);
      state.at = Math.floor((first + (end < 0 ? values.length : end) - 1) / 2);
      slider.value = state.at;
      show();
    });
  }
  get("decide").hidden = false;
  choose(state.positive);
})();
