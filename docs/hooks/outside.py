"""Pages that live elsewhere in the repository: the examples, the changelog, how to contribute.

On GitHub a link from docs/ to ``../examples/02_collapse.py`` opens the file; in the site it
opens the page that is made of the file here.
"""  # noqa: INP001 - mkdocs loads it as a file

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
# path in the repository -> page of the site
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"} | {
    f"examples/{path.name}": f"gallery/{path.stem}.md"
    for path in sorted((ROOT / "examples").glob("[0-9]*.py"))
}
ORIGINS = {page: path for path, page in PAGES.items()}
LINK = re.compile(r"(?<=\]\()[^)\s:#]+(?=[)#])")  # a path, not an address


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add a page for each file."""
    for path, page in PAGES.items():
        text = (ROOT / path).read_text(encoding="utf-8")
        content = example_page(Path(path).stem, text) if path.endswith(".py") else text
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links between files of the repository point to their pages."""
    return with_site_links(markdown, page.file.src_uri)


def example_page(name: str, code: str) -> str:
    """Return the page of an example: its story, its picture, its code."""
    story = ast.get_docstring(ast.parse(code)) or ""
    title, _, rest = story.partition("\n")
    rest = re.sub(r" {2,}\((.*)\)$", r"  # \1", rest, flags=re.MULTILINE)  # how long it takes
    _, _, body = code.partition('"""\n\n')  # what follows the story
    return (
        f"# {title.rstrip('.')}\n{rest}\n\n"
        f"![{title}](../images/gallery/{name}.png)\n\n"
        f'```python title="examples/{name}.py"\n{body.rstrip()}\n```\n'
    )


def with_site_links(markdown: str, page: str) -> str:
    """Return the text of a page with links that hold in the site.

    >>> with_site_links("[a](../CHANGELOG.md), [b](losses.md#x)", "index.md")
    '[a](changelog.md), [b](losses.md#x)'
    >>> with_site_links("[a](docs/losses.md)", "changelog.md")
    '[a](losses.md)'
    """
    origin = ORIGINS.get(page, f"docs/{page}")

    def mend(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link[0]))
        if path in PAGES:
            target = PAGES[path]
        elif page in ORIGINS and path.startswith("docs/"):
            target = path.removeprefix("docs/")
        else:
            return link[0]
        return posixpath.relpath(target, posixpath.dirname(page) or ".")

    return LINK.sub(mend, markdown)
