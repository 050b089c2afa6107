"""Folds of a benchmark: those of :func:`cocoloss.tables.stratified_folds`."""

from cocoloss.tables.splits import Fold, stratified_folds

__all__ = ["Fold", "stratified_folds"]
