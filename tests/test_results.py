"""The page of results has the numbers of the committed rows."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results"


def test_the_page_has_the_numbers_of_the_rows():
    command = [sys.executable, FOLDER / "page.py", "--check"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_every_picture_of_the_page_is_there():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    named = {part.partition(")")[0] for part in page.split("](images/results/")[1:]}
    assert named
    assert named == {path.name for path in (ROOT / "docs" / "images" / "results").iterdir()}


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.parquet")), ids=lambda file: file.name)
def test_rows_hold_no_path_of_a_machine(file):
    text = pd.read_parquet(file).astype(str).to_csv()
    assert not [place for place in ("/work", "/home", "/root", "folder:/") if place in text]
