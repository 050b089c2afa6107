"""A real browser for tests of pages: a conftest imports the fixtures `chromium` and `open_page`."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
MUST_RUN = "COCOLOSS_BROWSER_TESTS"  # set to 1 where a missing browser is a failure


def missing(reason):
    if os.environ.get(MUST_RUN) == "1":
        pytest.fail(f"{reason}, and {MUST_RUN}=1")
    pytest.skip(reason)


@pytest.fixture(scope="module")  # not longer: while it is open, no other loop of asyncio can run
def chromium():
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415
    except ImportError:
        missing("playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing("there is no chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


def new_page(chromium, path, *, width=1280, height=900, color_scheme="light", **options):
    """Open a file; the page keeps what it logs as errors, and what it asks of the network."""
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=color_scheme, **options
    )
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.errors, page.requests = [], []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("console", lambda m: page.errors.append(m.text) if m.type != "log" else None)
    page.on("dialog", lambda dialog: page.errors.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(path.as_uri())
    return page


@pytest.fixture
def open_page(chromium):
    """Open files, which are closed after the test."""
    pages = []

    def open_file(path, **options):
        pages.append(new_page(chromium, path, **options))
        return pages[-1]

    yield open_file
    for page in pages:
        page.context.close()


# Contrast of every text with what is behind it, as the web guidelines define it.
CONTRASTS = """
() => {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const paint = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = colour;
    paint.fillRect(0, 0, 1, 1);
    return paint.getImageData(0, 0, 1, 1).data;
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = rgba(getComputedStyle(at).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255, 255];
  };
  const light = (c) => [0.2126, 0.7152, 0.0722].reduce((sum, weight, k) => {
    const v = c[k] / 255;
    return sum + weight * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  }, 0);
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const hidden = !node.getClientRects().length || ["SCRIPT", "STYLE"].includes(node.tagName);
    if (!own || hidden) continue;
    const style = getComputedStyle(node);
    const ink = rgba(node.namespaceURI.endsWith("svg") ? style.fill : style.color);
    if (ink[3] < 255) continue;
    const [a, b] = [light(ink), light(behind(node))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found.push([contrast, `${node.tagName} ${node.textContent.slice(0, 40)}`]);
  }
  return found.sort((p, q) => p[0] - q[0]);
}
"""
