"""The record of a fit: what it learnt by which epoch, and how it does on rows kept apart."""

from cocoloss.recording.record import MEASURES, RunRecord
from cocoloss.recording.watching import record_fit

__all__ = ["MEASURES", "RunRecord", "record_fit"]
