"""The record of a fit: what it learnt by which epoch, and how it does on rows kept apart.

It watches and measures; how a record is drawn or printed is not known here.
"""

from cocoloss.recording.record import MEASURES, RunRecord
from cocoloss.recording.watch import record_fit

__all__ = ["MEASURES", "RunRecord", "record_fit"]
