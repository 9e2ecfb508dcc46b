"""What MkDocs does not find in docs/: navigation, pages made from the program, source files.

`navigation`, `links`, `commands` and `python_api` find them; this module gives them to MkDocs.
"""

from __future__ import annotations

import logging
import posixpath
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "docs" / "_site"), str(ROOT / "python")]

import commands  # noqa: E402 (this folder is not a package)
import laboratory  # noqa: E402
import links  # noqa: E402
import moving_picture  # noqa: E402
import navigation  # noqa: E402
import python_api  # noqa: E402
import redtail  # noqa: E402
from redtail import model  # noqa: E402
from redtail.cli import app  # noqa: E402

LOG = logging.getLogger("mkdocs.hooks.redtail")  # with --strict its warnings fail the build


def slug(text: str, separator: str) -> str:
    """Return the anchor of a heading, as code hosts make it."""
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation, and anchors as code hosts make them."""
    config.mdx_configs["toc"]["slugify"] = slug
    index = (ROOT / "docs/index.md").read_text()
    config.nav = navigation.navigation(index, navigation.START, navigation.MADE)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Leave programs out, and add what pages link to and what the program tells of itself."""
    pages = []
    for file in list(files):
        if file.src_uri.endswith((".py", ".toml")) or "__pycache__" in file.src_uri:
            files.remove(file)
        elif file.src_uri.endswith(".md"):
            pages.append(f"docs/{file.src_uri}")
    _home(files)
    made = {
        "reference/commands.md": commands.page(_command()),
        "reference/python.md": python_api.functions_page(redtail),
        "reference/python-objects.md": python_api.objects_page(model),
        "reference/python-gym.md": python_api.gym_page(),
        "how-to/replay-example.html": moving_picture.example(),
    }
    for path in sorted({*links.linked([*pages, "README.md"], ROOT), "README.md", "CHANGELOG.md"}):
        text = (ROOT / path).read_text() if path.endswith(".md") else links.shown(path, ROOT)
        made[links.site_name(path)] = text
    for name, text in made.items():
        file = File.generated(config, name, content=text)
        if name == "README.md":
            file.dest_uri, file.url = "index.html", "./"
        elif name == "lab/README.md":  # lab/index.html is the laboratory itself
            file.dest_uri = file.url = "lab/readme.html"
        files.append(file)
    _laboratory(files, config)
    for name in [*python_api.undocumented(redtail), *python_api.undocumented(model)]:
        LOG.warning("%s has no docstring", name)
    return files


def _laboratory(files: Files, config: MkDocsConfig) -> None:
    """Add the page of the laboratory, and experiments for it, if it is built."""
    built = laboratory.files()
    if not built:
        LOG.info("the laboratory is not built, and left out; `make lab` builds it")
        return
    for name, path in built.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, text in laboratory.experiments().items():
        files.append(File.generated(config, name, content=text))


def _home(files: Files) -> None:
    """The README is the first page, so the list of pages needs another name than index.html."""
    index = files.get_file_from_path("index.md")
    assert index is not None
    index.dest_uri = index.url = "pages.html"


def _command() -> object:
    from typer.main import get_command

    return get_command(app)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files outside docs/ lead to their pages on the site."""
    name = page.file.src_uri
    here = f"docs/{name}" if (ROOT / "docs" / name).exists() else name
    if name.startswith("source/") or not (ROOT / here).exists():
        return markdown

    def on_site(target: str) -> str:
        path = links.resolved(here, target)
        if not (ROOT / path).exists():
            return target  # MkDocs reports it
        return posixpath.relpath(links.site_name(path), posixpath.dirname(name) or ".")

    return _shown(name, links.rewritten(markdown, on_site))


def _shown(name: str, markdown: str) -> str:
    """Put the laboratory on the first page and on the pages of queues, if it is built."""
    if not laboratory.files():
        return markdown
    if name == "README.md":
        return laboratory.with_button(markdown)
    folder, _, page = name.rpartition("/")
    return (
        laboratory.with_scene(markdown, page.removesuffix(".md"))
        if folder == "queues"
        else markdown
    )
