"use strict";
// A confusion matrix of many classes as a picture; of few it is a table that is there already.

const Confusion = (() => {
  const { isolated, tip } = Draw;

  const make = (canvas, classes, rows, { cells, totals }) => {
    const C = classes.length;
    const counts = new Map(cells.map(([a, b, count]) => [a * C + b, count]));

    const draw = () => {
      const style = getComputedStyle(canvas);
      const paint = canvas.getContext("2d");
      const side = Math.max(2, Math.ceil(800 / C));
      canvas.width = C * side;
      canvas.height = C * side;
      paint.fillStyle = style.getPropertyValue("--faint");
      paint.fillRect(0, 0, canvas.width, canvas.height);
      for (const [a, b, count] of cells) {
        paint.globalAlpha = 0.25 + 0.75 * (count / totals[a]);
        paint.fillStyle = style.getPropertyValue(a === b ? "--good" : "--bad");
        paint.fillRect(b * side, a * side, side, side);
      }
    };

    tip.on(canvas, (event) => {
      const box = canvas.getBoundingClientRect();
      const spot = (share) => Math.max(0, Math.min(C - 1, Math.floor(share * C)));
      const a = spot((event.clientY - box.top) / box.height);
      const b = spot((event.clientX - box.left) / box.width);
      return [
        `true ${isolated(classes[a])}`,
        `predicted ${isolated(classes[b])}`,
        `${counts.get(a * C + b) || 0} of ${totals[a]} ${rows}`,
      ].join("\n");
    });
    draw();
    return { draw };
  };

  return { make };
})();
