"""The tables of a store."""

import sqlalchemy as sa

SCHEMA_VERSION = 1
METADATA = sa.MetaData()

meta = sa.Table(
    "cocoloss_meta",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

# Where tasks ran: packages and machine, once each.
environments = sa.Table(
    "environments",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("digest", sa.Text, nullable=False, unique=True),
    sa.Column("machine", sa.JSON, nullable=False),
    sa.Column("versions", sa.JSON, nullable=False),
)

# One row per start of a driver. Times are UTC.
runs = sa.Table(
    "runs",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("spec_hash", sa.Text, nullable=False),
    sa.Column("spec", sa.JSON, nullable=False),
    sa.Column("environment", sa.Text, nullable=False),  # digest of the driver's
    sa.Column("state", sa.Text, nullable=False),  # running, finished, stopped, broken
    sa.Column("started_at", sa.DateTime, nullable=False),
    sa.Column("seen_at", sa.DateTime, nullable=False),  # last sign of life
    sa.Column("progress", sa.JSON, nullable=False),  # what runs, how much is left, left_out
)

# What a run means to do: one row per dataset and model. The key changes with the table's content
# and with the user's model, and then the unit is open again.
units = sa.Table(
    "units",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("spec_hash", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("tasks", sa.Integer, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),  # as planned
    sa.Column("info", sa.JSON, nullable=False),  # what is known of the table
    sa.Column("status", sa.Text, nullable=False),  # open, ok, failed
    sa.Column("error", sa.Text, nullable=False),
    sa.UniqueConstraint("spec_hash", "dataset", "model"),
)

# What tasks found: one row per key, for ever.
results = sa.Table(
    "results",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", sa.Text, nullable=False, unique=True),
    sa.Column("spec_hash", sa.Text, nullable=False),
    sa.Column("experiment", sa.Text, nullable=False),
    sa.Column("dataset", sa.Text, nullable=False),
    sa.Column("fingerprint", sa.Text, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("part", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),  # ok, failed, timeout
    sa.Column("error", sa.Text, nullable=False),
    sa.Column("traceback", sa.Text, nullable=False),
    sa.Column("measures", sa.JSON, nullable=False),
    sa.Column("rows", sa.JSON, nullable=False),
    sa.Column("params", sa.JSON, nullable=False),
    sa.Column("extra", sa.JSON, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("peak_memory", sa.BigInteger, nullable=False),
    sa.Column("environment", sa.Text, nullable=False),  # digest
    sa.Column("finished_at", sa.DateTime, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    # False for what a later walk through the unit did not need: folds of parameters that are no
    # longer the best, results of a table or a model that has changed.
    sa.Column("current", sa.Boolean, nullable=False),
)
COLUMNS = tuple(column.name for column in results.c if column.name != "id")
# What a unit has found. Counting, and leaving out the trials, which are most, touch this only.
COUNTED = ("spec_hash", "dataset", "model", "stage", "status", "current", "seconds")
sa.Index("results_of_unit", *(results.c[name] for name in COUNTED))
