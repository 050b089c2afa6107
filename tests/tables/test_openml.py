"""OpenML against a server of our own: broken, lying, gone, and asked by several at once."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.tables import OpenMLSource, default_cache_folder, downloads, suite_entries

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "openml-cc18"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(downloads, "PAUSE", 0.001)


@pytest.fixture
def source(fake, tmp_path):
    return OpenMLSource(cache=tmp_path / "cache", server=fake.url)


def complaint(source):
    with pytest.raises(CoCoError) as error:
        source.load("kr-vs-kp")
    assert "\n" not in str(error.value)
    return str(error.value)


def content_files(source):
    return [path for path in (source.cache.folder / "content").rglob("*") if path.is_file()]


def test_the_suite_has_its_72_tasks():
    entries = suite_entries("openml-cc18")
    assert len(entries) == 72
    for field in ("task_id", "data_id", "name"):
        assert len({getattr(entry, field) for entry in entries}) == 72
    assert (14970, 1478, "har") in entries
    assert (167125, 40978, "Internet-Advertisements") in entries


def test_the_suite_agrees_with_the_copy_beside_the_checkout():
    if not (FOLDER / "index.csv").exists():
        pytest.skip("no copy of the suite")
    index = pd.read_csv(FOLDER / "index.csv")
    triples = index[["openml_task_id", "openml_data_id", "name"]].itertuples(index=False, name=None)
    assert set(triples) <= {tuple(entry) for entry in suite_entries("openml-cc18")}


def test_a_table_is_what_openml_says(fake, source):
    table = source.load("kr-vs-kp")
    assert list(table.X.columns) == ["bkblk", "size"]  # neither the row number nor the ignored
    assert table.categorical == ("bkblk",)
    assert not table.X["bkblk"].cat.ordered
    assert (
        table.n_rows == fake.original.count(b"\n") - 7 - 1
    )  # the header, and a row without a class
    assert set(table.y) == {"won", "nowin"}
    assert table.X["size"].isna().sum() == 1


def test_ignored_columns_may_come_as_one_text(fake, source):
    fake.details[3] = {"ignore_attribute": "secret, id"}
    assert list(source.load("kr-vs-kp").X.columns) == ["bkblk", "size"]


def test_a_table_is_fetched_once(fake, source):
    assert not source.is_cached("kr-vs-kp")
    first = source.load("kr-vs-kp").fingerprint
    n_asked = len(fake.asked)
    assert source.is_cached("kr-vs-kp")
    assert source.load("kr-vs-kp").fingerprint == first
    assert len(fake.asked) == n_asked


def test_the_cache_works_when_the_server_is_gone(serving, tmp_path):
    with serving() as fake:
        OpenMLSource(cache=tmp_path, server=fake.url).fetch("kr-vs-kp")
    assert OpenMLSource(cache=tmp_path, server=fake.url).load("kr-vs-kp").n_features == 2
    assert OpenMLSource(cache=tmp_path, offline=True).load("kr-vs-kp").n_features == 2


def test_without_server_and_cache_the_message_says_what_to_do(serving, tmp_path):
    with serving() as fake:
        pass
    said = complaint(OpenMLSource(cache=tmp_path / "cache", server=fake.url))
    assert "kr-vs-kp is not in the cache" in said
    assert "cannot reach 127.0.0.1" in said
    assert "connect to the network, or name a filled cache in COCOLOSS_CACHE" in said
    assert "offline=True" in complaint(OpenMLSource(cache=tmp_path / "cache", offline=True))


def test_a_broken_download_goes_on_where_it_broke(fake, source):
    fake.cuts = [100, 1000]
    assert source.fetch("kr-vs-kp").read_bytes() == fake.original
    assert fake.files_asked() == [None, "bytes=100-", "bytes=1100-"]


def test_a_download_goes_on_in_the_next_run(fake, source):
    fake.cuts = [100, 100, 100, 100]
    assert "400 bytes, which are kept: run again to go on" in complaint(source)
    fake.asked.clear()
    assert source.fetch("kr-vs-kp").read_bytes() == fake.original
    assert fake.files_asked() == ["bytes=400-"]


def test_a_server_without_ranges_starts_over(fake, source):
    fake.cuts = [100]
    fake.ignores_ranges = True
    assert source.fetch("kr-vs-kp").read_bytes() == fake.original


def test_a_part_longer_than_the_file_is_thrown_away(fake, source):
    md5 = hashlib.md5(fake.original).hexdigest()  # noqa: S324 - as OpenML has it
    source.cache.part_of(f"openml-3-{md5}").write_bytes(fake.original + b"more")
    assert source.fetch("kr-vs-kp").read_bytes() == fake.original


def test_a_part_of_something_else_is_noticed_by_its_checksum(fake, source):
    md5 = hashlib.md5(fake.original).hexdigest()  # noqa: S324 - as OpenML has it
    source.cache.part_of(f"openml-3-{md5}").write_bytes(b"x" * 50)
    assert source.fetch("kr-vs-kp").read_bytes() == fake.original
    assert fake.files_asked() == ["bytes=50-", None]


def test_a_wrong_checksum_is_tried_once_more_and_then_said(fake, source):
    fake.announced_md5[3] = "0" * 32
    assert "was fetched twice, and its checksum is" in complaint(source)
    assert fake.files_asked() == [None, None]
    assert not source.is_cached("kr-vs-kp")
    del fake.announced_md5[3]
    assert source.load("kr-vs-kp").n_classes == 2


def test_a_busy_server_is_asked_again(fake, source):
    fake.answers = [503, 429]
    assert source.fetch("kr-vs-kp").read_bytes() == fake.original


def test_a_server_that_says_no_is_not_asked_again(fake, source):
    fake.answers = [404]
    assert "404" in complaint(source)
    assert len(fake.files_asked()) == 1
    del fake.content[3]
    assert "412" in complaint(source)


@pytest.mark.parametrize("details", [{"id": "4"}, {"url": "file:///etc/passwd"}, {"id": None}])
def test_a_description_that_makes_no_sense_is_refused(fake, source, details):
    fake.details[3] = details
    assert any(
        word in complaint(source) for word in ("speaks of", "not an http", "does not answer")
    )


def test_a_damaged_file_of_the_cache_is_fetched_again(fake, source):
    path = source.fetch("kr-vs-kp")
    path.write_bytes(fake.original.replace(b"won", b"one"))
    assert not source.is_cached("kr-vs-kp")
    assert source.fetch("kr-vs-kp").read_bytes() == fake.original
    assert len(content_files(source)) == 1


def test_a_damaged_file_is_said_when_offline_and_stays(serving, tmp_path):
    with serving() as fake:
        source = OpenMLSource(cache=tmp_path, server=fake.url)
        path = source.fetch("kr-vs-kp")
    path.write_bytes(b"damaged")
    assert "is damaged in the cache" in complaint(source)
    assert path.read_bytes() == b"damaged"
    assert source.cache.record("openml-3") is not None


def test_a_damaged_record_is_as_good_as_none(fake, source):
    source.fetch("kr-vs-kp")
    (source.cache.folder / "records" / "openml-3.json").write_text("{")
    assert not source.is_cached("kr-vs-kp")
    assert source.load("kr-vs-kp").n_classes == 2


def test_a_file_that_is_no_table_is_said(fake, source):
    fake.content[3] = b"<!DOCTYPE html><html>moved</html>"
    assert "kr-vs-kp, as OpenML has it, cannot be read" in complaint(source)


SCRIPT = """
import sys
from cocoloss.tables import OpenMLSource
print(OpenMLSource(cache=sys.argv[1], server=sys.argv[2]).load("kr-vs-kp").fingerprint)
"""


def test_two_processes_may_fill_the_cache_at_once(fake, tmp_path):
    fake.cuts = [5000, 5000]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(tmp_path), fake.url], stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    answers = {process.communicate(timeout=60)[0] for process in started}
    assert all(process.returncode == 0 for process in started)
    assert len(answers) == 1
    assert len(fake.files_asked()) == 3  # one of them fetched, in three pieces
    assert OpenMLSource(cache=tmp_path, offline=True).is_cached("kr-vs-kp")


def test_a_cache_that_cannot_be_written_is_said(fake, tmp_path):
    (tmp_path / "file").write_text("")
    source = OpenMLSource(cache=tmp_path / "file" / "cache", server=fake.url)
    assert "name another folder in COCOLOSS_CACHE" in complaint(source)


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("COCOLOSS_CACHE", str(tmp_path / "mine"))
    assert OpenMLSource().cache.folder == tmp_path / "mine"
    monkeypatch.delenv("COCOLOSS_CACHE")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache_folder() == tmp_path / "xdg" / "cocoloss"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache_folder() == Path(os.environ["HOME"]) / ".cache" / "cocoloss"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_cache_folder().parts[-3:] == ("Library", "Caches", "cocoloss")


def test_unknown_names_are_guessed(tmp_path):
    with pytest.raises(CoCoError, match="did you mean 'credit-g'"):
        OpenMLSource(cache=tmp_path).load("credit_g")
    with pytest.raises(CoCoError, match="suite must be one of 'openml-cc18'"):
        OpenMLSource("openml-cc17")


def test_a_place_that_cannot_be_written_is_not_taken_for_a_broken_connection(fake, source):
    md5 = hashlib.md5(fake.original).hexdigest()  # noqa: S324 - as OpenML has it
    source.cache.part_of(f"openml-3-{md5}").mkdir()
    assert "cannot write" in complaint(source)
