"""How often a table like that of training gives a note on drift: random parts of the same table.

python bench/drift.py FOLDER ...    # of tables of classes, numbers or levels
"""

import sys
import warnings
from pathlib import Path

from cocoloss.columns import TablePreprocessor
from cocoloss.columns.drift import drift_of
from cocoloss.tables import load_source

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    n_tables = n_parts = n_noted = 0
    for folder in sys.argv[1:]:
        task = {"regression": "numbers", "ordinal": "levels"}.get(Path(folder).name, "classes")
        source = load_source(f"folder:{folder}", task)
        for name in source.names():
            X = source.load(name).X
            X = X.sample(min(len(X), 2000), random_state=0)
            n_tables += 1
            for part in (len(X) // 3, len(X) // 2):
                encoder = TablePreprocessor().fit(X[:part]).encoder_
                notes = drift_of(encoder, X[part:]).notes()
                n_parts, n_noted = n_parts + 1, n_noted + bool(notes)
                for note in notes:
                    print(f"{name}, {part} rows: {note}")
    print(f"{n_tables} tables: a note in {n_noted} of {n_parts} cases")
