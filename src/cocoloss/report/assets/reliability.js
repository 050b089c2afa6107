"use strict";
// Reliability: how often the predicted class is right, by its probability. Bins on the diagonal
// are honest.

const Reliability = (() => {
  const { html, svg, line, text, chart, colour, percent, shareInterval, tip } = Draw;
  const LEFT = 46;
  const TOP = 10;
  const BARS = 64; // height of the histogram below
  const LARGEST = 330;

  const drawFrame = (root, x, y) => {
    for (const t of [0, 0.25, 0.5, 0.75, 1]) {
      root.append(
        line("rule", x(0), y(t), x(1), y(t)),
        line("rule", x(t), y(1), x(t), y(0)),
        text(`${100 * t} %`, x(0) - 8, y(t) + 4, "end"),
        text(`${100 * t} %`, x(t), y(0) + BARS + 28, "middle"),
      );
    }
    root.append(line("kept", x(0), y(0), x(1), y(1)));
    root.append(text("share correct", x(0) + 8, y(1) + 14));
    root.append(text("probability of the predicted class", x(1), y(0) + BARS + 50, "end"));
  };

  const drawCounts = (root, curve, x, floor) => {
    const most = Math.max(...curve.counts, 1);
    curve.counts.forEach((count, b) => {
      if (!count) return;
      const [from, to] = [x(curve.edges[b]), x(curve.edges[b + 1])];
      const tall = Math.max(1.5, (BARS - 18) * (count / most));
      const size = { width: Math.max(1, to - from - 2), height: tall };
      root.append(svg("rect", { x: from + 1, y: floor - tall, ...size, rx: 2, class: "bar" }));
      root.append(text(String(count), (from + to) / 2, floor - tall - 4, "middle"));
    });
  };

  const drawCurve = (root, curve, x, y) => {
    const most = Math.max(...curve.counts, 1);
    const bins = [...curve.counts.keys()].filter((b) => curve.counts[b]);
    const places = bins.map((b) => `${x(curve.confidence[b])},${y(curve.accuracy[b])}`);
    const stroke = colour(curve.k);
    const look = { stroke, "stroke-dasharray": curve.dash, opacity: 0.5 };
    root.append(svg("polyline", { class: "curve", points: places.join(" "), ...look }));
    for (const b of bins) {
      const [sure, right, count] = [curve.confidence[b], curve.accuracy[b], curve.counts[b]];
      const [low, high] = shareInterval(right, count);
      if (!curve.dash) root.append(line("span", x(sure), y(low), x(sure), y(high), { stroke }));
      const dot = svg("circle", {
        class: "dot", cx: x(sure), cy: y(right), r: 4 + 4 * Math.sqrt(count / most),
        fill: stroke, "data-bin": b,
      });
      tip.on(dot, () =>
        `${count} rows\nmean probability ${percent(sure)}\ncorrect ${percent(right)}`);
      root.append(dot);
    }
  };

  const make = (host, { reliability: leading, as_answered: asAnswered }) => {
    const curves = [{ name: "at the class frequencies", k: 0, ...leading }];
    if (asAnswered) curves.push({ name: "as predicted", k: 1, dash: "5 4", ...asAnswered });
    if (curves.length > 1) {
      const keys = curves.map((c) => html("li", {}, Draw.lineSwatch(colour(c.k), c.dash), c.name));
      host.append(html("ul", { class: "keys" }, keys));
    }
    const plot = html("div", {});
    host.append(plot);
    Draw.responsive(plot, (width) => {
      const side = Math.min(width - LEFT - 16, LARGEST);
      const x = (p) => LEFT + side * p;
      const y = (p) => TOP + side * (1 - p);
      const label = "Share of correct predictions by predicted probability";
      const root = chart(width, TOP + side + BARS + 58, label);
      drawFrame(root, x, y);
      drawCounts(root, leading, x, y(0) + BARS + 10);
      for (const curve of curves) drawCurve(root, curve, x, y);
      return root;
    });
  };

  return { make };
})();
