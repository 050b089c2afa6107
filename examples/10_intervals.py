"""Intervals: how far a predicted number may be off, row by row.

    python examples/10_intervals.py --out intervals.png                 (about five seconds)

A number that is easy to predict on the left, hard on the right, and that nobody has measured in
between. ``predict_interval`` learns from residuals of rows that were left out how wide intervals
must be, and they grow where no row is near.

Beside it: intervals of one width for all rows, taken from the same residuals. Over all rows both
hold the truth about nine times of ten. But those of one width are too wide where it is easy and too
narrow where it is hard, which is where somebody needs them. Learnt widths are too narrow, too, just
beside the hole, where rows tell of one side only.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import NDArray

from _gallery import BLUE, FAINT, GREY, ORANGE, arguments, panels, save
from cocoloss import CoCoRegressor

HOLE = (5.0, 7.0)  # where nobody has measured
EDGES = np.array([0, 1.25, 2.5, 3.75, 5, 7, 8.5, 10])  # of groups of test rows
COVERAGE = 0.9


def draw_rows(generator: np.random.Generator, n: int) -> tuple[NDArray[np.float64], ...]:
    """Return places and numbers, whose noise grows from left to right."""
    x = generator.uniform(0, 10, 2 * n)
    x = x[(x < HOLE[0]) | (x > HOLE[1])][:n]
    return x[:, None], np.sin(x) + (0.05 + 0.06 * x) * generator.normal(size=len(x))


def covered(
    x: NDArray[np.float64], y: NDArray[np.float64], ends: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the share of rows within their intervals: of all, then group by group."""
    within = (ends[:, 0] <= y) & (y <= ends[:, 1])
    group = np.digitize(x[:, 0], EDGES[1:-1])
    shares = [within[group == g].mean() for g in range(len(EDGES) - 1) if (group == g).any()]
    return np.array([within.mean(), *shares])


def draw_band(
    axis: Axes, regressor: CoCoRegressor, x: NDArray[np.float64], y: NDArray[np.float64]
) -> None:
    """Draw rows, predictions and intervals."""
    grid = np.linspace(0, 10, 400)[:, None]
    low, high = regressor.predict_interval(grid, COVERAGE).T
    axis.fill_between(grid[:, 0], low, high, color=BLUE, alpha=0.18, linewidth=0)
    axis.plot(grid, regressor.predict(grid), color=BLUE)
    axis.scatter(x, y, s=6, color=GREY, linewidth=0)
    axis.text(np.mean(HOLE), high.max() * 1.02, "no rows here", color=BLUE, ha="center")
    axis.set(title="rows, predictions, and intervals of 90 %", xlabel="x")


def main() -> None:
    """Fit, count how often intervals hold the truth, print and draw."""
    options = arguments(__doc__)
    generator = np.random.default_rng(0)
    x, y = draw_rows(generator, 200 if options.quick else 500)
    new_x, new_y = draw_rows(generator, 2000)
    regressor = CoCoRegressor(random_state=0).fit(x, y)
    usual = np.quantile(np.abs(y - regressor.loo_prediction_), COVERAGE)
    predicted = regressor.predict(new_x)
    shares = {
        "learnt widths": covered(new_x, new_y, regressor.predict_interval(new_x, COVERAGE)),
        "one width": covered(
            new_x, new_y, np.stack([predicted - usual, predicted + usual], axis=1)
        ),
    }
    for name, (of_all, *groups) in shares.items():
        print(
            f"{name:14} of all rows {of_all:.3f}, from left to right", *(f"{g:.2f}" for g in groups)
        )
    edge, middle = regressor.predict_interval([[4.9], [6.0]], COVERAGE)
    print(f"width beside the hole {np.ptp(edge):.2f}, in its middle {np.ptp(middle):.2f}")

    if options.out:
        off = {name: 100 * np.abs(groups[1:] - COVERAGE).mean() for name, groups in shares.items()}
        finding = (
            f"Part by part, intervals of 90 % are off by {off['learnt widths']:.0f} points on "
            f"average; those of one width by {off['one width']:.0f}"
        )
        figure, (left, right) = panels(finding, 2, size=(10, 4), width_ratios=(1.5, 1))
        draw_band(left, regressor, x, y)
        middles = ((EDGES[:-1] + EDGES[1:]) / 2)[[0, 1, 2, 3, 5, 6]]
        right.axhline(COVERAGE, color=FAINT, linewidth=1)
        for (name, groups), colour in zip(shares.items(), (BLUE, ORANGE), strict=True):
            right.plot(middles, groups[1:], color=colour, marker="o")
            right.text(
                0.6, 0.71 if colour == BLUE else 0.67, name, color=colour, va="center", ha="left"
            )
        right.set(ylim=(0.6, 1.02), xlabel="x", title="new rows within their intervals")
        right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        save(figure, options.out)


if __name__ == "__main__":
    main()
