"""Columns of free text: which are, the parts of their words, and their numbers."""

from collections import Counter
from math import log

import numpy as np
import pandas as pd
import pytest

from cocoloss import CoCoClassifier
from cocoloss.columns import TablePreprocessor, settle_kinds
from cocoloss.columns.encoder import TableEncoder
from cocoloss.columns.texts import BUCKETS, SIZES, find_parts
from cocoloss.exceptions import CoCoError

WORDS = {
    "cook": ["boil", "soup", "with", "onion", "butter", "salt", "pepper", "slowly", "in", "pan"],
    "code": ["return", "array", "of", "floats", "raise", "error", "shape", "differs", "kernel"],
}
rng = np.random.default_rng(0)


def sentences(kind, n, length=6):
    return [" ".join(rng.choice(WORDS[kind], length)) for _ in range(n)]


@pytest.fixture(scope="module")
def table():
    kinds = np.repeat(["cook", "code"], 40)
    titles = sentences("cook", 40) + sentences("code", 40)
    return pd.DataFrame({"title": titles, "size": rng.normal(size=80)}), kinds


def fitted(values, **arguments):
    frame = pd.DataFrame({"a": values, "b": np.arange(len(values)) % 7})
    return TablePreprocessor(**arguments).fit(frame)


def test_text_is_read_and_named(table):
    with pytest.warns(UserWarning, match=r"read as text, by parts of its words: 'title'"):
        preprocessor = TablePreprocessor().fit(table[0])
    assert preprocessor.kinds_ == {"title": "text", "size": "number"}
    names = preprocessor.get_feature_names_out().tolist()
    assert names[:2] == ["size", "title_text_1"]
    made = preprocessor.transform(table[0])
    assert made.shape == (80, len(names))
    assert np.isfinite(made).all()
    assert made[:, 1:].var(axis=0).sum() == pytest.approx(5, rel=1e-4)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (sentences("cook", 60), "text"),
        (sentences("cook", 70) * 2, "text"),  # half of the cells differ
        (sentences("cook", 70) * 3, "category"),  # a third
        (sentences("cook", 15), "category"),  # few
        ([f"row number {k}" for k in range(60)], None),  # differ by digits alone
        ([f"{k:x}-{k * k:x}" for k in range(10**6, 10**6 + 60)], None),
        ([f"name{k}@host.org" for k in range(60)], None),
        (["new york", "los angeles", "san jose"] * 30, "category"),
    ],
)
@pytest.mark.filterwarnings("ignore::cocoloss.columns.column_kinds.ColumnsWarning")
def test_text_has_several_different_words(values, kind):
    assert fitted(values).kinds_.get("a") == kind


@pytest.mark.filterwarnings("error")
def test_who_lists_a_column_as_a_category_has_a_category():
    assert fitted(sentences("cook", 30), categorical_features=["a"]).kinds_["a"] == "category"


def parts_by_loops(text):
    """Return how often each part of the words of a text occurs, by its bucket."""
    counts = Counter()
    for word in text.casefold().split():
        padded = f" {word} "
        for size in SIZES:
            for start in range(len(padded) - size + 1):
                hashed = ord(padded[start])
                for character in padded[start + 1 : start + size]:
                    hashed = (hashed * 0x01000193 & 0xFFFFFFFF) ^ ord(character)
                for multiplier, shift in ((0x9E3779B1, 15), (0x85EBCA6B, 13)):
                    hashed = hashed * multiplier & 0xFFFFFFFF
                    hashed ^= hashed >> shift
                counts[hashed % BUCKETS] += 1
    return counts


def test_parts_are_those_of_plain_loops():
    texts = ["Boil the SOUP", "", "  a  ", "Zürich über 東京 🍲 soup soup", "x" * 50]
    found = find_parts(texts)
    for k, text in enumerate(texts):
        mine = found.text == k
        expected = {bucket: 1 + log(n) for bucket, n in parts_by_loops(text).items()}
        weights = dict(zip(found.bucket[mine].tolist(), found.weight[mine].tolist(), strict=True))
        assert weights == pytest.approx(expected)


