import json
from urllib.error import URLError

import pytest


def test_list_names_the_tables_of_a_source(run, refused):
    result = run("data", "list", "sklearn")
    assert result.stdout.split() == ["iris", "wine", "breast_cancer", "digits"]
    assert result.stderr == "sklearn, 4 tables:\n"
    result = run("data", "list", "--json")
    listed = json.loads(result.stdout)
    assert (len(listed), result.stderr) == (72, "")
    assert "credit-g" in {table["name"] for table in listed}
    assert "did you mean 'sklearn'?" in refused("data", "list", "sklern")


def test_check_reads_the_tables_and_says_what_they_are(run, frame, tmp_path):
    (check,) = json.loads(run("data", "check", "sklearn", "--dataset", "wine", "--json").stdout)
    assert (check["n_rows"], check["n_classes"], check["problem"]) == (178, 3, None)
    path = tmp_path / "gaps.csv"  # rows without a class are left out, as `fit` does
    frame.assign(kind=frame["kind"].where(frame.index > 4)).to_csv(path, index=False)
    result = run("data", "check", f"file:{path}#kind")
    assert result.stderr == "note: gaps: left out 5 rows without a target\n"
    assert "gaps  145 rows, 5 columns, 3 classes, " in result.stdout
    (check,) = json.loads(run("data", "check", f"file:{path}#kind", "--json").stdout)
    assert (check["n_rows"], check["n_left_out"]) == (145, 5)
    path.write_text("a;b;kind\n7.730;1,5;x\n1.250;2,5;y\n1.300;2;x\n")
    assert "have --decimal" in run("data", "check", f"file:{path}#kind").stderr


def test_check_fails_where_a_table_cannot_be_used(run, tmp_path):
    (tmp_path / "good.csv").write_text("a,target\n1,x\n2,y\n3,x\n")
    (tmp_path / "bad.csv").write_text("a,target\n1,x\n2\n")
    output = run("data", "check", f"folder:{tmp_path}", code=1).stdout
    assert "good  3 rows" in output
    assert "bad  unusable: " in output


def test_tables_that_are_neither_here_nor_there_are_one_clear_line(
    run, refused, tmp_path, monkeypatch
):
    assert "is here already" in run("data", "get", "sklearn").stdout
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda _: None)

    def nobody(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", nobody)
    assert "credit-g" in refused("data", "get", "--dataset", "credit-g")


@pytest.mark.parametrize("group", ["data", "bench"])
def test_a_group_without_a_command_prints_its_help(run, group):
    result = run(group)
    assert result.stdout == run(group, "--help").stdout
    assert result.stderr == ""
