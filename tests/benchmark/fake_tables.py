"""Tables of the fake experiment: workers unpack them, and import nothing else for that."""

import os
from dataclasses import dataclass

from cocoloss.benchmark.tasks import TableInfo


@dataclass(frozen=True)
class FakeTable:
    fingerprint: str


class FakeTables:
    def __init__(self, version=""):
        self.version = version
        self.loads = []

    def load(self, name):
        self.loads.append(name)
        return FakeTable(f"content of {name}{self.version}")

    def infos(self, names):
        return [TableInfo(n, 100, 5, 3, f"content of {n}{self.version}") for n in names]


class NotedTable(FakeTable):
    """Notes in a folder where it is unpacked; the first so many workers that do so die of it."""

    def __init__(self, fingerprint, folder, deaths=0):
        super().__init__(fingerprint)
        self.__dict__.update(folder=folder, deaths=deaths)

    def __reduce__(self):
        return unpack, (self.fingerprint, self.folder, self.deaths)


def unpack(fingerprint, folder, deaths):
    if len(list(folder.glob("died-*"))) < deaths:
        (folder / f"died-{os.getpid()}").touch()
        os._exit(9)
    with (folder / f"unpacked-{os.getpid()}").open("a") as file:
        file.write(f"{fingerprint}\n")
    return NotedTable(fingerprint, folder, deaths)


class NotedTables(FakeTables):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def load(self, name):
        return NotedTable(super().load(name).fingerprint, self.folder)
