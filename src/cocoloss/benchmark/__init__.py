"""Many models on many tables: what to run, how to run it, and where the results are kept.

How results are shown is not known here, nor what a model does inside.
"""

from cocoloss._late import late_names

_HOMES = {
    "cocoloss.benchmark.spec": ["Spec", "load_spec"],
    "cocoloss.benchmark.tasks": ["Result", "TableInfo", "Task", "Unit"],
    "cocoloss.benchmark.runner": ["run_benchmark"],
    "cocoloss.benchmark.store": ["Store"],
    "cocoloss.benchmark.export": ["fold_table", "merge_into"],
    "cocoloss.benchmark.plan": ["failures_of", "status_of"],
}
__getattr__, __dir__ = late_names(__name__, _HOMES)
