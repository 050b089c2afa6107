"""What is kept of where a number came from."""

from pathlib import Path

import cocoloss
from cocoloss.benchmark.tasks import SOURCE, environment, source_digest


def test_the_versions_name_the_source():
    versions = environment().versions
    assert versions["cocoloss"] == cocoloss.__version__
    assert versions[SOURCE] == source_digest(Path(cocoloss.__file__).parent)


def test_the_same_files_elsewhere_are_the_same_source(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder / "part").mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("x = 1")
        (tmp_path / folder / "part" / "b.py").write_text("y = 2")
    (tmp_path / "two" / "__pycache__").mkdir()
    (tmp_path / "two" / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert source_digest(tmp_path / "one") == source_digest(tmp_path / "two")
    (tmp_path / "two" / "a.py").rename(tmp_path / "two" / "c.py")
    assert source_digest(tmp_path / "one") != source_digest(tmp_path / "two")


def test_without_files_there_is_no_digest(tmp_path):
    assert source_digest(tmp_path / "package.zip" / "package") == ""
