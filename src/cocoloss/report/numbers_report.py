"""The run report of numbers: predictions against the truth, intervals, and what columns weigh.

Every number was measured before, see :class:`cocoloss.recording.NumbersRecord`. Here it is put into
the order in which ``templates/numbers.html`` writes it and ``assets/numbers.js`` draws it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.json_text import json_value
from cocoloss.recording import NumbersRecord
from cocoloss.recording.record import NumberOutcome, rounded
from cocoloss.report.run_parts import kernels_of, render_run

SCRIPTS = ("draw.js", "numbers.js", "why.js")
SHOWN = 0.9  # the intervals that are drawn
MOST_POINTS = 1000  # in a picture
ODD = 0.05  # a coverage that is so far from what it should be deserves a word


def numbers_report(record: NumbersRecord) -> str:
    """Return the report of a fit of numbers as HTML."""
    return render_run(
        "numbers.html",
        record,
        SCRIPTS,
        _script_data(record),
        judged={"test rows": record.test, "leave-one-out": record.left_out},
        covered=record.coverage[SHOWN][0],
        width=record.coverage[SHOWN][1],
        is_odd=abs(record.coverage[SHOWN][0] - SHOWN) > ODD,
        most_points=MOST_POINTS,
        plain_width=np.ptp(np.quantile(record.left_out.true, [(1 - SHOWN) / 2, (1 + SHOWN) / 2])),
        left_out_guess=record.left_out.true.std(),
        **kernels_of(
            record.importances,
            record.tried,
            record.chosen,
            record.metrics,
            tried_by="Leave-one-out squared error, relative to predicting the mean,",
        ),
    )


def _script_data(record: NumbersRecord) -> dict[str, Any]:
    """Return what is drawn: of each row the true number, the predicted one, and its interval."""
    ends = np.stack([record.lower, record.upper])
    data = {
        "judged": {
            "test rows": _points(record.test, ends),
            "leave-one-out": _points(record.left_out),
        },
        "covered": record.by_width,
        "asked": SHOWN,
    }
    known: dict[str, Any] = json_value(data, number=rounded)
    return known


def _points(outcome: NumberOutcome, ends: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Return rows as points, (m, 2) or (m, 4), evenly drawn if there are many."""
    n = len(outcome.true)
    some = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int))
    columns = [outcome.true, outcome.predicted, *([] if ends is None else ends)]
    return np.asarray(np.stack(columns, axis=1)[some])
