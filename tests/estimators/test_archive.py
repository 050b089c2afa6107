"""The container: what it keeps, and what it refuses of files that were altered or crafted."""

import hashlib
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
from cocoloss.estimators.archive import DIGEST_LABEL, MAX_DOCUMENT, read_archive, write_archive

from cocoloss.exceptions import CoCoError

ARRAYS = [np.arange(12, dtype=np.float32).reshape(3, 4), np.array([True, False]), np.zeros((0, 2))]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.coco"
    write_archive(path, {"name": "ü\ud800"}, ARRAYS, version=1, writer="cocoloss 0.1")
    return path


def reseal(path):
    """Give a crafted file the digest that belongs to it."""
    data = path.read_bytes()[:-64]
    path.write_bytes(data + hashlib.sha256(data).hexdigest().encode())


def craft(path, header, members, **options):
    with zipfile.ZipFile(path, "w", **options) as archive:
        archive.comment = DIGEST_LABEL + b"0" * 64
        archive.writestr("model.json", header if isinstance(header, bytes) else json.dumps(header))
        for name, data in members:
            archive.writestr(name, data)
    reseal(path)


def header(arrays=(), **changes):
    parts = {"format": "cocoloss", "version": 1, "writer": "w", "document": None}
    return parts | {"arrays": list(arrays)} | changes


def test_documents_and_arrays_come_back(path):
    document, arrays = read_archive(path, version=1)
    assert document == {"name": "ü\ud800"}
    for back, array in zip(arrays, ARRAYS, strict=True):
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
        assert back.flags.writeable


def test_the_same_content_gives_the_same_bytes(path, tmp_path):
    other = tmp_path / "b.coco"
    write_archive(other, {"name": "ü\ud800"}, ARRAYS, version=1, writer="cocoloss 0.1")
    assert other.read_bytes() == path.read_bytes()


def test_every_single_flipped_bit_is_noticed(path):
    data = path.read_bytes()
    for i in range(len(data)):
        altered = bytearray(data)
        altered[i] ^= 1 << (i % 8)
        path.write_bytes(altered)
        with pytest.raises(CoCoError):
            read_archive(path, version=1)


def test_every_truncation_and_anything_added_is_noticed(path):
    data = path.read_bytes()
    for n in range(len(data)):
        path.write_bytes(data[:n])
        with pytest.raises(CoCoError):
            read_archive(path, version=1)
    path.write_bytes(data + b"\0")
    with pytest.raises(CoCoError, match="altered or cut short"):
        read_archive(path, version=1)


def test_a_version_from_the_future_says_so(path):
    write_archive(path, None, [], version=7, writer="cocoloss 3.0")
    with pytest.raises(CoCoError, match=r"format 7 of 'cocoloss 3.0'.*up to 1; upgrade"):
        read_archive(path, version=1)


def test_a_future_format_with_another_seal_still_says_so(path):
    craft(path, header(version=7, writer="cocoloss 3.0"), [])
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(CoCoError, match="upgrade cocoloss"):
        read_archive(path, version=1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps([1, 2]), "not a cocoloss model file; nothing of it was opened"),
        (b"", "not a cocoloss model file"),
        (b"a,b\n1,2\n", "not a cocoloss model file"),
        (b"PK\x03\x04", "altered or cut short"),
    ],
)
def test_other_files_are_told_apart(path, content, message):
    path.write_bytes(content)
    with pytest.raises(CoCoError, match=message):
        read_archive(path, version=1)


