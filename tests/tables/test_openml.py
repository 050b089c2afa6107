"""OpenML through scikit-learn: what it asks the network for is answered here."""

import gzip
import hashlib
import io
import json
import warnings
from pathlib import Path
from urllib.error import HTTPError, URLError

import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.tables import OpenMLSource, suite_entries

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "openml-cc18"
# A few lines of each kind of column, with a row number and a column to ignore.
KR_VS_KP = b"""@relation kr-vs-kp
@attribute id numeric
@attribute secret {x,y}
@attribute bkblk {1,2,'50 %'}
@attribute size numeric
@attribute class {won,nowin}
@data
1,x,1,1.5,won
2,y,2,?,nowin
3,x,?,2.5,won
4,x,'50 %',3.5,?
5,x,'50 %',4,nowin
"""
NUMBERS = ["id", "size"]
COLUMNS = ["id", "secret", "bkblk", "size", "class"]
FILE = "data/v1/download/3/kr-vs-kp.arff"


def feature(j, name):
    return {
        "index": str(j),
        "name": name,
        "data_type": "numeric" if name in NUMBERS else "nominal",
        "is_target": str(name == "class").lower(),
        "is_ignore": str(name == "secret").lower(),
        "is_row_identifier": str(name == "id").lower(),
        "number_of_missing_values": "1",
    }


class FakeOpenML:
    """What the server has, and what it was asked for."""

    def __init__(self):
        self.content = KR_VS_KP
        self.wrong_md5 = None
        self.error = None
        self.asked = []

    def urlopen(self, request, **_):
        path = request.full_url.removeprefix("https://www.openml.org/")
        self.asked.append(path)
        if self.error is not None:
            raise self.error
        answer = io.BytesIO(self.content if path == FILE else json.dumps(self.about(path)).encode())
        answer.info = dict  # the headers: nothing is packed
        return answer

    def about(self, path):
        md5 = self.wrong_md5 or hashlib.md5(self.content).hexdigest()  # noqa: S324 - as there
        description = {
            "id": "3",
            "name": "kr-vs-kp",
            "version": "1",
            "status": "active",
            "format": "ARFF",
            "default_target_attribute": "class",
            "md5_checksum": md5,
            "description": "chess",
            "url": f"https://www.openml.org/{FILE}",
        }
        features = [feature(j, name) for j, name in enumerate(COLUMNS)]
        qualities = [{"name": "NumberOfInstances", "value": "5"}]
        return {
            "api/v1/json/data/3": {"data_set_description": description},
            "api/v1/json/data/features/3": {"data_features": {"feature": features}},
            "api/v1/json/data/qualities/3": {"data_qualities": {"quality": qualities}},
        }[path]


@pytest.fixture
def fake(monkeypatch):
    fake = FakeOpenML()
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", fake.urlopen)
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda _: None)
    return fake


@pytest.fixture
def source(tmp_path):
    return OpenMLSource(cache=tmp_path)


def complaint(source):
    with pytest.raises(CoCoError) as error:
        source.load("kr-vs-kp")
    assert "\n" not in str(error.value)
    assert "kr-vs-kp" in str(error.value)
    return str(error.value)


def test_the_suite_has_its_72_tasks_and_agrees_with_the_copy_beside_the_checkout():
    entries = suite_entries("openml-cc18")
    for field in zip(*entries, strict=True):
        assert len(set(field)) == 72
    assert (14970, 1478, "har") in entries
    if not (FOLDER / "index.csv").exists():
        pytest.skip("no copy of the suite")
    index = pd.read_csv(FOLDER / "index.csv")
    triples = index[["openml_task_id", "openml_data_id", "name"]].itertuples(index=False, name=None)
    assert set(triples) <= {tuple(entry) for entry in entries}


@pytest.mark.usefixtures("fake")
def test_a_table_is_what_openml_says(source):
    table = source.load("kr-vs-kp")
    assert list(table.X.columns) == ["bkblk", "size"]  # neither the row number nor the ignored
    assert table.categorical == ("bkblk",)
    assert not table.X["bkblk"].cat.ordered
    assert table.X["bkblk"].astype(object).tolist()[::3] == ["1", "50 %"]
    assert table.X["size"].dtype == "float64"
    assert table.X["size"].isna().sum() == 1
    assert table.y.tolist() == ["won", "nowin", "won", "nowin"]
    assert table.n_left_out == 1  # which has no class


def test_a_table_has_the_fingerprint_that_our_own_reader_gave_it(fake, source):
    fake.content = fake.content.replace(b"50 %", b"50")
    assert source.load("kr-vs-kp").fingerprint[:16] == "deab53222696d0b2"


def test_a_table_is_fetched_once_and_needs_no_network_then(fake, source):
    assert not source.is_cached("kr-vs-kp")
    first = source.load("kr-vs-kp").fingerprint
    assert source.is_cached("kr-vs-kp")
    fake.asked.clear()
    fake.error = URLError("no network")
    assert source.load("kr-vs-kp").fingerprint == first
    assert not fake.asked


def test_a_damaged_file_of_the_cache_is_fetched_again(source, fake, tmp_path):
    # What scikit-learn's issue 34260 was about; mended in 1.9.1, which is pinned.
    first = source.load("kr-vs-kp").fingerprint
    [kept] = tmp_path.rglob("kr-vs-kp.arff.gz")
    kept.write_bytes(gzip.compress(KR_VS_KP.replace(b"won", b"one")))
    fake.asked.clear()
    with pytest.warns(RuntimeWarning, match="Invalid cache"):
        assert source.load("kr-vs-kp").fingerprint == first
    assert fake.asked == [FILE]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"error": URLError("no route to host")}, "connect to the network, or name a folder"),
        ({"error": HTTPError("http://x", 503, "busy", None, None)}, "HTTP Error 503: busy"),
        ({"error": HTTPError("http://x", 412, "unknown", None, None)}, "data_id 3 not found"),
        ({"wrong_md5": "0" * 32}, "md5 checksum"),
        ({"content": b"<html>moved</html>"}, "cannot be read"),
    ],
)
def test_what_cannot_be_had_gives_one_clear_line(fake, source, changes, said):
    for name, value in changes.items():
        setattr(fake, name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert said in complaint(source)


def test_the_folder_is_that_of_scikit_learn_and_must_be_writable(fake, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot be fetched" in complaint(OpenMLSource(cache=tmp_path / "file" / "cache"))
    assert not fake.asked
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "mine"))
    assert OpenMLSource().folder == tmp_path / "mine"
    monkeypatch.delenv("SCIKIT_LEARN_DATA")
    assert OpenMLSource().folder == Path.home() / "scikit_learn_data"


def test_unknown_names_are_guessed(source):
    with pytest.raises(CoCoError, match="did you mean 'credit-g'"):
        source.load("credit_g")
    with pytest.raises(CoCoError, match="suite must be one of 'openml-cc18'"):
        OpenMLSource("openml-cc17")
