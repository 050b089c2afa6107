"""What an installed wheel must do where no extra is installed: `make wheel-test` runs it.

A script without pytest, for that is not there. It runs from an empty folder, with the Python of an
environment that holds the wheel and what it depends on; the repository is that of the file itself.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import chdir
from importlib.metadata import files, version
from pathlib import Path

import cocoloss
from cocoloss.exceptions import CoCoError

ROOT = Path(__file__).resolve().parents[1]
COMMAND = Path(sys.executable).with_name("cocoloss")


def called(*arguments, status=0):
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stderr}"
    return done


def refused(*arguments, extra):
    """See a command refused by one line, which names the extra that is lacking."""
    *notes, line = called(*arguments, status=1).stderr.splitlines()
    assert line.startswith("error: "), line
    assert all(note.startswith("note: ") for note in notes), notes
    assert line.endswith(f"pip install 'cocoloss[{extra}]'"), line


def test_it_is_the_installed_package_that_is_tried():
    assert Path(cocoloss.__file__).is_relative_to(sys.prefix)
    assert "src" not in " ".join(sys.path)
    told = called("--version").stdout.split()[-1]
    assert told == cocoloss.__version__ == version("cocoloss")


def test_importing_it_loads_no_torch():
    asked = "import cocoloss, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-P", "-c", asked], check=True)


def test_the_wheel_holds_the_package_and_nothing_else():
    folders = {path.parts[0] for path in files("cocoloss") if ".." not in path.parts}
    assert folders == {"cocoloss", f"cocoloss-{version('cocoloss')}.dist-info"}
    kinds = {path.suffix for path in files("cocoloss") if path.parts[0] == "cocoloss"}
    assert kinds == {".py", ".pyc", ".typed", ".html", ".css", ".js", ".csv"}  # pip made the .pyc


def test_the_source_holds_what_its_tests_and_pages_need():
    for name in ("src/cocoloss", "tests/cli", "docs/how-to", "examples", "paper", "bench"):
        assert (ROOT / name).is_dir(), name
    for name in (
        "Makefile",
        "constraints.txt",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "results/page.py",
    ):
        assert (ROOT / name).is_file(), name
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        linked = re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8"))
        assert not [name for name in linked if not (page.parent / name).exists()], page


def test_the_first_commands_of_the_readme_run():
    shutil.copytree(ROOT / "examples", "examples")
    text = (ROOT / "README.md").read_text(encoding="utf-8").split("## Try it")[0]
    commands = re.findall(r"^    cocoloss (.*)$", text, flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["fit", "predict", "report"]
    for command in commands:
        called(*command.split())
    assert Path("predictions.csv").read_text(encoding="utf-8").count("\n") == 101
    assert "<html" in Path("churn.html").read_text(encoding="utf-8")[:200]


def test_what_needs_an_extra_says_which():
    with zipfile.ZipFile("table.xlsx", "w") as workbook:
        workbook.writestr("xl/workbook.xml", "<workbook/>")
    Path("table.parquet").write_bytes(b"PAR1 a table PAR1")
    Path("table.arff").write_text("@relation r\n@attribute a numeric\n@data\n1\n")
    fit = ("fit", "examples/customers.csv", "--target", "churned", "--out", "tuned.coco")
    predict = ("predict", "churn.coco", "examples/new_customers.csv", "--out")
    refused("describe", "table.xlsx", "--target", "y", extra="excel")
    refused("describe", "table.parquet", "--target", "y", extra="parquet")
    refused("describe", "table.arff", "--target", "y", extra="arff")
    refused(*predict, "predictions.parquet", extra="parquet")
    refused(*fit, "--tune", "3", extra="tune")
    refused("bench", "run", str(ROOT / "paper" / "accuracy-smoke.toml"), extra="benchmark")
    try:
        cocoloss.load("churn.coco").to_onnx("churn.onnx")
    except CoCoError as error:
        assert str(error).endswith("pip install 'cocoloss[onnx]'"), error
    else:
        raise AssertionError("there is no onnx, and to_onnx went through")


def test_classes_numbers_and_levels_are_learnt_saved_and_loaded():
    from sklearn.datasets import load_diabetes, load_wine  # noqa: PLC0415 - not with cocoloss

    X, y = load_wine(return_X_y=True, as_frame=True)
    of_classes = cocoloss.CoCoClassifier(random_state=0).fit(X[::2], y[::2])
    assert of_classes.score(X[1::2], y[1::2]) > 0.9
    networks = cocoloss.CoCoClassifier(solver="network", random_state=0).fit(X[::2], y[::2])
    assert networks.score(X[1::2], y[1::2]) > 0.9
    levels = cocoloss.CoCoOrdinalClassifier(random_state=0).fit(X[::2], y[::2])
    assert levels.score(X[1::2], y[1::2]) > 0.9
    numbers, value = load_diabetes(return_X_y=True, as_frame=True)
    of_numbers = cocoloss.CoCoRegressor(random_state=0).fit(numbers[::2], value[::2])
    assert of_numbers.score(numbers[1::2], value[1::2]) > 0.3
    models = {of_classes: X, networks: X, levels: X, of_numbers: numbers}
    for model, rows in models.items():
        model.save("model.coco")
        assert (cocoloss.load("model.coco").predict(rows) == model.predict(rows)).all()


def test_a_loss_goes_forward_and_backward():
    import torch  # noqa: PLC0415 - cocoloss comes first, without it

    embeddings, labels = torch.randn(64, 16, requires_grad=True), torch.arange(64) % 10
    cocoloss.CoCoLoss(n_classes=10)(embeddings, labels).backward()
    assert torch.isfinite(embeddings.grad).all()
    assert embeddings.grad.any()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test()
                print(name.removeprefix("test_").replace("_", " "))
