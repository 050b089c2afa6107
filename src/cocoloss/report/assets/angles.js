"use strict";
// Angles between class means: a row for each class, or all pairs in a histogram if there are many.

const Angles = (() => {
  const { html, svg, line, text, chart, colour, degrees, isolated, shape, short, tip } = Draw;
  const HEAD = 22; // room for the target's name
  const FOOT = 40;

  const drawScale = (root, low, high, x, bottom, width) => {
    for (const t of Draw.ticks(low, high, Math.max(4, Math.floor(width / 110)))) {
      root.append(line("rule", x(t), HEAD, x(t), bottom));
      root.append(text(`${Draw.tickText(t)}°`, x(t), bottom + 18, "middle"));
    }
  };
  const drawTarget = (root, angle, x, bottom, width) => {
    if (angle === null) return;
    const right = x(angle) > width - 100;
    root.append(line("cursor", x(angle), HEAD - 4, x(angle), bottom));
    const place = [x(angle) + (right ? 4 : 6), HEAD - 8, right ? "end" : "start"];
    root.append(text(`target ${degrees(angle)}`, ...place));
  };

  const makeRows = (host, data) => {
    const { classes, angles, target_angles: targets, common_angle: common } = data;
    const C = classes.length;
    const longest = Math.max(...classes.map((name) => Array.from(name).length));
    const found = angles.flat(2).filter((v) => v !== null);
    const ends = [...found, ...(targets || []).flat().filter((v) => v !== null)];
    const low = Math.max(0, Math.floor((Math.min(...ends) - 4) / 10) * 10);
    const high = Math.min(180, Math.ceil((Math.max(...ends) + 4) / 10) * 10);
    const plot = html("div", {});
    host.append(plot);
    let index = data.kept;
    let place = () => {};

    Draw.responsive(plot, (width) => {
      const names = Math.min(170, width * 0.3, 26 + 8 * longest);
      const step = C > 14 ? 22 : 28;
      const bottom = HEAD + C * step;
      const x = (v) => names + ((width - names - 16) * (v - low)) / (high - low);
      const root = chart(width, bottom + FOOT, "Angles from each class mean to the others");
      drawScale(root, low, high, x, bottom, width);
      drawTarget(root, common, x, bottom, width);
      const marks = [];
      classes.forEach((name, a) => {
        const middle = HEAD + step * (a + 0.5);
        const most = Math.max(4, Math.floor((names - 18) / 8));
        const label = text(short(name, most), names - 12, middle + 4, "end");
        label.append(svg("title", {}, name));
        root.append(label, line("rule", names, middle, width - 16, middle));
        for (const b of classes.keys()) {
          if (a === b) continue;
          if (targets && common === null) {
            const t = x(targets[a][b]);
            root.append(line("wanted", t, middle - 9, t, middle + 9, { stroke: colour(b) }));
          }
          const mark = svg("path", {
            class: "dot", d: shape(b, 4.6), fill: colour(b), "data-pair": `${a},${b}`,
          });
          tip.on(mark, () => [
            `${isolated(name)} and ${isolated(classes[b])}`,
            degrees(angles[index][a][b]),
            targets ? `target ${degrees(targets[a][b])}` : "",
          ].join("\n"));
          marks.push([mark, a, b, middle]);
          root.append(mark);
        }
      });
      place = () => {
        for (const [mark, a, b, middle] of marks) {
          const v = angles[index][a][b];
          mark.setAttribute("visibility", v === null ? "hidden" : "visible");
          mark.setAttribute("transform", `translate(${x(v ?? low).toFixed(1)},${middle})`);
        }
      };
      place();
      return root;
    });
    return { at(i) { index = i; place(); } };
  };

  const makeHistogram = (host, data) => {
    const BINS = 60;
    const counts = new Array(BINS).fill(0);
    data.angles[0].forEach((row, a) => row.slice(0, a).forEach((v) => {
      if (v !== null) counts[Math.min(BINS - 1, Math.floor((v / 180) * BINS))] += 1;
    }));
    const most = Math.max(...counts, 1);
    const plot = html("div", {});
    host.append(plot);
    Draw.responsive(plot, (width) => {
      const [left, bottom] = [46, 220];
      const x = (v) => left + ((width - left - 16) * v) / 180;
      const y = (count) => bottom - ((bottom - HEAD) * count) / most;
      const root = chart(width, bottom + FOOT, "Angles between all pairs of class means");
      drawScale(root, 0, 180, x, bottom, width);
      for (const t of Draw.ticks(0, most, 4)) {
        root.append(line("rule", left, y(t), width - 16, y(t)));
        root.append(text(Draw.tickText(t), left - 8, y(t) + 4, "end"));
      }
      counts.forEach((count, b) => {
        const from = x((180 * b) / BINS) + 0.5;
        const size = { width: Math.max(1, x(180 / BINS) - x(0) - 1), height: bottom - y(count) };
        const bar = svg("rect", { x: from, y: y(count), ...size, fill: colour(0) });
        const range = `${(180 * b) / BINS}° to ${(180 * (b + 1)) / BINS}°`;
        tip.on(bar, () => `${count} pairs of classes\n${range}`);
        root.append(bar);
      });
      drawTarget(root, data.common_angle, x, bottom, width);
      return root;
    });
    return { at() {} };
  };

  return { make: (host, data) => (data.angles_by_rows ? makeRows : makeHistogram)(host, data) };
})();
