import errno
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.files import check_can_write, write_whole


def write(path, text="new"):
    with write_whole(path) as aside:
        aside.write_text(text)


def test_a_file_that_is_there_is_replaced_and_a_link_keeps_pointing_where_it_pointed(tmp_path):
    path, link = tmp_path / "a.txt", tmp_path / "link.txt"
    path.write_text("old")
    link.symlink_to(path)
    for target in (path, link):
        write(target, f"new {target.name}")
        assert path.read_text() == f"new {target.name}"
        assert link.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "link.txt"]


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


@pytest.mark.parametrize("device", ["said to be full", "/dev/full"])
def test_a_full_disk_is_one_clear_line(tmp_path, device):
    def full():
        with write_whole(tmp_path / "a.txt"):
            if Path(device).exists():
                Path(device).write_text("x" * 100_000)
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CoCoError, match=r"cannot write .*a\.txt: the disk is full; free"):
        full()


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


def test_a_file_has_the_permissions_that_the_user_asked_for_and_keeps_them(tmp_path):
    path = tmp_path / "a.txt"
    old = os.umask(0o027)
    try:
        write(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    for mode in (0o600, 0o664):
        path.chmod(mode)
        with write_whole(path) as aside:
            aside.write_text("newer")
            assert stat.S_IMODE(aside.stat().st_mode) == mode  # nobody else may read it meanwhile
        assert path.read_text() == "newer"
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_pipe_is_written_into_and_stays_a_pipe(tmp_path):
    path = tmp_path / "pipe.txt"
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    write(path, "all of it")
    reader.join(10)
    assert read == ["all of it"]
    assert path.is_fifo()
    assert os.listdir(tmp_path) == ["pipe.txt"]


def test_a_device_stays_a_device_and_a_socket_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        with pytest.raises(CoCoError, match="it is no file"):
            write(Path("s"))
        assert Path("s").is_socket()
    path = tmp_path / "null"
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))  # what /dev/null is
        path.write_text("")
    except PermissionError:
        pytest.skip("devices are made and opened by the superuser only")
    write(path)
    assert path.is_char_device()


def test_what_the_shell_has_opened_is_added_to(tmp_path):
    out = tmp_path / "out.txt"
    code = (
        "from cocoloss.files import write_whole\n"
        "with write_whole('/dev/stdout') as aside:\n    aside.write_text('new')\n"
    )
    out.write_text("before ")
    with out.open("a") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert out.read_text() == "before new"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert piped.stdout == b"new"


def test_names_that_cannot_be_written_to_are_told_beforehand(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    (tmp_path / "link.txt").symlink_to(tmp_path / "nowhere" / "a.txt")
    for name, why in [
        ("", "it is a folder; add a file name"),
        ("nowhere/a.txt", "there is no folder .*nowhere; make it first"),
        ("link.txt", "there is no folder .*nowhere; make it first"),
        ("x" * 300, "the name is too long; choose"),
        ("x\0y", "the name holds a NUL; choose"),
        ("a", "it is a link that leads to itself; choose"),
    ]:
        with pytest.raises(CoCoError, match=f"cannot write .*: {why}"):
            check_can_write(tmp_path / name)
    (tmp_path / "nowhere").mkdir()
    write(tmp_path / "link.txt")
    assert (tmp_path / "nowhere" / "a.txt").read_text() == "new"


def test_a_folder_that_may_not_be_entered_is_told(tmp_path, monkeypatch):
    def closed(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", closed)  # the superuser may enter everywhere
    with pytest.raises(CoCoError, match=r"cannot write .*a\.txt: permission denied; choose"):
        check_can_write(tmp_path / "a.txt")


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