@pytest.mark.filterwarnings("ignore::cocoloss.columns.column_kinds.ColumnsWarning")
class TestFitted:
    def test_the_order_of_rows_case_and_spaces_do_not_matter(self, table):
        X = table[0][["title"]]
        order = np.random.default_rng(1).permutation(len(X))
        one, other = TablePreprocessor().fit(X), TablePreprocessor().fit(X.iloc[order])
        np.testing.assert_array_equal(one.transform(X), other.transform(X))
        shouted = X.assign(title=[f"  {text.upper().replace(' ', '   ')}" for text in X["title"]])
        np.testing.assert_array_equal(one.transform(shouted), one.transform(X))

    def test_many_texts_in_blocks_are_as_one_by_one(self, table):
        X = table[0][["title"]]
        preprocessor = TablePreprocessor().fit(X)
        long = pd.DataFrame({"title": [f"{text} " * 500 for text in X["title"]]})
        whole = preprocessor.transform(long)
        single = np.vstack([preprocessor.transform(long.iloc[[k]]) for k in range(len(long))])
        np.testing.assert_allclose(whole, single, atol=1e-6)

    def test_gaps_are_zeros_and_marked_if_training_had_any(self, table):
        X = table[0][["title"]].copy()
        gap = pd.DataFrame({"title": [None, " "]})
        assert not TablePreprocessor().fit(X).transform(gap).any()
        X.loc[3, "title"] = None
        made = TablePreprocessor().fit(X).transform(gap)
        assert (made[:, -1] == 1).all()
        assert not made[:, :-1].any()

    def test_a_copy_of_a_column_is_left_out(self, table):
        X = table[0].assign(again=table[0]["title"])
        assert TablePreprocessor().fit(X).dropped_columns_ == {"again": "duplicate of 'title'"}

    def test_numbers_in_place_of_text_are_read_as_text(self, table):
        preprocessor = TablePreprocessor().fit(table[0])
        numbers = pd.DataFrame({"title": [1.5, 2.0], "size": [0.0, 0.0]})
        assert preprocessor.transform(numbers).shape == (2, preprocessor.n_features_out_)

    def test_a_model_learns_from_it_and_is_saved(self, table, tmp_path):
        X, y = table
        classifier = CoCoClassifier(random_state=0).fit(X, y)
        titles = sentences("cook", 20) + sentences("code", 20)
        new = pd.DataFrame({"title": titles, "size": np.zeros(40)})
        assert classifier.score(new, np.repeat(["cook", "code"], 20)) > 0.9
        assert classifier.feature_importances_.shape == (2,)
        assert classifier.feature_importances_[0] > 0.5
        classifier.save(tmp_path / "m.coco")
        loaded = CoCoClassifier.load(tmp_path / "m.coco")
        np.testing.assert_array_equal(loaded.predict_proba(new), classifier.predict_proba(new))

    def test_a_state_that_does_not_fit_together_is_refused(self, table):
        encoder = TablePreprocessor().fit(table[0]).encoder_
        again = TableEncoder.from_state(encoder.to_state())
        np.testing.assert_array_equal(again.transform(table[0]), encoder.transform(table[0]))
        state = encoder.to_state()
        del state["texts"]
        with pytest.raises(CoCoError, match="texts of columns do not fit together"):
            TableEncoder.from_state(state)
        for name, value in {
            "components": np.zeros((3, 7), np.float32),
            "rarity": np.zeros(BUCKETS, np.float32),
            "has_missing": 1,
        }.items():
            state = encoder.to_state()
            state["texts"]["title"][name] = value
            with pytest.raises(CoCoError, match=f"its {name}"):
                TableEncoder.from_state(state)

    def test_folds_read_it_as_the_whole(self, table):
        settled = settle_kinds(table[0])
        assert TablePreprocessor().fit(settled.iloc[::2]).kinds_["title"] == "text"
