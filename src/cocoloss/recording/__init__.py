"""The record of a fit: what it learnt by which epoch, and how it does on rows kept apart.

It watches and measures; how a record is drawn or printed is not known here.
"""

from cocoloss.recording.record import MEASURES, NumbersRecord, RunRecord
from cocoloss.recording.watch import record_fit
from cocoloss.recording.watch_numbers import record_numbers

__all__ = ["MEASURES", "NumbersRecord", "RunRecord", "record_fit", "record_numbers"]
