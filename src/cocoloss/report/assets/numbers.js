"use strict";
// The run report of numbers: predictions against the truth, residuals, and intervals.

(() => {
  const { svg, line, text, chart, colour, percent, shareInterval, ticks, tip } = Draw;
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const amount = (v) => v.toLocaleString("en-US", Math.abs(v) >= 1000
    ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 });
  const tickText = (v) => v.toLocaleString("en-US", { maximumSignificantDigits: 6 });

  const TOP = 22; // below what the axis is called

  // From values to pixels, with a little room at both ends.
  const scale = (values, from, to) => {
    let [low, high] = [Math.min(...values), Math.max(...values)];
    const room = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
    [low, high] = [low - room, high + room];
    const at = (v) => from + ((to - from) * (v - low)) / (high - low);
    return { at, low, high };
  };

  // spec: label, across and up (what the axes are called), points [{x, y, low, high, out, words}],
  // rule (a function of x that is drawn as a line).
  const scatter = (host, spec) => Draw.responsive(host, (width) => {
    const height = Math.round(Math.max(220, Math.min(360, width * 0.72)));
    const ups = spec.points.flatMap((p) => [p.y, p.low ?? p.y, p.high ?? p.y]);
    const bottom = height - 40;
    const y = scale(ups, bottom, TOP);
    const levels = ticks(y.low, y.high, 5);
    const left = 12 + 7 * Math.max(...levels.map((t) => tickText(t).length));
    const x = scale(spec.points.map((p) => p.x), left, width - 8);
    const root = chart(width, height, spec.label);
    for (const t of levels) {
      root.append(line("rule", left, y.at(t), width - 8, y.at(t)));
      root.append(text(tickText(t), left - 8, y.at(t) + 4, "end"));
    }
    for (const t of ticks(x.low, x.high, Math.max(3, Math.floor((width - left) / 110)))) {
      root.append(line("rule", x.at(t), TOP, x.at(t), bottom));
      root.append(text(tickText(t), x.at(t), bottom + 17, "middle"));
    }
    root.append(text(spec.up, left, 12), text(spec.across, width - 8, bottom + 34, "end"));
    const within = (v) => Math.max(y.low, Math.min(y.high, v));
    const [from, to] = spec.rule === "diagonal"
      ? [Math.max(x.low, y.low), Math.min(x.high, y.high)] : [x.low, x.high];
    const ruled = spec.rule === "diagonal" ? (v) => v : () => 0;
    root.append(line("kept", x.at(from), y.at(within(ruled(from))), x.at(to), y.at(within(ruled(to)))));
    for (const p of spec.points) {
      if (p.low === undefined) continue;
      root.append(line("span", x.at(p.x), y.at(p.low), x.at(p.x), y.at(p.high), {
        stroke: colour(p.out ? 1 : 0), opacity: p.out ? 0.5 : 0.18,
      }));
    }
    for (const p of spec.points) {
      const look = { fill: colour(p.out ? 1 : 0), opacity: p.out ? 0.95 : 0.6 };
      const dot = svg("circle", { cx: x.at(p.x), cy: y.at(p.y), r: 3.2, ...look });
      tip.on(dot, () => p.words);
      root.append(dot);
    }
    return root;
  });

  for (const [rows, points] of Object.entries(data.judged)) {
    const known = points.map(([truth, predicted, low, high]) => {
      const out = low !== undefined && (truth < low || truth > high);
      const words = [`true ${amount(truth)}`, `predicted ${amount(predicted)}`];
      if (low !== undefined) words.push(`90 % interval ${amount(low)} to ${amount(high)}`);
      return { truth, predicted, low, high, out, words: words.join("\n") };
    });
    for (const host of all(`[data-points="${rows}"]`)) {
      scatter(host, {
        label: `Predicted against true numbers of ${rows}`,
        across: "true",
        up: "predicted",
        rule: "diagonal",
        points: known.map((p) => ({ ...p, x: p.truth, y: p.predicted })),
      });
    }
    for (const host of all(`[data-residuals="${rows}"]`)) {
      scatter(host, {
        label: `Residuals of ${rows}`,
        across: "predicted",
        up: "true minus predicted",
        rule: "zero",
        points: known.map(({ truth, predicted, out, words }) => (
          { x: predicted, y: truth - predicted, out, words })),
      });
    }
  }

  Draw.responsive(document.getElementById("chart-coverage"), (width) => {
    const [left, top, height] = [46, 14, 240];
    const bottom = height - 40;
    const y = (share) => bottom - (bottom - top) * share;
    const step = (width - left - 8) / data.covered.length;
    const root = chart(width, height, "Share of test rows within their intervals, by width");
    for (const t of [0, 0.25, 0.5, 0.75, 1]) {
      root.append(line("rule", left, y(t), width - 8, y(t)));
      root.append(text(`${100 * t} %`, left - 8, y(t) + 4, "end"));
    }
    root.append(line("kept", left, y(data.asked), width - 8, y(data.asked)));
    data.covered.forEach((group, k) => {
      const x = left + step * (k + 0.5);
      const [low, high] = shareInterval(group.share, group.count);
      const dot = svg("circle", { class: "dot", cx: x, cy: y(group.share), r: 6, fill: colour(0) });
      tip.on(dot, () => [
        `${group.count} rows, ${percent(group.share)} within`,
        `widths ${amount(group.narrowest)} to ${amount(group.widest)}`,
      ].join("\n"));
      root.append(line("span", x, y(low), x, y(high), { stroke: colour(0) }), dot);
    });
    root.append(text(`narrow, ${amount(data.covered[0].narrowest)}`, left, bottom + 20));
    const widest = data.covered[data.covered.length - 1].widest;
    root.append(text(`wide, ${amount(widest)}`, width - 8, bottom + 20, "end"));
    return root;
  });
})();
