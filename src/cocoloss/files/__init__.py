"""Files: written whole or not at all, and safe to read from a stranger."""

from cocoloss.files.whole import write_whole

__all__ = ["write_whole"]
