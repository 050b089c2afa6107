"""Moved to :mod:`cocoloss.json_text`; this name goes when the benchmark no longer uses it."""

from cocoloss.json_text import dump_json, json_value, load_json, storable

plain = json_value

__all__ = ["dump_json", "json_value", "load_json", "plain", "storable"]
