"""Commands that only read leave a store, and the folder that it lies in, as they were."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from bench_cli import FAILED, bench
from bench_helpers import fake_spec, numbers, run_fake

from cocoloss.benchmark.store import Database, Store

COMMANDS = [
    ("status", "store/tiny.sqlite"),
    ("status", "store/tiny.sqlite", "--failures"),
    ("plan", "tiny.toml", "--store", "store/tiny.sqlite"),
    ("export", "store/tiny.sqlite", "--out", "folds.csv"),
    ("report", "store/tiny.sqlite", "--out", "report"),
    ("merge", "store/tiny.sqlite", "--into", "merged.sqlite"),
]
PYTHON = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(autouse=True)
def run_folder(folder):
    Path("store").mkdir()
    bench("run", "tiny.toml", "--workers", 0, "--store", "store/tiny.sqlite", code=FAILED)


def content():
    """Return all that is in the folder; a -shm is memory that processes share."""
    return {
        path.name: (path.read_bytes(), path.stat().st_mtime_ns) if path.suffix[-4:] != "-shm" else 0
        for path in Path("store").iterdir()
    }


def check_that_commands_leave_all_as_it_is(*files):
    """Run each command; what lies in the folder (of some files only, if named) stays."""
    before = content()
    for command in COMMANDS:
        bench(*command)
        after = content()
        assert all(after[name] == before[name] for name in files or before), command
        assert files or len(after) == len(before), command
    return before


def test_a_store_at_rest_stays_as_it_is():
    assert list(check_that_commands_leave_all_as_it_is()) == ["tiny.sqlite"]


def test_files_that_an_earlier_reader_left_do_no_harm():
    reader = "import sqlite3; c = sqlite3.connect('file:store/tiny.sqlite?mode=ro', uri=True); "
    reader += "c.execute('SELECT count(*) FROM runs').fetchall(); c.close()"
    subprocess.run([sys.executable, "-c", reader], check=True)
    assert len(check_that_commands_leave_all_as_it_is("tiny.sqlite")) == 3


def test_what_a_killed_driver_left_is_read_and_stays():
    with Store("store/tiny.sqlite") as store:
        run_fake(fake_spec("good", "breaks", folder="."), store)
        shutil.copytree("store", "killed")
    shutil.rmtree("store")
    Path("killed").rename("store")
    assert len(check_that_commands_leave_all_as_it_is()) == 3
    assert len(bench("status", "store/tiny.sqlite").stdout.split("fake")) > 2


WRITER = """
import sys
from bench_helpers import fake_spec, run_fake
from cocoloss.benchmark.store import Store
with Store("store/tiny.sqlite") as store:
    for models in (["first"], ["second"]):
        run_fake(fake_spec(*models), store)
        print("ready", flush=True)
        sys.stdin.readline()
"""


def test_a_running_driver_is_not_disturbed():
    with subprocess.Popen(
        [sys.executable, "-c", WRITER],
        env=PYTHON,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        for _ in range(2):
            assert writer.stdout.readline() == "ready\n"
            assert len(check_that_commands_leave_all_as_it_is()) == 3
            writer.stdin.write("\n")
            writer.stdin.flush()
    assert writer.returncode == 0
    assert list(content()) == ["tiny.sqlite"]
    with Store("store/tiny.sqlite", create=False) as store:
        for model in ("first", "second"):
            assert len(numbers(store, fake_spec(model))) == 24


def test_what_only_reads_cannot_write(folder):
    database = Database(folder / "store" / "tiny.sqlite", create=False)
    with database.engine.connect() as connection, pytest.raises(Exception, match="readonly"):
        connection.exec_driver_sql("DELETE FROM results")
    database.close()


VISITOR = """
import os, sys
from cocoloss.benchmark.store import Store
def runs(path):
    with Store(path, create=False) as store:
        return len(store.runs())
runs("store/tiny.sqlite")  # all is imported
if os.geteuid() == 0:  # who may write anywhere
    os.setuid(65534)
print(os.access(os.path.dirname(sys.argv[1]), os.W_OK), runs(sys.argv[1]))
"""


def test_a_store_is_read_from_a_folder_that_one_may_not_write_to():
    place = Path(tempfile.mkdtemp(prefix="cocoloss-"))  # not below what only its owner may enter
    try:
        shutil.copy("store/tiny.sqlite", place)
        place.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", VISITOR, str(place / "tiny.sqlite")],
            env=PYTHON,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.stderr) == ("False 1\n", "")
        assert [path.name for path in place.iterdir()] == ["tiny.sqlite"]
    finally:
        place.chmod(0o755)
        shutil.rmtree(place)
