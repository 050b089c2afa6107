"""How long a fit may take, what it says on the way, and what it left out to be in time."""

import shutil
import sys
import time
import warnings
from dataclasses import dataclass, field

CLEAR = "\r\x1b[2K"  # the line
SPARE = 0.9  # of the limit; the rest is for what cannot be foreseen


@dataclass(eq=False)
class Pace:
    """The clock of one fit.

    Work that could be left out asks first whether there is time; what is left out is noted, and
    said at the end.
    """

    limit: float | None = None  # seconds; None is no limit
    verbose: bool = False
    started: float = field(default_factory=time.perf_counter)
    left_out: list[str] = field(default_factory=list)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.started

    @property
    def left(self) -> float:
        """Seconds that may still be spent."""
        return float("inf") if self.limit is None else SPARE * self.limit - self.elapsed

    def has(self, seconds: float, what: str) -> bool:
        """Return whether there is time for something; if not, note what is left out."""
        if seconds <= self.left:
            return True
        self.left_out.append(what)
        return False

    def note_epochs(self, n_epochs: int, planned: int) -> None:
        """Note how many epochs of networks were left out, if it was time that ended them."""
        if n_epochs < planned and self.left <= 0:
            self.left_out.append(f"{planned - n_epochs} of {planned} epochs of networks")

    def say(self, what: str) -> None:
        """Say what a verbose fit does, and when: on a terminal in one line, elsewhere in many."""
        if self.verbose and sys.stderr.isatty():
            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(CLEAR + f"{self.elapsed:.0f} s: {what}"[:width])
            sys.stderr.flush()
        elif self.verbose:
            sys.stderr.write(f"[{self.elapsed:6.1f} s] {what}\n")

    def end(self) -> None:
        """Leave the terminal as it was, and warn of what was left out."""
        if self.verbose and sys.stderr.isatty():
            sys.stderr.write(CLEAR)
        if self.left_out:
            warnings.warn(
                f"to end within {self.limit:g} s the fit left out {'; '.join(self.left_out)}; "
                f"give it more time, or none to end by",
                UserWarning,
                stacklevel=5,
            )
