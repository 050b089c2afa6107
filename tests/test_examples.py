"""Every example of the gallery runs with small settings, finds what it says, and draws it."""

import os
import re
import runpy
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytestmark = pytest.mark.docs
ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("[0-9]*.py"))


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run an example in this process, in an empty folder; return what it printed."""
    monkeypatch.syspath_prepend(EXAMPLES)  # as for `python examples/...`
    monkeypatch.chdir(tmp_path)

    def run(name, *args):
        monkeypatch.setattr(sys, "argv", [name, "--quick", *args])
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out

    return run


def numbers(line):
    return [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?|-?\d+", line)]


def table(printed):
    """Return the numbers of each printed line by the words that it begins with."""
    lines = (re.match(r"(\D+?)\s\s+(?=.*\d)(.*)", line) for line in printed.splitlines())
    return {line[1].strip(): numbers(line[2]) for line in lines if line}


def assert_shows_something(picture):
    with Image.open(picture) as image:
        colours = image.convert("RGB").getcolors(maxcolors=100_000)
        pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape[1] >= 1200  # wide enough for a slide
    assert len(colours) > 20
    drawn = np.any(pixels < 200, axis=2)
    assert 0.005 < drawn.mean() < 0.9
    quarters = np.array_split(drawn, 4, axis=1)
    assert all(quarter.any() for quarter in quarters)  # no panel is empty
    edge = np.concatenate([pixels[:3].ravel(), pixels[-3:].ravel(), pixels[:, -3:].ravel()])
    assert (edge > 200).all()  # nothing is cut off


def test_a_first_classifier_is_honest(run):
    printed = table(run("01_first_classifier", "--out", "picture.png"))
    accuracy, loss = printed["CoCoClassifier"]
    _, loss_of_boosting = printed["gradient boosting"]
    assert accuracy > 0.7
    assert loss < loss_of_boosting
    assert_shows_something("picture.png")


def test_the_wines_collapse(run):
    printed = run("02_collapse", "--out", "picture.png")
    spread = [numbers(line)[1] for line in printed.splitlines() if "dispersity" in line]
    assert spread == sorted(spread, reverse=True)
    assert spread[-1] < 0.1 * spread[0]
    assert_shows_something("picture.png")


def test_no_picture_is_drawn_unasked(run, tmp_path):
    run("02_collapse")
    assert not list(tmp_path.iterdir())


def test_the_learnt_kernel_serves_a_support_vector_machine(run):
    printed = table(run("03_kernel", "--out", "picture.png"))
    assert set(printed) == {"breast cancer", "wine", "digits"}
    for learnt, gaussian, _ in printed.values():
        assert learnt > gaussian - 0.05
    assert_shows_something("picture.png")


def test_the_balanced_loss_parts_the_rare_classes(run):
    printed = table(run("04_imbalance", "--out", "picture.png"))
    _, plain_recall, plain_angle = printed["plain CoCo"]
    _, balanced_recall, balanced_angle = printed["balanced CoCo"]
    assert balanced_recall > plain_recall + 0.03
    assert balanced_angle > plain_angle + 15
    assert_shows_something("picture.png")


def test_mistakes_stay_in_the_family(run):
    printed = run("05_own_similarity", "--out", "picture.png")
    rows = table(printed)
    assert rows["families"][2] > rows["simplex"][2] + 0.05
    (agreement,) = numbers(printed.split("similarity:")[1].splitlines()[0])
    assert agreement > 0.85
    assert_shows_something("picture.png")


def test_a_network_of_ones_own_learns_both_ways(run):
    printed = run("06_own_network", "--out", "picture.png")
    accuracies = [numbers(line)[-1] for line in printed.splitlines()[:3]]
    assert min(accuracies) > 0.9
    assert_shows_something("picture.png")


def test_two_processes_train_as_one(tmp_path, monkeypatch, capfd):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.chdir(tmp_path)
    example = str(EXAMPLES / "07_distributed.py")
    monkeypatch.setattr(sys, "argv", [example, "--quick", "--out", "picture.png"])
    with pytest.raises(SystemExit) as end:  # it starts torchrun, which prints by itself
        runpy.run_path(example, run_name="__main__")
    printed, errors = capfd.readouterr()
    assert end.value.code == 0, errors
    together, alone = re.search(r"two ranks ([\d.]+), alone ([\d.]+)", printed).groups()
    assert together == alone
    (apart,) = numbers(printed.split("on the way: ")[1].splitlines()[0])
    assert apart < 1e-10
    assert_shows_something("picture.png")


def test_the_data_parallel_training_of_the_docs_runs_as_printed(tmp_path):
    page = (ROOT / "docs" / "losses.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (block,) = (block for block in blocks if "init_process_group" in block)
    (tmp_path / "train.py").write_text(block)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    ranks = [  # as torchrun starts them
        subprocess.Popen(
            [sys.executable, tmp_path / "train.py"],
            env={**os.environ, **where, "RANK": rank, "LOCAL_RANK": rank, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in ("0", "1")
    ]
    losses = []
    for process in ranks:
        printed, errors = process.communicate(timeout=300)
        # gloo's own threads abort the exit now and then, after the work is done.
        assert process.returncode in (0, -signal.SIGABRT), errors
        losses += re.findall(r"loss of the global batch ([\d.]+)", printed)
    assert len(losses) == 2
    assert len(set(losses)) == 1  # both ranks have the same loss


def test_digits_that_were_never_shown_stand_out(run):
    printed = table(run("08_outliers", "--out", "picture.png"))
    (ours,), (forest,) = printed["outlier score"], printed["isolation forest"]
    assert ours > 0.9
    assert ours > forest
    assert_shows_something("picture.png")


def test_a_collapsed_embedding_forgets(run):
    printed = table(run("09_new_classes", "--out", "picture.png"))
    pixels, coco = np.array(printed["pixels"]), np.array(printed["CoCo embedding"])
    assert (pixels > coco + 0.05).all()
    assert_shows_something("picture.png")


def test_intervals_are_wide_where_they_must_be(run):
    printed = run("10_intervals", "--out", "picture.png")
    shares = {line[:13].strip(): numbers(line) for line in printed.splitlines() if "of all" in line}
    (of_all, *learnt), (_, *even) = shares["learnt widths"], shares["one width"]
    assert 0.85 < of_all < 0.95
    assert np.abs(np.array(learnt) - 0.9).mean() < np.abs(np.array(even) - 0.9).mean()
    (line,) = (line for line in printed.splitlines() if line.startswith("width beside"))
    beside, within = numbers(line)
    assert within > 1.3 * beside
    assert_shows_something("picture.png")


def test_the_median_of_levels_is_nearer_than_a_class_without_an_order(run):
    printed = table(run("11_levels", "--out", "picture.png"))
    off = {name: values[0] for name, values in printed.items()}
    assert off["levels, median"] < off["classes"] - 0.03
    assert off["levels, median"] < off["forest"] - 0.03
    assert_shows_something("picture.png")


def test_rows_without_a_label_help_where_labels_are_few(run):
    printed = table(run("12_few_labels", "--out", "picture.png"))
    assert printed["soft"][0] > printed["ignore"][0]
    assert printed["soft"][-1] > 0.9
    assert_shows_something("picture.png")


def test_columns_of_noise_fade(run):
    printed = run("13_learnt_metric", "--out", "picture.png")
    rows = table(printed)
    assert rows["CoCo"][1] > rows["kernel SVM"][1] + 0.03
    assert rows["CoCo"][1] > rows["boosted trees"][1]
    assert numbers(printed.split("columns of noise have:")[1])[0] < 0.3
    assert_shows_something("picture.png")


def test_the_ridge_path_goes_from_all_alike_to_collapse(run, tmp_path):
    printed = run("14_ridge_path", "--out", "picture.png")
    rows = [numbers(line) for line in printed.splitlines() if line.startswith("ridge")]
    ridges, fitted, left_out, test = np.array(rows)[:, [0, 1, 3, 5]].T
    assert (np.diff(ridges) < 0).all()
    assert fitted[0] > 0.9
    assert fitted[-1] < 0.01
    assert left_out.argmin() == 2  # the one that rows left out have chosen, between the ends
    assert test[2] < min(test[0], test[-1])
    assert_shows_something("picture.png")
    with Image.open(tmp_path / "picture.gif") as film:
        assert film.n_frames == 14


def test_the_film_of_the_gallery_is_small():
    film = ROOT / "docs" / "images" / "gallery" / "14_ridge_path.gif"
    assert film.stat().st_size < 600_000
    assert f"](images/gallery/{film.name})" in (ROOT / "docs" / "gallery.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_in_the_gallery(name):
    picture = ROOT / "docs" / "images" / "gallery" / f"{name}.png"
    assert 10_000 < picture.stat().st_size < 150_000
    assert_shows_something(picture)
    page = (ROOT / "docs" / "gallery.md").read_text()
    assert f"](images/gallery/{name}.png)" in page
    assert f"](../examples/{name}.py)" in page


def test_the_sample_files_are_what_their_script_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["make_customers", "--out", str(tmp_path)])
    runpy.run_path(str(EXAMPLES / "make_customers.py"), run_name="__main__")
    for name in ["customers.csv", "new_customers.csv"]:
        assert (tmp_path / name).read_bytes() == (EXAMPLES / name).read_bytes()


def test_the_commands_that_the_readme_opens_with_run_as_they_stand(tmp_path):
    (tmp_path / "examples").symlink_to(EXAMPLES)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^    cocoloss (.*)$", readme.split("## Try it")[0], flags=re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["fit", "predict", "report"]
    printed = [
        subprocess.run(
            [sys.executable, "-m", "cocoloss", *command.split()],
            cwd=tmp_path,
            check=True,
            capture_output=True,
            encoding="utf-8",
        ).stdout
        for command in commands
    ]
    [shown] = re.findall(r"^```text\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    for line in shown.splitlines():
        words = re.split(r"[.\d±() ]+", line) if line.startswith("quality") else [line]
        assert all(word in printed[0] for word in words), line
    assert (tmp_path / "predictions.csv").read_text().count("\n") == 101
    assert (tmp_path / "churn.html").stat().st_size > 10_000
