"use strict";
// What every page draws with: elements, numbers, ticks, markers, a tooltip.
// Written by hand: a plotting library would add megabytes to each page and not follow its colours.

const Draw = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const MISSING = "–";
  const N_COLOURS = 10;

  const fill = (node, attributes, children) => {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === undefined || value === false) continue;
      node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return node;
  };
  const html = (tag, attributes, ...children) =>
    fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    fill(document.createElementNS(SVG, tag), attributes, children);
  const line = (kind, x1, y1, x2, y2, more) =>
    svg("line", { class: kind, x1, y1, x2, y2, ...more });
  const text = (words, x, y, anchor = "start", more = {}) =>
    svg("text", { x, y, "text-anchor": anchor, ...more }, words);
  const chart = (width, height, label) => svg("svg", {
    class: "chart", viewBox: `0 0 ${width} ${height}`, width, height,
    role: "img", "aria-label": label,
  });

  // A stranger's name inside other text: isolated, so that its direction moves nothing else.
  const isolated = (name) => `\u2068${name.trim() ? name : "(empty)"}\u2069`;
  const short = (name, most = 16) => {
    const letters = Array.from(name);
    return isolated(letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : name);
  };

  // Numbers are written as text.py writes them.
  const isNumber = (x) => x !== null && x !== undefined && Number.isFinite(x);
  const raised = (n) => [...String(n)].map((c) => (c === "-" ? "⁻" : DIGITS[Number(c)])).join("");
  const significant = (x) => {
    if (x === Infinity) return "∞";
    if (!isNumber(x)) return MISSING;
    if (x === 0) return "0";
    const size = Math.abs(x);
    if (size >= 1e5 || size < 1e-3) {
      const [digits, exponent] = x.toExponential(1).split("e");
      return `${digits}×10${raised(Number(exponent))}`;
    }
    return size >= 999.5 ? String(Math.round(x)) : x.toPrecision(3);
  };
  const percent = (x) => (isNumber(x) ? `${(100 * x).toFixed(1)}\u202f%` : MISSING);
  const degrees = (x) => (isNumber(x) ? `${x.toFixed(1)}°` : MISSING);

  // Where the true share is, in 19 of 20 cases (Wilson).
  const shareInterval = (share, n) => {
    const z2 = 1.96 ** 2;
    const middle = (share + z2 / (2 * n)) / (1 + z2 / n);
    const half = Math.sqrt(z2 * ((share * (1 - share)) / n + z2 / (4 * n * n))) / (1 + z2 / n);
    return [Math.max(0, middle - half), Math.min(1, middle + half)];
  };

  const ticks = (low, high, wanted = 5) => {
    const raw = (high - low) / Math.max(1, wanted);
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) {
      found.push(Number((k * step).toPrecision(12)));
    }
    return found;
  };
  const tickText = (x) => {
    const size = Math.abs(x);
    const plain = x === 0 || (size >= 1e-3 && size < 1e5);
    return plain ? String(Number(x.toPrecision(4))) : significant(x);
  };
  // Powers of ten, or finer steps if there are few of them.
  const logTicks = (low, high) => {
    const from = Math.ceil(Math.log10(low) - 1e-9);
    const to = Math.floor(Math.log10(high) + 1e-9);
    const every = Math.max(1, Math.ceil((to - from) / 5));
    const powers = [];
    for (let k = from; k <= to; k += every) powers.push(k);
    if (powers.length > 2) {
      const plain = from >= -2 && to <= 3;
      return powers.map((k) => [10 ** k, plain ? tickText(10 ** k) : `10${raised(k)}`]);
    }
    const finer = [];
    for (let k = from - 1; k <= to; k += 1) finer.push(...[1, 2, 5].map((m) => m * 10 ** k));
    return finer.filter((x) => x >= low && x <= high).map((x) => [x, tickText(x)]);
  };

  // Classes are told apart by colour, and beyond ten by shape, too.
  const polygon = (corners) =>
    `M${corners.map(([x, y]) => `${x.toFixed(3)},${y.toFixed(3)}`).join("L")}Z`;
  const around = (n, radius, turn = 0) => Array.from({ length: n }, (_, i) => {
    const angle = (2 * Math.PI * i) / n - Math.PI / 2 + turn;
    return [radius(i) * Math.cos(angle), radius(i) * Math.sin(angle)];
  });
  const cross = (r, turn) => {
    const [a, b] = [1.25 * r, 0.45 * r];
    const arm = [[-b, -a], [b, -a], [b, -b]];
    return [0, 1, 2, 3].flatMap((k) => {
      const [c, s] = [Math.cos((k * Math.PI) / 2 + turn), Math.sin((k * Math.PI) / 2 + turn)];
      return arm.map(([x, y]) => [x * c - y * s, x * s + y * c]);
    });
  };
  const SHAPES = [
    (r) => `M${r},0A${r},${r} 0 1 1 ${-r},0A${r},${r} 0 1 1 ${r},0Z`,
    (r) => polygon(around(3, () => 1.3 * r)),
    (r) => polygon(around(4, () => 1.25 * r, Math.PI / 4)),
    (r) => polygon(around(4, () => 1.3 * r)),
    (r) => polygon(around(3, () => 1.3 * r, Math.PI)),
    (r) => polygon(around(10, (i) => (i % 2 ? 0.6 : 1.45) * r)),
    (r) => polygon(cross(r, 0)),
    (r) => polygon(cross(r, Math.PI / 4)),
  ];
  const colour = (k) => `var(--c${k % N_COLOURS})`;
  const shape = (k, radius) => SHAPES[Math.floor(k / N_COLOURS) % SHAPES.length](radius);
  const swatch = (k) => svg(
    "svg", { viewBox: "-7 -7 14 14", "aria-hidden": "true" },
    svg("path", { d: shape(k, 4.8), fill: colour(k) }),
  );
  const lineSwatch = (stroke, dash) => svg(
    "svg", { viewBox: "0 0 22 8", "aria-hidden": "true" },
    svg("path", { d: "M1,4H21", class: "curve", stroke, "stroke-dasharray": dash || null }),
  );

  const tip = (() => {
    const box = html("div", { class: "tip", hidden: true, role: "status" });
    document.body.append(box);
    const show = (words, event) => {
      box.textContent = words;
      box.hidden = false;
      const { width, height } = box.getBoundingClientRect();
      const { clientX: x, clientY: y } = event;
      const left = x + 14 + width > window.innerWidth ? x - width - 14 : x + 14;
      box.style.left = `${Math.max(4, left)}px`;
      box.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - height - 4))}px`;
    };
    const hide = () => { box.hidden = true; };
    // Tells about a node while the pointer is over it.
    const on = (node, words) => {
      for (const kind of ["pointermove", "pointerdown"]) {
        node.addEventListener(kind, (event) => show(words(event), event));
      }
      node.addEventListener("pointerleave", hide);
    };
    return { show, hide, on };
  })();

  // Draws at once, and again when the width of the host changes.
  const responsive = (host, draw) => {
    let width = 0;
    const look = () => {
      const now = Math.round(host.clientWidth);
      if (!now || now === width) return;
      width = now;
      host.replaceChildren(draw(width));
    };
    new ResizeObserver(look).observe(host);
    look();
  };

  return {
    html, svg, line, text, chart, isolated, short, significant, percent, degrees, shareInterval, ticks, tickText,
    logTicks, colour, shape, swatch, lineSwatch, tip, responsive, N_COLOURS,
  };
})();
