"use strict";
// Curves over epochs or ridges, with a cursor that can be dragged.

const Curves = (() => {
  const { html, svg, line, text, chart, significant, ticks, tickText, tip } = Draw;

  const path = (points, x, y) => {
    let drawn = "";
    let pen = "M";
    for (const [px, py] of points) {
      const v = py === null ? NaN : y(py);
      if (Number.isFinite(v)) drawn += `${pen}${x(px).toFixed(1)},${v.toFixed(1)}`;
      pen = Number.isFinite(v) ? "L" : "M";
    }
    return drawn;
  };

  // The scale of the values: {y, levels}, y from value to pixel, levels [value, text].
  const valueScale = (spec, values, box) => {
    let low = spec.low ?? Math.min(...values);
    let high = spec.high ?? Math.max(...values);
    if (!spec.log) {
      if (high - low < 1e-9) [low, high] = [low - 0.5, high + 0.5];
      const y = (v) => box.bottom - ((box.bottom - box.top) * (v - low)) / (high - low);
      return { y, levels: ticks(low, high, 4).map((t) => [t, (spec.tick || tickText)(t)]) };
    }
    low = Math.max(low, high * 1e-7);
    if (high / low < 4) [low, high] = [low / 2, high * 2];
    const unit = (box.bottom - box.top) / Math.log10(high / low);
    // Zero has no place on a logarithmic scale: it is drawn at the bottom.
    const y = (v) => box.bottom - unit * Math.log10(Math.max(v, low) / low);
    return { y, levels: Draw.logTicks(low, high) };
  };

  // The scale across: {x, ticks}. Epochs count from 0; ridges fall, on a logarithmic scale.
  const frameScale = ({ values, log }, box) => {
    const [first, last] = [values[0], values[values.length - 1]];
    const wanted = Math.max(2, Math.floor((box.right - box.left + 56) / 90));
    if (log) {
      const unit = (box.right - box.left) / Math.log10(first / last);
      return { x: (v) => box.left + unit * Math.log10(first / v), marks: Draw.logTicks(last, first) };
    }
    const end = Math.max(1, last);
    const marks = ticks(0, end, wanted).filter(Number.isInteger).map((t) => [t, tickText(t)]);
    return { x: (v) => box.left + ((box.right - box.left) * v) / end, marks };
  };

  // spec: label, series [{name, key, colour, dash, thin, points, at}], frames {word, values, log},
  // kept, pick, and if need be log, low, high, tick, format, rules [{y, name}]. Returns {at}, to set
  // the cursor.
  const make = (host, spec) => {
    const format = spec.format || significant;
    const values = spec.series.flatMap((s) => s.points.map((p) => p[1]))
      .filter((v) => v !== null && (!spec.log || v > 0));
    if (!values.length) values.push(1);
    const keys = spec.series.map((s) => {
      const value = html("b", { "data-key": s.key });
      const node = html("li", {}, Draw.lineSwatch(s.colour, s.dash), `${s.name} `, value);
      return { s, value, node };
    });
    const plot = html("div", {});
    host.append(html("ul", { class: "keys" }, keys.map((k) => k.node)), plot);
    const { word, values: frames } = spec.frames;
    const frameText = (index) => (spec.frames.log ? significant(frames[index]) : frames[index]);
    let current = spec.kept;
    let place = () => {};

    const listen = (root, x) => {
      const nearest = (event) => {
        const across = event.clientX - root.getBoundingClientRect().left;
        const away = (i) => Math.abs(x(frames[i]) - across);
        return frames.reduce((best, _, i) => (away(i) < away(best) ? i : best), 0);
      };
      tip.on(root, (event) => {
        const index = nearest(event);
        if (event.type === "pointerdown" || event.buttons) spec.pick(index);
        const lines = spec.series.map((s) => `${s.name}: ${format(s.at(index))}`);
        return [`${word} ${frameText(index)}`, ...lines].join("\n");
      });
    };

    Draw.responsive(plot, (width) => {
      const height = Math.round(Math.max(170, Math.min(240, width * 0.5)));
      const box = { left: 46, right: width - 10, top: 8, bottom: height - 34 };
      const { x, marks } = frameScale(spec.frames, box);
      const { y, levels } = valueScale(spec, values, box);
      const root = chart(width, height, spec.label);
      for (const [value, words] of levels) {
        root.append(line("rule", box.left, y(value), box.right, y(value)));
        root.append(text(words, box.left - 8, y(value) + 4, "end"));
      }
      root.append(line("axis", box.left, box.bottom, box.right, box.bottom));
      for (const [value, words] of marks) {
        root.append(text(words, x(value), box.bottom + 18, "middle"));
      }
      const across = spec.frames.log ? `${word} (log scale)` : word;
      root.append(text(across, box.right, box.bottom + 32, "end"));
      if (spec.log) root.append(text("vertical: log scale", 0, box.bottom + 32));
      for (const rule of spec.rules || []) {
        root.append(line("kept", box.left, y(rule.y), box.right, y(rule.y)));
        const below = y(rule.y) + 18 < box.bottom; // where the curves seldom are
        root.append(text(rule.name, box.right, y(rule.y) + (below ? 13 : -5), "end"));
      }
      const kept = x(frames[spec.kept]);
      root.append(line("kept", kept, box.top, kept, box.bottom));
      for (const s of spec.series) {
        const look = { stroke: s.colour, "stroke-dasharray": s.dash };
        const thin = s.thin ? { "stroke-width": 1.2, opacity: 0.7 } : {};
        root.append(svg("path", { class: "curve", d: path(s.points, x, y), ...look, ...thin }));
      }
      const cursor = line("cursor", 0, box.top, 0, box.bottom);
      root.append(cursor);
      place = () => {
        cursor.setAttribute("x1", x(frames[current]));
        cursor.setAttribute("x2", x(frames[current]));
      };
      place();
      listen(root, x);
      return root;
    });

    const at = (index) => {
      current = index;
      for (const { s, value } of keys) {
        value.textContent = format(s.at(index));
        value.dataset.value = s.at(index) ?? "";
      }
      place();
    };
    return { at };
  };

  return { make };
})();
