import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole


def write(path, text="new"):
    with write_whole(path) as aside:
        aside.write_text(text)


def test_a_file_that_is_there_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    write(path)
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_whatever_stops_the_writer_the_old_file_stays_and_nothing_else(tmp_path, error):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted():
        with write_whole(path) as aside:
            aside.write_text("half")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_a_full_disk_is_one_clear_line(tmp_path):
    def full():
        with write_whole(tmp_path / "a.txt"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CoCoError, match=r"cannot write .*a\.txt: the disk is full; free"):
        full()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_device_that_is_really_full_is_told_so(tmp_path):
    def full():
        with write_whole(tmp_path / "a.txt"), open("/dev/full", "w") as file:  # noqa: PTH123
            file.write("x" * 100_000)

    with pytest.raises(CoCoError, match="the disk is full"):
        full()


def test_a_folder_and_a_missing_folder_are_told(tmp_path):
    with pytest.raises(CoCoError, match="it is a folder; add a file name"):
        write(tmp_path)
    with pytest.raises(CoCoError, match=r"there is no folder .*nowhere; make it first"):
        write(tmp_path / "nowhere" / "a.txt")


@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_may_not_be_written_is_told(tmp_path, monkeypatch, what):
    path = tmp_path / "a.txt"
    path.write_text("old")
    locked = path if what == "file" else tmp_path
    # The superuser may write anywhere, so the answer of the system is given here.
    monkeypatch.setattr(os, "access", lambda p, mode: os.fspath(p) != os.fspath(locked))
    with pytest.raises(CoCoError, match="read-only"):
        write(path)
    assert path.read_text() == "old"


def test_a_link_keeps_pointing_where_it_pointed(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write(tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_the_file_has_the_permissions_that_the_user_asked_for(tmp_path):
    old = os.umask(0o027)
    try:
        write(tmp_path / "a.txt")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_a_kill_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    code = (
        "import sys, time\nfrom cocoloss.files import write_whole\n"
        f"with write_whole({str(path)!r}) as aside:\n"
        "    aside.write_text('half')\n    print('writing', flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    process.kill()
    process.wait()
    process.stdout.close()
    assert path.read_text() == "old"
