"""What every page has in common: strangers' text stays text, and nothing is fetched."""

import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from cocoloss.report.document import MISSING, percent, significant, visible
from cocoloss.report.markup import asset, environment, render


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


PARAGRAPH = environment().from_string('<p title="{{ text }}">{{ text }}</p>')
PAGE = environment().from_string(
    '{% extends "base.html" %}{% block kind %}test{% endblock %}{% block body %}x{% endblock %}'
)


def page(**options):
    """Return a page without content."""
    options = {"title": "t", "styles": ["page.css"], "scripts": ["draw.js"], "data": {}} | options
    return render(PAGE, **options)


@given(st.text())
def test_text_is_read_back_as_it_is(text):
    read = Reader(PARAGRAPH.render(text=text))
    assert read.tags == ["p"]
    assert read.text == visible(text)
    assert read.attributes["title"] == visible(text)
    visible(text).encode()
    assert visible("👩‍🔬 שלום \u202ex") == "👩‍🔬 שלום \u202ex"


@given(st.recursive(st.none() | st.text() | st.integers(), lambda s: st.lists(s, max_size=3)))
def test_data_is_read_back_and_cannot_end_its_element(data):
    text = re.search(r'id="data">(.*?)</script>', page(data=data, styles=[], scripts=[]))[1]
    assert json.loads(text) == data
    assert not set("<>&") & set(text)


def test_what_is_missing_is_an_error_none_is_nothing_and_names_are_isolated():
    with pytest.raises(UndefinedError):
        PARAGRAPH.render()
    assert PARAGRAPH.render(text=None) == '<p title=""></p>'
    name = environment().get_template("macros.html").module.name
    assert name("<x>") == '<bdi class="name" title="&lt;x&gt;">&lt;x&gt;</bdi>'
    assert "(empty)" in name("  ")


def test_the_policy_knows_every_script_and_style_by_its_hash():
    text = page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2
    assert asset("page.css") in text
    assert asset("draw.js") in text


def test_a_page_refers_to_nothing_outside():
    for part in (files("cocoloss.report") / "assets").iterdir():
        text = part.read_text(encoding="utf-8")
        addresses = set(re.findall(r"https?://[^\"'` )]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}  # the name of a language, not a place
        assert "url(" not in text
        assert "@import" not in text
        assert "innerHTML" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.500"),
        (99.96, "100"),
        (1234.5, "1235"),
        (100000.0, "1.0×10⁵"),  # noqa: RUF001
        (0.000999, "1.0×10⁻³"),  # noqa: RUF001
        (-0.25, "-0.250"),
        (float("inf"), "∞"),
        (-float("inf"), MISSING),
        (None, MISSING),
    ],
)
def test_numbers_have_three_digits_and_shares_one_decimal(value, text):
    assert significant(value) == text
    assert percent(0.97222) == "97.2\u202f%"
    assert percent(float("nan")) == percent(None) == MISSING
