"use strict";
// The embedding at one epoch or ridge: points on a canvas; sphere, target, class means, names above it.

const Embedding = (() => {
  const { svg, line, text, colour, shape, short, isolated, tip } = Draw;
  const FEW = 12; // up to so many classes are named in the picture, and joined in the target
  const NEAR = 14; // pixels within which a point is meant
  const SMALL = 480; // pixels: a small screen
  const NOTHING = -32768; // a coordinate that is not a number
  const STEEPEST = 1.5; // radians
  const DEPTH = 0.28; // how much larger what is near is drawn

  const int16 = (words) => {
    const bytes = Uint8Array.from(atob(words), (c) => c.charCodeAt(0));
    return new Int16Array(bytes.buffer);
  };

  // A cheap hash: rows on a line are spread sideways, always in the same way.
  const jitter = (i) => ((Math.imul(i + 1, 2654435761) >>> 8) & 0xffff) / 0xffff - 0.5;

  const make = (host, data) => {
    const { view, classes, labels, tests, predicted } = data;
    const [C, n, d] = [classes.length, labels.length, view.dims];
    const onLine = view.kind === "line";
    const [points, means] = [int16(view.points), int16(view.means)];
    const [canvas, overlay] = [host.querySelector("canvas"), host.querySelector("svg")];
    const paint = canvas.getContext("2d");
    const rows = Array.from({ length: n }, (_, i) => ({ i, x: NaN, y: NaN, z: 0 }));
    const state = {
      at: data.kept, // a snapshot, or between two of them while the movie plays
      shown: new Set(classes.keys()),
      lit: null, // the class that is pointed at in the legend
      train: true,
      test: true,
      target: true,
      wide: false, // whether the whole sphere is to be seen
      solid: false, // whether three dimensions are
      yaw: 0.5,
      pitch: 0.35,
    };
    let [width, height, queued] = [0, 0, false];

    // From coordinates of the embedding to pixels, and a depth.
    const extent = () =>
      (state.wide && view.radius ? Math.max(view.extent, 1.12 * view.radius) : view.extent);
    const pixels = () => (onLine ? width : Math.min(width, height)) / 2 / extent();
    const project = ([x, y = 0, z = 0]) => {
      if (state.solid) {
        const [c, s] = [Math.cos(state.yaw), Math.sin(state.yaw)];
        const [p, q] = [Math.cos(state.pitch), Math.sin(state.pitch)];
        [x, z] = [c * x + s * z, c * z - s * x];
        [y, z] = [p * y - q * z, p * z + q * y];
      } else z = 0;
      return [width / 2 + x * pixels(), height / 2 - y * pixels(), z / extent()];
    };

    // Where row i of (snapshots, count, d) is now, or null.
    const locate = (array, count, i) => {
      const s = Math.floor(state.at);
      const t = state.at - s;
      const place = [];
      for (let k = 0; k < d; k += 1) {
        const a = array[(s * count + i) * d + k];
        const b = t ? array[((s + 1) * count + i) * d + k] : a;
        if (a === NOTHING || b === NOTHING) return null;
        place.push((a + t * (b - a)) * view.scale);
      }
      return place;
    };

    const visible = (i) => state.shown.has(labels[i]) && (tests[i] ? state.test : state.train);

    const placeRows = () => {
      for (const row of rows) {
        const place = locate(points, n, row.i);
        if (place && onLine) place.push(0.45 * extent() * jitter(row.i));
        [row.x, row.y, row.z] = place ? project(place) : [NaN, NaN, 0];
      }
      // Training rows first; in three dimensions, what is far first.
      rows.sort((a, b) => tests[a.i] - tests[b.i] || a.z - b.z || a.i - b.i);
    };

    const drawRows = () => {
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      const style = getComputedStyle(host);
      const look = (name) => style.getPropertyValue(name).trim();
      const inks = Array.from({ length: Draw.N_COLOURS }, (_, k) => look(`--c${k}`));
      const [surface, ink] = [look("--surface"), look("--ink")];
      const radius = width < SMALL ? 2.1 : 2.7;
      const forms = [1, 1.45].map((m) => classes.map((_, c) => new Path2D(shape(c, m * radius))));
      for (const { i, x, y, z } of rows) {
        if (!visible(i) || !Number.isFinite(x)) continue;
        const c = labels[i];
        const size = ratio * (state.solid ? 1 + DEPTH * z : 1);
        const form = forms[tests[i]][c];
        paint.setTransform(size, 0, 0, size, x * ratio, y * ratio);
        paint.globalAlpha = state.lit !== null && state.lit !== c ? 0.08 : tests[i] ? 0.95 : 0.5;
        if (tests[i]) {
          const right = predicted[i] === c;
          paint.lineWidth = right ? 1.6 : 3.4;
          paint.strokeStyle = right ? surface : ink;
          paint.stroke(form);
        }
        paint.fillStyle = inks[c % inks.length];
        paint.fill(form);
      }
    };

    const drawGrid = () => {
      if (state.solid) return [];
      return Draw.ticks(-extent(), extent(), 6).flatMap((t) => {
        const [x, y] = project([t, t]);
        const inside = x > 14 && x < width - 14;
        return [
          line("grid-line", x, 0, x, height),
          onLine ? null : line("grid-line", 0, y, width, y),
          inside ? text(Draw.tickText(t), x, height - 6, "middle") : null,
        ];
      });
    };

    // The unit sphere: two marks on a line, a circle, and in three dimensions three great circles.
    const drawSphere = () => {
      if (!view.radius) return [];
      const [x, y, r] = [width / 2, height / 2, view.radius * pixels()];
      if (onLine) return [-r, r].map((side) => line("sphere", x + side, 0, x + side, height));
      const parts = [svg("circle", { class: "sphere", cx: x, cy: y, r })];
      for (const [a, b] of state.solid ? [[0, 1], [0, 2], [1, 2]] : []) {
        const ring = Array.from({ length: 73 }, (_, k) => {
          const place = [0, 0, 0];
          place[a] = view.radius * Math.cos((k * Math.PI) / 36);
          place[b] = view.radius * Math.sin((k * Math.PI) / 36);
          return project(place).slice(0, 2).map((v) => v.toFixed(1)).join(",");
        });
        parts.push(svg("polyline", { class: "grid-line", fill: "none", points: ring.join(" ") }));
      }
      return parts;
    };

    const mark = (kind, c, [x, y], look) => svg("path", {
      class: kind,
      "data-class": c,
      transform: `translate(${x.toFixed(2)},${y.toFixed(2)})`,
      ...look,
    });

    const drawTarget = (corners, centres) => {
      const r = C > FEW ? 6 : 10;
      const diamond = `M0,${-r}L${r},0L0,${r}L${-r},0Z`;
      const seen = [...classes.keys()].filter((c) => state.shown.has(c));
      const edges = C > FEW ? [] : seen.flatMap((a) => seen.filter((b) => b < a)
        .map((b) => line("edge", ...corners[a].slice(0, 2), ...corners[b].slice(0, 2))));
      const gaps = seen.filter((c) => centres[c])
        .map((c) => line("edge short", ...corners[c].slice(0, 2), ...centres[c].slice(0, 2)));
      const look = (c) => ({ d: diamond, stroke: colour(c) });
      const marks = seen.map((c) => mark("vertex", c, corners[c], look(c)));
      return [...edges, ...gaps, ...marks];
    };

    // Names stand outside of the ring of classes, and inside of the picture: where there is no room
    // beside a class, above or below it.
    const drawName = (c, [x, y]) => {
      const [dx, dy] = [x - width / 2, y - height / 2];
      const away = Math.hypot(dx, dy) || 1;
      const step = (width < SMALL ? 20 : 30) / away;
      const middle = onLine || Math.abs(dx) < 0.35 * away;
      const anchor = middle ? "middle" : dx < 0 ? "end" : "start";
      paint.font = `600 13px ${getComputedStyle(host).fontFamily}`;
      const long = paint.measureText(short(classes[c])).width + 6;
      const room = { start: [4, long], middle: [long / 2, long / 2], end: [long, 4] }[anchor];
      const wanted = x + dx * step;
      const left = Math.max(room[0], Math.min(width - room[1], wanted));
      let top = y + dy * step + 4;
      if (Math.abs(left - wanted) > 4) top = dy < 0 ? Math.min(top, y - 16) : Math.max(top, y + 24);
      if (onLine) top = 16;
      else if (top > height - 20) top = y - 15;
      else if (top < 14) top = y + 24;
      return text(short(classes[c]), left.toFixed(1), top.toFixed(1), anchor, { class: "label" });
    };

    const draw = () => {
      queued = false;
      if (!width) return;
      const flat = (place) => place && project(place);
      const centres = [...classes.keys()].map((c) => flat(locate(means, C, c)));
      const corners = view.target && state.target ? view.target.map(flat) : null;
      const drawn = [...classes.keys()].filter((c) => state.shown.has(c) && centres[c]);
      const named = [...classes.keys()].filter((c) => state.shown.has(c))
        .filter((c) => (corners || centres)[c] && (C <= FEW || state.lit === c));
      placeRows();
      drawRows();
      overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
      overlay.dataset.extent = extent();
      overlay.replaceChildren(
        ...drawGrid().filter(Boolean),
        ...drawSphere(),
        ...(corners ? drawTarget(corners, centres) : []),
        ...drawn.map((c) => mark("mean", c, centres[c], { d: shape(c, 6.5), fill: colour(c) })),
        ...named.map((c) => drawName(c, (corners || centres)[c])),
      );
    };
    const redraw = () => {
      if (queued) return;
      queued = true;
      requestAnimationFrame(draw);
    };

    const tell = (event) => {
      const box = canvas.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let [best, distance] = [null, NEAR];
      for (const row of rows) {
        const away = Math.hypot(row.x - x, row.y - y);
        if (visible(row.i) && away <= distance) [best, distance] = [row.i, away];
      }
      if (best === null) {
        tip.hide();
        return;
      }
      const right = predicted[best] === labels[best];
      const said = right ? "right" : isolated(classes[predicted[best]] ?? "");
      const rest = tests[best] ? `test row\npredicted ${said}` : "training row";
      tip.show(`class ${isolated(classes[labels[best]])}\n${rest}`, event);
    };

    const turn = (yaw, pitch) => {
      state.yaw += yaw;
      state.pitch = Math.max(-STEEPEST, Math.min(STEEPEST, state.pitch + pitch));
      redraw();
    };
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      tell(event);
      if (!state.solid) return;
      held = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) {
        tell(event);
        return;
      }
      tip.hide();
      turn((event.clientX - held[0]) * 0.01, (event.clientY - held[1]) * 0.01);
      held = [event.clientX, event.clientY];
    });
    for (const end of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(end, () => { held = null; });
    }
    canvas.addEventListener("pointerleave", tip.hide);
    canvas.addEventListener("keydown", (event) => {
      const across = { ArrowLeft: -0.1, ArrowRight: 0.1 }[event.key] || 0;
      const down = { ArrowUp: -0.1, ArrowDown: 0.1 }[event.key] || 0;
      if (!state.solid || !(across || down)) return;
      event.preventDefault();
      turn(across, down);
    });
    new ResizeObserver(() => {
      [width, height] = [host.clientWidth, host.clientHeight];
      redraw();
    }).observe(host);

    const set = (changes) => {
      Object.assign(state, changes);
      host.dataset.turning = state.solid;
      canvas.tabIndex = state.solid ? 0 : -1;
      redraw();
    };
    return { state, set, draw, redraw };
  };

  return { make };
})();
