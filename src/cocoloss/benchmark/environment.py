"""Where something ran, and with what: kept beside every number."""

import hashlib
import os
import platform
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import cocoloss
from cocoloss.benchmark.json_text import dump_json

PACKAGES = ("cocoloss", "numpy", "scipy", "scikit-learn", "pandas", "torch", "optuna")
SOURCE = "cocoloss source"  # among the versions


@dataclass(frozen=True)
class Environment:
    """Where something ran: the machine, and the versions of what decides its numbers."""

    machine: dict[str, Any]
    versions: dict[str, str]

    @property
    def digest(self) -> str:
        """A name for it."""
        text = dump_json([self.machine, self.versions])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def environment() -> Environment:
    """Describe this process."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with dask

    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    source = source_digest(Path(cocoloss.__file__).parent)
    versions |= {SOURCE: source} if source else {}
    machine = {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory": psutil.virtual_memory().total,
    }
    return Environment(machine, versions)


def source_digest(package: Path) -> str:
    """Return a name for the source of a package: its version says little between two releases.

    Parameters
    ----------
    package : Path
        Its folder. Counted are the names and contents of Python files.

    Returns
    -------
    str
        Empty if there are no files, as in a package that is imported from an archive.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "one.py").write_text("x = 1")
    >>> before = source_digest(folder)
    >>> _ = (folder / "one.py").write_text("x = 2")
    >>> source_digest(folder) == before
    False
    """
    digest = hashlib.sha256()
    files = sorted(package.rglob("*.py"))
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12] if files else ""
