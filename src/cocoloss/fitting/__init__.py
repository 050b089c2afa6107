"""From a table to a fitted model: rows are read, a solver embeds them, what it leaves is a value.

Knows arguments of estimators by their names, and scikit-learn where something is learnt; a fitted
model (model.py, regression.py) needs numpy and pandas alone.
"""