def test_a_missing_file_a_folder_and_a_locked_file_are_told(tmp_path, monkeypatch):
    with pytest.raises(CoCoError, match="there is no file"):
        read_archive(tmp_path / "nothing.coco", version=1)
    with pytest.raises(CoCoError, match="is a folder"):
        read_archive(tmp_path, version=1)

    def locked(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", locked)
    with pytest.raises(CoCoError, match=r"cannot read .*: Permission denied"):
        read_archive(tmp_path / "a.coco", version=1)


F4 = {"dtype": "<f4", "shape": [2]}


@pytest.mark.parametrize(
    ("head", "members"),
    [
        (header([F4]), []),  # an array that is not there
        (header(), [("arrays/0.bin", bytes(8))]),  # one that is not described
        (header([F4]), [("arrays/0.bin", bytes(4))]),  # too short
        (header([F4]), [("arrays/1.bin", bytes(8))]),  # by another name
        (header([F4]), [("../../etc/passwd", bytes(8))]),
        (header([{"dtype": "|O", "shape": [1]}]), [("arrays/0.bin", bytes(8))]),
        (header([{"dtype": "<U2", "shape": [1]}]), [("arrays/0.bin", bytes(8))]),
        (header([{"dtype": ["a"], "shape": [1]}]), [("arrays/0.bin", bytes(8))]),
        (header([{"dtype": "|b1", "shape": [2]}]), [("arrays/0.bin", b"\2\0")]),
        (header([{"dtype": "<f4", "shape": [10**12]}]), [("arrays/0.bin", bytes(8))]),
        (header([{"dtype": "<f4", "shape": [2**62, 2**62]}]), [("arrays/0.bin", bytes(8))]),
        (header([{"dtype": "<f4", "shape": [-2, -1]}]), [("arrays/0.bin", bytes(8))]),
        (header([{"dtype": "<f4", "shape": [1] * 100}]), [("arrays/0.bin", bytes(4))]),
        (header([{"dtype": "<f4", "shape": [2.0]}]), [("arrays/0.bin", bytes(8))]),
        (header([7]), [("arrays/0.bin", bytes(8))]),
        (header(format="another"), []),
        ({"format": "cocoloss"}, []),
        (b"[" * 100_000, []),
        (b"\x80\x04", []),
        (b'{"format": NaN', []),
        (b"1" * 10_000, []),
    ],
)
def test_crafted_files_are_refused(path, head, members):
    craft(path, head, members)
    with pytest.raises(CoCoError, match="is not a cocoloss model file"):
        read_archive(path, version=1)


def test_zip_bombs_do_not_unpack(path):
    bomb = bytes(200 * 2**20)
    shape = {"dtype": "<f4", "shape": [len(bomb) // 4]}
    craft(path, header([shape]), [("arrays/0.bin", bomb)], compression=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**20
    with pytest.raises(CoCoError, match="a member is compressed"):
        read_archive(path, version=1)


def test_members_that_share_bytes_do_not_unpack(path):
    # Two entries of the directory point at the same data: more comes out than is in the file.
    craft(path, header([F4, F4]), [("arrays/0.bin", bytes(8)), ("arrays/1.bin", bytes(8))])
    data = bytearray(path.read_bytes())
    first, second = (data.rfind(b"arrays/%d.bin" % i) - 46 for i in (0, 1))
    size = len(data)
    for entry in (first, second):
        data[entry + 20 : entry + 28] = struct.pack("<II", size - 10, size - 10)
    path.write_bytes(data)
    reseal(path)
    with pytest.raises(CoCoError, match="larger than the file"):
        read_archive(path, version=1)


def test_a_description_that_is_too_long_is_refused_before_it_is_read_or_written(path):
    craft(path, b" " * (MAX_DOCUMENT + 1), [])
    with pytest.raises(CoCoError, match="too long"):
        read_archive(path, version=1)
    before = os.listdir(path.parent)
    with pytest.raises(CoCoError, match="at most"):
        write_archive(path.parent / "b.coco", "x" * MAX_DOCUMENT, [], version=1, writer="w")
    assert os.listdir(path.parent) == before


@pytest.mark.parametrize("version", ["2", "1", None, -1, 0, 1.5, True, [1]])
def test_versions_that_no_writer_gives_are_refused(tmp_path, version):
    craft(tmp_path / "a.coco", header(version=version), [])
    with pytest.raises(CoCoError, match="not a cocoloss model file: its version is no number"):
        read_archive(tmp_path / "a.coco", version=1)


def test_names_that_no_file_has_are_told(tmp_path):
    for name in ("x" * 300, "x\0y"):
        with pytest.raises(CoCoError, match="cannot read"):
            read_archive(tmp_path / name, version=1)
