"""Figures that sentences of the README and other pages give are those of the tables of results."""

import json
import re
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def words_of(path):
    """Return the text of a page on one line, without what is filled in by commands."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return " ".join(re.sub(r"<!-- (?!end).*?<!-- end -->", "", text, flags=re.DOTALL).split())


def table(name):
    """Return a table of the page of results as {first cell: {heading: cell}}."""
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    _, found, part = page.partition(f"<!-- {name} -->")
    assert found, name
    lines = [line for line in part.partition("<!-- end -->")[0].splitlines() if line[:1] == "|"]
    heading, _, *rows = ([cell.strip(" *") for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0]: dict(zip(heading[1:], row[1:], strict=True)) for row in rows}


MEASURES = table("accuracy-lite/measures")
FIVE = table("accuracy-lite/paper/reference")
LIKE = table("accuracy-lite/weighted/reference")
WINS = table("accuracy-lite/paper/wins")
RANKS = table("accuracy-lite/weighted/ranks")
CONVERGENCE = table("convergence/paper/ranks-by-mean")["coco"]
GAUSSIAN = table("convergence/gaussian/means")
TREND = table("imbalance-lite/balanced_accuracy/trend")
SLOPES = table("imbalance-lite/balanced_accuracy/slopes")
NOISE = table("imbalance-lite/noise")
CENTRES = table("evolution/credit-g/coco-plain/measures")


def score(model, measure="balanced accuracy"):
    return f"{float(MEASURES[model][measure]):.3f}"


def points(table, model):
    """Return a mean difference in points, without its sign."""
    return f"{abs(100 * float(table[model]['mean difference'])):.1f}"


def lead(model, other):
    """Return by how many points the mean of a model is better than that of another."""
    ours, theirs = (float(MEASURES[name]["balanced accuracy"]) for name in (model, other))
    return 100 * (ours - theirs)


def gain(model):
    """Return by how many points a model is better when told to count classes alike."""
    return f"{lead(f'{model}-w', model):.1f}"


def losses(terms):
    return "{}, {} and {}".format(*(GAUSSIAN[loss][terms] for loss in ("coco", "dr", "ce")))


def against_svm(ratio):
    """Return the wins against the kernel SVM, of how many tables of a class ratio."""
    row = WINS[f"largest class / smallest: {ratio}"]
    wins = row["against ksvm"].split(" / ")[0]
    return f"{'none' if wins == '0' else wins} of {row['datasets']}"


def p_value(model, test):
    return f"p = {float(LIKE[model][f'p {test}']):.2g}"


def beside_realmlp():
    """Return the speedup, and the points of balanced accuracy that it costs."""
    path = ROOT / "bench" / "results" / "realmlp.json"
    measured = json.loads(path.read_text(encoding="utf-8"))
    ours, theirs = (statistics.mean(scores) for scores in measured["balanced accuracy"].values())
    return f"{measured['speedup']:.1f}", f"{100 * (theirs - ours):.1f}"


def percent(model, how):
    return f"{float(LIKE[model][f'P({how})'].removesuffix(' %')):.0f} %"


N_TABLES = MEASURES["coco"]["datasets"]
SPEEDUP, COST = beside_realmlp()
FIGURES = {
    "README.md": (
        f"Over {N_TABLES} tables of OpenML-CC18",
        f"mean balanced accuracy of {score('coco-default')}. Tuned peers",
        (
            f"kernel SVM {score('ksvm-w')}, boosted trees {score('hgb-w')}, "
            f"cross-entropy {score('ce-w')}, random forest {score('rf-w')}, "
            f"dot regression {score('dr-w')}; "
            f"a tuned CoCo network {score('coco-w')}."
        ),
        (
            f"({RANKS['ksvm-w']['rank by mean']} of {len(RANKS)}, "
            f"the default {RANKS['coco-default']['rank by mean']})"
        ),
        f"mean log loss, {score('coco-default', 'log loss')}, is",
        f"(weighted boosted trees {score('hgb-w', 'log loss')})",
        f"CoCo ({score('coco')}) and the kernel SVM ({score('ksvm')})",
        f"cross-entropy ({score('ce')}) and the forest ({score('rf')})",
        (
            f"{CONVERGENCE['64'].split()[0]} after 64 terms of the loss "
            f"and {CONVERGENCE['1,024'].split()[0]} after 1,024."
        ),
        f"start level ({losses('64')})",
        f"cross-entropy ({losses('1,024')})",
        (
            f"(kernel SVM {score('ksvm', 'accuracy')}, forest {score('rf', 'accuracy')}, "
            f"cross-entropy {score('ce', 'accuracy')}, the default "
            f"{score('coco-default', 'accuracy')}, which"
        ),
        f"ahead of the plain one on {against_svm('below 1.5')} tables",
        f"{SPEEDUP} times faster than RealMLP and {COST} points less accurate",
    ),
    "docs/index.md": (
        f"Over {N_TABLES} tables of OpenML-CC18",
        f"mean balanced accuracy of {score('coco-default')};",
        (
            f"a kernel SVM has {score('ksvm-w')}, boosted trees {score('hgb-w')}, "
            f"cross-entropy {score('ce-w')} and a random forest {score('rf-w')}."
        ),
    ),
    "docs/results.md": (
        f"by {points(FIVE, 'ce')} and {points(FIVE, 'rf')} points on average",
        (
            f"boosted trees {gain('hgb')} points, the kernel SVM {gain('ksvm')}, "
            f"cross-entropy {gain('ce')}, the forest {gain('rf')}, and CoCo {gain('coco')}; "
            f"dot regression gains {gain('dr')} and is still last, by {lead('rf-w', 'dr-w'):.1f}."
        ),
        f"{SPEEDUP} times faster, {COST} points lower",
        f"only likely of cross-entropy ({FIVE['ce']['P(better)']})",
        (
            f"on {LIKE['ksvm-w']['losses']} tables against {LIKE['ksvm-w']['wins']} "
            f"and by {points(LIKE, 'ksvm-w')} points on average"
        ),
        f"by ranks of means ({p_value('ksvm-w', 'Nemenyi, by mean')})",
        f"Wilcoxon's test over datasets ({p_value('ksvm-w', 'Wilcoxon-Holm')})",
        f"leaves open ({percent('ksvm-w', 'worse')})",
        f"`CoCoClassifier()` too, by {lead('ksvm-w', 'coco-default'):.2f} points",
        f"equal to the tuned CoCo in practice ({percent('ce-w', 'equal')})",
        f"boosted trees probably ({percent('hgb-w', 'equal')})",
        (
            f"kernel SVM on {against_svm('3 or more')} tables, "
            f"below 1.5 on {against_svm('below 1.5')}."
        ),
        f"lie {100 * float(NOISE['all']['mean absolute difference']):.1f} points apart on average",
        (
            f"p = {float(TREND['p-value of the slope']['ours']):.2g} by least squares, "
            f"but p = {float(SLOPES['coco-balanced']['p of slope']):.2g} with"
        ),
        (
            f"a cosine of {CENTRES['epoch 500']['printed cosine']}, can be matched "
            f"({CENTRES['epoch 500']['cosine of centres']} after"
        ),
    ),
}


@pytest.mark.parametrize(
    ("path", "said"), [(path, said) for path, several in FIGURES.items() for said in several]
)
def test_a_sentence_has_the_figures_of_the_tables(path, said):
    assert said in words_of(path)
