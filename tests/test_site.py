"""The documentation builds into a site without a warning, and all of it holds together."""

import html
import importlib
import inspect
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

import cocoloss
from cocoloss.cli import main

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
# The command has a page of its own; the others are earlier names, and what stages share inside.
HIDDEN = ("__main__", "cli", "data", "preprocessing", "json_text", "number_text", "pace", "threads")
PARTS = [
    part.name
    for part in pkgutil.iter_modules(cocoloss.__path__)
    if part.name not in HIDDEN and not part.name.startswith("_")
]
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site, and return its folder."""
    if find_spec("mkdocs") is None or find_spec("mkdocstrings_handlers") is None:
        pytest.skip("mkdocs is not installed: pip install .[docs]")
    folder = tmp_path_factory.mktemp("site")
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr
    return folder


def texts(site):
    return {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}


def test_reading_needs_no_other_host(site):
    fetched = re.compile(r'<(?:script|img|iframe|link)[^>]+(?:src|href)="?(https?:)?//')
    assert not {name for name, text in texts(site).items() if fetched.search(text)}
    styles = [*site.rglob("*.css")]
    assert styles
    assert not [path for path in styles if re.search(r"url\(\"?https?:", path.read_text())]


def test_formulas_are_set(site):
    pages = texts(site)
    assert pages["theory.html"].count("<math ") > 100
    assert pages["reference/losses.html"].count("<math ") > 3  # of docstrings
    assert not [name for name, text in pages.items() if "arithmatex" in text]


def test_docstrings_leave_no_markup(site):
    for name, text in texts(site).items():
        words = html.unescape(re.sub(r"<[^>]+>", "", text))
        assert not re.search(r":(class|func|meth|mod|math|attr):`|\.\. math::|={4,}  =", words), (
            name
        )


@pytest.mark.parametrize("part", PARTS)
def test_every_public_class_and_function_is_in_the_reference(site, part):
    module = importlib.import_module(f"cocoloss.{part}")
    public = [getattr(module, name) for name in getattr(module, "__all__", vars(module))]
    ours = [
        value
        for value in public
        if (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith(f"cocoloss.{part}")
        and not value.__name__.startswith("_")
    ]
    if not ours:
        pytest.skip("nothing public yet")
    page = (site / "reference" / f"{part}.html").read_text()
    # A function that has the name of its file is listed under the file.
    names = [(f"cocoloss.{part}.{v.__name__}", f"{v.__module__}.{v.__name__}") for v in ours]
    assert not [name for name, full in names if not re.search(f'id="({name}|{full})"', page)]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "examples").glob("[0-9]*.py")), ids=lambda p: p.stem
)
def test_every_example_has_a_page_with_its_code(site, path):
    page = (site / "gallery" / f"{path.stem}.html").read_text()
    words = html.unescape(re.sub(r"<[^>]+>", "", page))
    code = path.read_text()
    assert code[code.index('"""\n\n') + 5 :].strip() in words
    assert f"../images/gallery/{path.stem}.png" in page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_hold_in_the_repository(page):
    links = [link.partition("#")[0] for link in LINK.findall(page.read_text()) if ":" not in link]
    assert not [link for link in links if link and not (page.parent / link).exists()]


def test_the_commands_of_the_tutorial_work(tmp_path, monkeypatch):
    text = (DOCS / "tutorial.md").read_text()
    monkeypatch.chdir(tmp_path)
    exec(re.search(r"```python\n(.*?to_csv.*?)```", text, re.DOTALL)[1], {})  # noqa: S102
    commands = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()
    assert len(commands) == 4
    shorter = {"predict": [], "evaluate": ["--epochs=5", "--folds=2"]}
    for command in commands:
        program, name, *arguments = shlex.split(command)
        assert program == "cocoloss"
        asked = [name, *arguments, *shorter.get(name, ["--epochs=5"])]
        result = CliRunner().invoke(main, asked)
        assert result.exit_code == 0, result.output
    made = {path.name for path in tmp_path.iterdir()}
    assert {"patients.coco", "predictions.csv", "report.html"} < made
    header = (tmp_path / "predictions.csv").read_text().splitlines()[0]
    assert header == "prediction,probability_fast,probability_slow,outlier_score"


def test_every_note_on_the_paper_is_in_the_first_table_of_decisions():
    page, _ = (DOCS / "decisions.md").read_text().split("\n## What the paper claims")
    package = ROOT / "src" / "cocoloss"
    marked = {
        path.relative_to(package if path.is_relative_to(package) else ROOT).as_posix()
        for path in (*package.rglob("*.py"), *(ROOT / "paper").glob("*.py"))
        if "NOTE[PAPER]" in path.read_text()
    }
    assert marked
    assert not {path for path in marked if f"`{path}`" not in page}


@pytest.mark.parametrize(
    ("open_point", "choice"),
    [
        (r'says "with $\alpha = 1$"', "1 is the loss as printed"),
        (r"$(\lVert h\rVert - 1)^2$ in the norm term", "only it is a pair term with i = j"),
    ],
)
def test_choices_that_no_code_marks_are_in_the_list_of_decisions(open_point, choice):
    rows = (DOCS / "decisions.md").read_text().splitlines()
    (row,) = (row for row in rows if open_point in row)
    assert choice in row


def test_decisions_are_an_index_of_notes():
    index = (DOCS / "decisions.md").read_text()
    assert len(index.splitlines()) <= 200
    for note in (DOCS / "decisions").glob("*.md"):
        text = note.read_text()
        questions = re.findall(r"^(?:## |\| )(.*\?)(?:$| \|)", text, re.MULTILINE)
        assert questions
        assert not [each for each in questions if f"[{each}](decisions/{note.name}#" not in index]
        measured = [part for part in text.split("\n## ")[1:] if not part.startswith("Smaller")]
        assert not [
            part for part in measured if "**Decision.**" not in part or "**Why.**" not in part
        ]


def test_tables_of_decisions_have_short_cells():
    for page in (DOCS / "decisions.md", *(DOCS / "decisions").glob("*.md")):
        cells = re.findall(r"(?<=\| )[^|\n]+(?= \|)", page.read_text())
        assert not [cell for cell in cells if len(cell.split()) > 50], page
