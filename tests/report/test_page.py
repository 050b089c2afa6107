"""The shell of a page: strangers' text stays text."""

import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.report.page import (
    Markup,
    as_json,
    asset,
    card,
    element,
    figure,
    name,
    page,
    percent,
    significant,
    table,
    visible,
)


class Reader(HTMLParser):
    """Collects tags and text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.text, self.attributes = [], "", {}
        self.feed(str(text))
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= dict(attrs)

    def handle_data(self, data):
        self.text += data


@given(st.text())
def test_text_inside_an_element_is_read_back_as_it_is(text):
    read = Reader(element("p", text, title=text))
    assert read.tags == ["p"]
    assert read.text == visible(text)
    assert read.attributes["title"] == visible(text)


@given(st.recursive(st.none() | st.text() | st.integers(), lambda s: st.lists(s, max_size=3)))
def test_json_is_read_back_and_cannot_end_its_element(data):
    text = as_json(data)
    assert json.loads(text) == data
    assert not set("<>&") & set(text)


@given(st.text(st.characters(), min_size=1))
def test_visible_text_can_be_written_to_a_file(text):
    assert "\x00" not in visible(text)
    visible(text).encode()


def test_emoji_sequences_and_directions_survive():
    text = "👩‍🔬 שלום \u202ex"
    assert visible(text) == text


def test_attributes_are_named_as_html_names_them():
    made = element("input", type="range", aria_label="a", data_x=0, checked=True, hidden=False)
    assert made == '<input type="range" aria-label="a" data-x="0" checked>'
    assert element("br", class_=None) == "<br>"


def test_markup_is_not_escaped_twice():
    inner = element("b", "<")
    assert element("p", inner, [inner, "&"], None) == "<p><b>&lt;</b><b>&lt;</b>&amp;</p>"


def test_a_name_is_isolated_and_never_blank():
    assert name("<x>") == '<bdi class="name" title="&lt;x&gt;">&lt;x&gt;</bdi>'
    assert "(empty)" in name("  ")


def test_the_policy_knows_every_script_and_style_by_its_hash():
    text = page("t", [element("p", "x")], styles=["page.css"], scripts=["draw.js"], data={})
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src &#x27;none&#x27;" in policy
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2
    assert asset("page.css") in text
    assert asset("draw.js") in text


def test_a_page_refers_to_nothing_outside():
    parts = [asset(f) for f in ("page.css", "run.css", "draw.js", "embedding.js", "run.js")]
    for part in parts:
        addresses = set(re.findall(r"https?://[^\"'` )]+", part))
        assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a language, not a place
        assert "url(" not in part
        assert "@import" not in part
        assert "innerHTML" not in part


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.500"),
        (99.96, "100"),
        (999.4, "999"),
        (1234.5, "1235"),
        (99999.0, "99999"),
        (100000.0, "1.0×10⁵"),  # noqa: RUF001
        (0.000999, "1.0×10⁻³"),  # noqa: RUF001
        (-0.25, "-0.250"),
        (float("inf"), "∞"),
        (-float("inf"), "\u2013"),
        (None, "\u2013"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert significant(value) == text


def test_a_missing_share_is_a_dash():
    assert percent(float("nan")) == percent(None) == "\u2013"


def test_tables_cards_and_figures_escape_what_they_get():
    made = table(["<", "n"], [["a&b", "1"]], caption="<i>")
    made += card("<", "1 < 2", "&", key="k", raw=0.5)
    made += figure("<b>", Markup("<hr>"), caption="'\"")
    read = Reader(made)
    assert "i" not in read.tags
    assert "b" not in read.tags
    assert "hr" in read.tags
    assert "1 < 2" in read.text
    assert read.attributes["data-key"] == "k"
