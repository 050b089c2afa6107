"use strict";
// Why a row gets its prediction: from that of made-up rows to its own, column by column.

(() => {
  const { svg, line, text, chart, colour, short, tip, responsive } = Draw;
  const data = JSON.parse(document.getElementById("data").textContent);

  const [TOP, STEP, BAR, SIDE, INSET] = [30, 36, 10, 2, 10]; // pixels

  const draw = (row, width) => {
    const height = TOP + STEP * row.parts.length + 26;
    const ends = row.parts.reduce((sums, part) => [...sums, sums[sums.length - 1] + part.added],
      [row.base]);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const x = (v) => SIDE + ((width - 2 * SIDE) * (v - low)) / (high - low || 1);
    const middle = (v) => (x(v) > width / 2 ? "end" : "start");
    const root = chart(width, height, `Contributions of the columns: from ${row.base_text} to ${row.value_text}`);
    const bottom = TOP + STEP * row.parts.length + 4;
    root.append(line("kept", x(row.base), TOP - 12, x(row.base), bottom));
    root.append(text(`base value ${row.base_text}`, x(row.base), TOP - 16, middle(row.base)));
    row.parts.forEach((part, k) => {
      const [from, to] = [ends[k], ends[k + 1]];
      const y = TOP + STEP * k;
      const label = part.cell ? `${short(part.column, 24)} = ${short(part.cell, 18)}` : short(part.column, 30);
      const rise = part.added >= 0;
      const bar = svg("rect", {
        x: Math.min(x(from), x(to)), y: y + 16, rx: 2, height: BAR,
        width: Math.max(1.5, Math.abs(x(to) - x(from))), fill: colour(rise ? 0 : 1),
      });
      tip.on(bar, () => `${part.column}${part.cell ? ` = ${part.cell}` : ""}\n${part.text}`);
      root.append(
        text(label, INSET, y + 10),
        text(part.text, width - INSET, y + 10, "end"),
        line("rule", SIDE, y + 16 + BAR / 2, width - SIDE, y + 16 + BAR / 2),
        bar,
      );
    });
    const last = ends[ends.length - 1];
    root.append(text(`prediction ${row.value_text}`, x(last), bottom + 16, middle(last)));
    root.append(line("kept", x(last), bottom - STEP + 12, x(last), bottom + 3));
    return root;
  };

  for (const host of document.querySelectorAll("[data-why]")) {
    responsive(host, (width) => draw(data.why[Number(host.dataset.why)], width));
  }
})();
