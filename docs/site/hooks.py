"""What MkDocs does not do by itself for the site of plait.

* Documents of the root (README, ARCHITECTURE, ...) become pages of the site.
* Links out of docs/ lead to these pages. A link to any other file of the tree becomes its path.
  A link to a file that does not exist is a warning, and so fails the build (`--strict`).
* Lists are written for CommonMark, as GitHub reads them. Python-Markdown needs a blank line before a
  list, and four blanks for what belongs to an item.
* `DIR/*.md` in the navigation stands for every page of a directory, so that generated pages need no entry.
* A comment before the title of a page is left out: MkDocs finds no title behind it.
* The page of the race (`make web`) is a file of the site. If it is not built, a page in its place says how to build it.
* A page that loads anything from the network is a warning.
"""

import itertools
import logging
import os
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

log = logging.getLogger("mkdocs.hooks.plait")

ROOT = Path(__file__).resolve().parents[2]

# Documents outside docs/, and the pages of the site that show them.
DOCUMENTS = {
    "README.md": "project/overview.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
SOURCES = {page: source for source, page in DOCUMENTS.items()}

# The source of the race, and its page in the site.
RACE = {"web/index.html": "race.html"}
NO_RACE = "<!DOCTYPE html>\n<title>plait race</title>\n<p>This site was built without the race: run make web, then make docs.</p>\n"

COMMENT = re.compile(r"\A\s*<!--.*?-->\s*", re.DOTALL)
FENCE = re.compile(r"^( *)(`{3,}|~{3,})")
ITEM = re.compile(r"^(?:[*+-]|\d+\.) +")
CODE = re.compile(r"(`+)(?:.+?)\1")
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^()\s]+)\)")
ATTRIBUTE = re.compile(r'(?P<name>src|srcset)="(?P<to>[^"]+)"')
LOADED = re.compile(
    r"""<(?:script|img|source|iframe)[^>]+src(?:set)?=["']?https?://"""
    r"""|<link[^>]+rel=["']?(?:stylesheet|preconnect|preload|icon)["']?[^>]*https?://"""
    r"""|@import[^;]*https?://|url\(["']?https?://"""
)


def on_config(config):
    """Replaces each `DIR/*.md` of the navigation by the pages of the directory, README.md first."""

    def expanded(entry):
        if isinstance(entry, list):
            return [expanded(part) for part in entry]
        if isinstance(entry, dict):
            return {title: expanded(part) for title, part in entry.items()}
        directory, star, _ = entry.partition("/*.md")
        return pages_of(directory) if star else entry

    config.nav = expanded(config.nav)
    return config


def pages_of(directory):
    """Returns the pages of a directory below docs/, in the order of the links in its README.md."""
    index = (ROOT / "docs" / directory / "README.md").read_text(encoding="utf-8")
    named = list(dict.fromkeys(re.findall(r"\]\(([\w-]+\.md)\)", index)))
    there = sorted(path.name for path in (ROOT / "docs" / directory).glob("*.md"))
    rest = [name for name in there if name not in ["README.md", *named]]
    return [f"{directory}/{name}" for name in ["README.md", *named, *rest]]


def on_files(files, config):
    """Adds a page for each document of the root, and the race."""
    for source, page in DOCUMENTS.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    built = ROOT / "target/web/race.html"
    page = built.read_text(encoding="utf-8") if built.is_file() else NO_RACE
    files.append(File.generated(config, "race.html", content=page))
    return files


def on_page_markdown(markdown, page, config, files):
    """Resolves links out of docs/, and writes lists as Python-Markdown reads them."""
    uri = page.file.src_uri
    source = SOURCES.get(uri, f"docs/{uri}")
    text = COMMENT.sub("", markdown)
    parts = []
    # A link may go on in the next line.
    for inside, lines in itertools.groupby(fenced(text.split("\n")), key=lambda it: it[0]):
        part = "\n".join(line for _, line in lines)
        parts.append(part if inside else links_of(part, source, uri))
    return "\n".join(lists("\n".join(parts).split("\n")))


def fenced(lines):
    """Yields each line, and whether it is code between fences (or a fence)."""
    end = None
    for line in lines:
        fence = FENCE.match(line)
        if end is not None:
            yield True, line
            if fence and fence[2].startswith(end) and line.strip() == fence[2]:
                end = None
        elif fence:
            end = fence[2]
            yield True, line
        else:
            yield False, line


def links_of(text, source, uri):
    """Returns text without fences, with links that hold in the site."""
    codes = []

    def hide(code):
        start = text.rfind("\n", 0, code.start()) + 1
        # In a table GitHub needs `\|` for a bar within code, Python-Markdown shows it as it stands.
        codes.append(code[0].replace("\\|", "|") if text.startswith("|", start) else code[0])
        return f"\0{len(codes) - 1}\0"

    def link(found):
        to = resolved(found["to"], source, uri)
        if to is None:
            return f"{found['text']} (`{target(found['to'], source)[0]}`)"
        return f"{found['image']}[{found['text']}]({to})"

    def attribute(found):
        return f'{found["name"]}="{resolved(found["to"], source, uri)}"'

    hidden = CODE.sub(hide, text)
    linked = ATTRIBUTE.sub(attribute, LINK.sub(link, hidden))
    return re.sub("\0(\\d+)\0", lambda number: codes[int(number[1])], linked)


def target(link, source):
    """Returns the file below the root that a link leads to, and its anchor."""
    path, _, anchor = link.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), path)), anchor


def resolved(link, source, uri):
    """Returns the link as it has to stand in the page `uri`, or None if the site does not have the file."""
    if re.match(r"[a-z]+:|#", link):
        return link
    file, anchor = target(link, source)
    if not (ROOT / file).exists():
        log.warning("%s: there is no file `%s`", source, file)
        return link
    if (ROOT / file / "README.md").exists():
        file += "/README.md"
    if file in DOCUMENTS or file in RACE:
        there = DOCUMENTS.get(file) or RACE[file]
    elif file.startswith("docs/") and file.endswith((".md", ".png", ".csv")):
        there = file.removeprefix("docs/")
    else:
        return None
    there = posixpath.relpath(there, posixpath.dirname(uri) or ".")
    return f"{there}#{anchor}" if anchor else there


def lists(lines):
    """Yields the lines with a blank one before each list, and four blanks before what belongs to an item."""
    offset = None  # Of the text of an item of the outermost list; None outside of lists.
    blank = True
    for inside, line in fenced(lines):
        item = None if inside else ITEM.match(line)
        if item:
            if offset is None and not blank:
                yield ""
            offset = len(item[0])
        elif line.strip() and not line.startswith(" "):
            # A paragraph goes on without blanks; everything else ends the list.
            offset = None if blank or inside or line.startswith("#") else offset
        elif offset is not None and line.startswith(" " * offset):
            line = " " * (4 - offset) + line
        blank = not line.strip()
        yield line


def on_post_build(config):
    """Warns of pages that load anything from the network."""
    for directory, _, names in os.walk(config.site_dir):
        for name in names:
            if not name.endswith((".html", ".css")):
                continue
            path = Path(directory, name)
            found = LOADED.search(path.read_text(encoding="utf-8"))
            if found:
                log.warning("%s loads from the network: %s", path, found[0])
