"""Writes ``customers.csv`` and ``new_customers.csv``: made up, and as messy as what offices send.

Semicolons, decimal commas, euros, dates with dots, codes that begin with zero, gaps, a column that
says nothing, and customers who leave for reasons that the other columns hold only in part.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

TARIFFS = ["Basic", "Basic", "Family", "Business", "Flat"]
POSTCODES = [1067, 4109, 10115, 50667, 80331]
CHANNELS = ["shop", "web", "web", "phone", "partner"]


def customers(n: int, seed: int) -> pd.DataFrame:
    """Rows of customers with what is known of them, and whether they left."""
    rng = np.random.default_rng(seed)
    months = np.ceil(rng.gamma(1.6, 16.0, n)).astype(int)
    tariff = rng.choice(TARIFFS, n)
    fee = np.round(
        rng.normal(24, 6, n).clip(8) + 9 * (tariff == "Family") + 21 * (tariff == "Business"), 2
    )
    gigabytes = np.round(rng.lognormal(2.2, 0.7, n), 1)
    calls = rng.poisson(0.5 + 1.2 * (rng.random(n) < 0.25), n)
    late = rng.poisson(0.4, n)
    fits_usage = np.abs(np.log(gigabytes / np.where(tariff == "Flat", 18, 9)))
    odds = (
        -2.4
        + 1.5 * np.exp(-months / 9)
        + 0.9 * calls
        + 0.8 * late * (fee > 28)
        + 1.1 * (fits_usage > 0.7)
        - 1.3 * (tariff == "Business")
    )
    left = rng.random(n) < 1 / (1 + np.exp(-odds))
    since = pd.Timestamp("2026-06-30") - pd.to_timedelta(months * 30.4, unit="D")
    table = pd.DataFrame(
        {
            "customer": [f"K{number:05d}" for number in rng.permutation(90_000)[:n]],
            "postcode": [f"{code:05d}" for code in rng.choice(POSTCODES, n)],
            "customer since": since.strftime("%d.%m.%Y"),
            "tariff": tariff,
            "channel": rng.choice(CHANNELS, n),
            "monthly fee": [f"€ {value:.2f}".replace(".", ",") for value in fee],
            "gigabytes": [f"{value:.1f}".replace(".", ",") for value in gigabytes],
            "calls to support": calls,
            "late payments": late,
            "country": "DE",
        }
    )
    for name, share in {"gigabytes": 0.08, "channel": 0.05, "late payments": 0.04}.items():
        table[name] = table[name].astype(object).mask(rng.random(n) < share, "")
    return table.assign(churned=np.where(left, "yes", "no"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder")
    out = parser.parse_args().out
    customers(800, seed=0).to_csv(out / "customers.csv", sep=";", index=False)
    customers(100, seed=1).drop(columns="churned").to_csv(
        out / "new_customers.csv", sep=";", index=False
    )
