"use strict";
// The run report: the movie with its slider, and what moves with the epoch or the ridge.

(() => {
  const { html, significant, percent, colour, swatch } = Draw;
  const data = JSON.parse(document.getElementById("data").textContent);
  const { frames, kept, measures, classes } = data; // a page without a movie has only the last
  const PER_SECOND = 7; // snapshots, when the movie plays
  const get = (id) => document.getElementById(id);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const painted = []; // have draw()

  const film = () => {
    const last = frames.values.length - 1;
    const view = Embedding.make(get("stage"), data);
    painted.push(view);
    const [slider, play, now] = [get("frame"), get("play"), get("now")];
    const followers = []; // have at(index)

    const epochAt = (index) => {
      const epoch = frames.values[index];
      const note = index === kept ? " · kept" : epoch === 0 ? " · before training" : "";
      return { name: `epoch ${epoch}`, rest: `of ${frames.values[last]}${note}` };
    };
    const ridgeAt = (index) => {
      const rest = { 0: "largest", [last]: "smallest", [kept]: "chosen" }[index] || "";
      return { name: `ridge ${significant(frames.values[index])}`, rest };
    };
    const show = (index) => {
      const { name, rest } = (frames.word === "ridge" ? ridgeAt : epochAt)(index);
      slider.value = index;
      slider.setAttribute("aria-valuetext", `${name} ${rest}`);
      const title = name[0].toUpperCase() + name.slice(1);
      now.replaceChildren(`${title} `, html("small", {}, rest));
      for (const cell of all("[data-measure]")) {
        const value = measures[cell.dataset.measure][index];
        const write = cell.dataset.measure.endsWith("accuracy") ? percent : significant;
        cell.textContent = write(value);
        cell.dataset.value = value ?? "";
      }
      for (const follower of followers) follower.at(index);
    };
    const go = (index) => {
      view.set({ at: index });
      show(index);
    };

    let playing = null;
    const setPlaying = (request) => {
      playing = request;
      play.textContent = request === null ? "▶ Play" : "❚❚ Pause";
      play.setAttribute("aria-pressed", request !== null);
    };
    const stop = () => {
      if (playing !== null) cancelAnimationFrame(playing);
      setPlaying(null);
    };
    const start = () => {
      const smooth = !matchMedia("(prefers-reduced-motion: reduce)").matches;
      let at = Number(slider.value) >= last ? 0 : Number(slider.value);
      let before = performance.now();
      const step = (time) => {
        at = Math.min(last, at + (Math.max(0, time - before) / 1000) * PER_SECOND);
        before = time;
        if (at >= last) {
          stop();
          go(last);
          return;
        }
        view.set({ at: smooth ? at : Math.floor(at) });
        if (Math.floor(at) !== Number(slider.value)) show(Math.floor(at));
        playing = requestAnimationFrame(step);
      };
      setPlaying(requestAnimationFrame(step));
    };
    const pick = (index) => {
      stop();
      go(index);
    };
    slider.addEventListener("input", () => pick(Number(slider.value)));
    play.addEventListener("click", () => {
      if (playing === null) start(); else pick(Number(slider.value));
    });

    for (const box of all("[data-option]")) {
      box.addEventListener("change", () => view.set({ [box.dataset.option]: box.checked }));
    }
    for (const button of all("[data-solid]")) {
      button.addEventListener("click", () => {
        view.set({ solid: button.dataset.solid === "true" });
        for (const other of all("[data-solid]")) other.setAttribute("aria-pressed", other === button);
      });
    }

    // The legend: a button for each class.
    const legend = get("legend");
    const longest = Math.max(...classes.map((name) => Array.from(name).length));
    legend.style.setProperty("--wide", `${Math.max(76, Math.min(210, 54 + 8 * longest))}px`);
    const buttons = classes.map((name, c) => {
      const label = html("bdi", { class: "name" }, name.trim() ? name : "(empty)");
      const mark = html("span", { class: "swatch" }, swatch(c));
      const about = { type: "button", title: name, "aria-pressed": "true", "data-class": c };
      const button = html("button", about, mark, label);
      button.addEventListener("click", () => toggle([c], !view.state.shown.has(c)));
      for (const on of ["pointerenter", "focus"]) {
        button.addEventListener(on, () => view.set({ lit: c }));
      }
      for (const off of ["pointerleave", "blur"]) {
        button.addEventListener(off, () => view.set({ lit: null }));
      }
      legend.append(html("li", {}, button));
      return button;
    });
    const toggle = (which, on) => {
      for (const c of which) {
        if (on) view.state.shown.add(c); else view.state.shown.delete(c);
        buttons[c].setAttribute("aria-pressed", on);
      }
      view.redraw();
    };
    get("show-all").addEventListener("click", () => toggle(classes.keys(), true));
    get("hide-all").addEventListener("click", () => toggle(classes.keys(), false));

    // Curves over the epochs or ridges.
    const series = (name, key, k, dash = null) => ({
      name,
      key,
      dash,
      colour: k === null ? "var(--ink)" : colour(k),
      points: frames.values.map((value, i) => [value, measures[key][i]]),
      at: (i) => measures[key][i],
    });
    const split = measures.loss.some((v) => v !== null);
    const batches = {
      name: "training batches",
      key: "batches",
      dash: split ? "2 3" : null,
      thin: split,
      colour: split ? "var(--muted)" : colour(0),
      points: data.loss_curve.map((v, i) => [i + 1, v]),
      at: (i) => data.loss_curve[frames.values[i] - 1] ?? null,
    };
    const model = {
      name: `${data.model.name}, test`,
      key: "together",
      dash: "1 4",
      colour: "var(--ink)",
      points: frames.values.map((value) => [value, data.model.balanced_accuracy]),
      at: () => data.model.balanced_accuracy,
    };
    const chart = (id, label, wanted, more) => {
      const known = wanted.filter((s) => s && s.points.some((p) => p[1] !== null));
      if (!known.length || !get(id)) return;
      const spec = { series: known, label: `${label} over the ${frames.word}s`, frames, kept, pick };
      followers.push(Curves.make(get(id), { ...spec, ...more }));
    };
    chart("chart-accuracy", "Balanced accuracy", [
      series("test", "test_balanced_accuracy", 1),
      series("leave-one-out", "left_out_balanced_accuracy", 2, "2 4"),
      series("training", "train_balanced_accuracy", 0, "6 4"),
      data.model.name ? model : null,
    ], {
      low: 0,
      high: 1,
      format: percent,
      tick: (t) => `${Math.round(100 * t)} %`,
      rules: [{ y: 1 / classes.length, name: "guessing" }],
    });
    chart("chart-left-out", "Leave-one-out log loss", [
      series("leave-one-out", "left_out_log_loss", 2),
    ], { log: true });
    chart("chart-error", "Squared distance from the vertices", [
      series("leave-one-out", "left_out_error", 2),
      series("training", "error", 0, "6 4"),
    ], { log: true });
    chart("chart-loss", "Loss and its parts", [
      series("all training rows", "loss", null),
      series("class means from the target", "nc2_part", 0),
      series("spread within classes", "nc1_part", 1, "7 4"),
      data.normalized ? null : series("norms", "norm_part", 2, "2 4"),
      batches,
    ], { log: true });
    chart("chart-dispersity", "Dispersity", [
      series("test", "test_dispersity", 1),
      series("leave-one-out", "left_out_dispersity", 2, "2 4"),
      series("training", "dispersity", 0, "6 4"),
    ], { log: true });
    chart("chart-collapse", "Neural collapse", [
      series("NC1 spread", "nc1", 1),
      classes.length > 2 ? series("NC2 shape", "nc2", 0, "7 4") : null, // two are always a simplex
      series("NC3 classifier", "nc3", 2, "2 4"),
      series("NC4 mismatch", "nc4", 3, "10 3 2 3"),
    ], { log: true });

    followers.push(Angles.make(get("chart-angles"), data));
    go(kept);
  };
  if (frames) film();
  for (const place of all("[data-swatch]")) place.append(swatch(Number(place.dataset.swatch)));

  // Test rows, and training rows by leave-one-out.
  for (const [rows, judged] of Object.entries(data.judged)) {
    for (const host of all(`[data-reliability="${rows}"]`)) Reliability.make(host, judged);
    for (const canvas of all(`[data-matrix="${rows}"]`)) {
      painted.push(Confusion.make(canvas, classes, rows, judged.confusion));
    }
  }

  // What is painted follows the colours of the page; paper is white.
  const repaint = () => painted.forEach((part) => part.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  window.addEventListener("beforeprint", () => {
    document.documentElement.dataset.printing = "";
    repaint();
  });
  window.addEventListener("afterprint", () => {
    delete document.documentElement.dataset.printing;
    repaint();
  });
})();
