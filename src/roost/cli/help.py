"""The command `roost help`: the words of docs/concepts.md, and the help of commands."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from roost.cli.man import context_of, root_context
from roost.cli.shared.command import command
from roost.model.errors import OperatorError
from roost.model.text import nearest_names, with_next

# A wheel has the page beside this module, and the source tree has it in docs/.
_PLACES = (
    Path(__file__).with_name("concepts.md"),
    Path(__file__).parents[3] / "docs" / "concepts.md",
)
_FENCE = "```"
_HEADING = re.compile(r"(#{2,4}) (.+)")
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")
# Chapters have two signs. Words have three, and the fields of an inventory four.
_CHAPTER, _WORD = 2, 3
_WIDTH_MAX = 100


@dataclass(frozen=True)
class Section:
    """A heading of the page, with the lines up to the next heading."""

    title: str
    level: int
    lines: tuple[str, ...]

    @property
    def word(self) -> str:
        """The word that the section explains."""
        return self.title.lower()

    @property
    def summary(self) -> str:
        """The first sentence, without links and examples."""
        text = _plain(" ".join(next(_blocks(self.lines))))
        return re.split(r"[.:] ", text, maxsplit=1)[0] + "."


@cache
def sections() -> tuple[Section, ...]:
    """All sections of the page, chapters included, in its order."""
    page = next(place for place in _PLACES if place.exists()).read_text(encoding="utf-8")
    found: list[tuple[str, int, list[str]]] = []
    fenced = False
    for line in page.splitlines():
        fenced ^= line.startswith(_FENCE)
        heading = None if fenced else _HEADING.fullmatch(line)
        if heading is not None:
            found.append((heading[2], len(heading[1]), []))
        elif found:
            found[-1][2].append(line)
    return tuple(Section(title, level, tuple(lines)) for title, level, lines in found)


def find_section(words: Sequence[str]) -> Section | None:
    """The section of a word: in any case, with spaces, dashes or underscores, in the plural too."""
    wanted = re.sub(r"[\s_-]+", " ", " ".join(words).lower()).strip()
    by_word = {section.word: section for section in _word_sections()}
    return next((by_word[form] for form in _singulars(wanted) if form in by_word), None)


def _word_sections() -> list[Section]:
    return [section for section in sections() if section.level > _CHAPTER]


def _singulars(word: str) -> Iterator[str]:
    """The forms that a word in the plural may come from.

    >>> list(_singulars("inventories"))
    ['inventories', 'inventorie', 'inventori', 'inventory']
    """
    yield word
    if word.endswith("s"):
        yield word.removesuffix("s")
        yield word.removesuffix("es")
        yield f"{word.removesuffix('ies')}y"


def _completions(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem[str]]:
    del parameter
    names = _names(root_context(context))
    return [CompletionItem(name) for name in names if name.startswith(incomplete.lower())]


@command("help")
@click.argument("words", metavar="[WORD|COMMAND]...", nargs=-1, shell_complete=_completions)
@click.pass_context
def show_help(context: click.Context, words: tuple[str, ...]) -> None:
    """Explain a word of the ledger, or show the help of a command.

    Without a word, the command lists all of them. docs/concepts.md has the same text.

    \b
    Examples:
      roost help
      roost help inventory
      roost help sharing provider
      roost help provider list
    """
    root = root_context(context)
    section = find_section(words)
    if not words:
        _list_words(context)
    elif section is not None:
        click.echo("\n".join(_rendered(section)))
        if section.word in _commands(root):
            click.echo(f"\nThe command of this name: roost {section.word} --help")
    elif words[0] in _commands(root):
        click.echo(context_of(root, words).get_help())
    else:
        raise _unknown(root, words)


def _commands(root: click.Context) -> list[str]:
    group = root.command
    return group.list_commands(root) if isinstance(group, click.Group) else []


def _list_words(context: click.Context) -> None:
    formatter = context.make_formatter()
    for chapter in (section for section in sections() if section.level == _CHAPTER):
        rows = [
            ("  " * (below.level - _WORD) + below.word, below.summary) for below in _below(chapter)
        ]
        with formatter.section(chapter.title):
            formatter.write_dl(rows)
    click.echo(formatter.getvalue())
    click.echo("Next: roost help WORD, or roost help COMMAND")


def _below(section: Section) -> Iterator[Section]:
    """The sections below this one, up to the next of its level."""
    following = sections()[sections().index(section) + 1 :]
    return takewhile(lambda below: below.level > section.level, following)


def _unknown(root: click.Context, words: tuple[str, ...]) -> OperatorError:
    given = " ".join(words)
    near = nearest_names(given.lower(), _names(root))
    hint = f" Near it: {', '.join(near)}." if near else ""
    return OperatorError(
        with_next(f"No word and no command has the name {given}.{hint}", "roost help")
    )


def _names(root: click.Context) -> list[str]:
    """All words and commands; dashes join the parts of a word, as a shell needs it."""
    words = (section.word.replace(" ", "-") for section in _word_sections())
    return list(dict.fromkeys([*words, *_commands(root)]))


# -- from the page to the terminal


def _rendered(section: Section) -> Iterator[str]:
    """The lines of a section, with the fields of an inventory below it."""
    yield section.title
    yield "=" * len(section.title)
    yield from _text_of(section)
    for below in _below(section):
        yield ""
        yield below.title
        yield "-" * len(below.title)
        yield from _text_of(below)


def _text_of(section: Section) -> Iterator[str]:
    for block in _blocks(section.lines):
        yield ""
        if block[0].startswith(_FENCE):
            yield from block[1:-1]
        else:
            yield from textwrap.wrap(
                _plain(" ".join(block)), _width(), break_long_words=False, break_on_hyphens=False
            )


def _blocks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Paragraphs and drawings; a drawing begins and ends with its fences."""
    block: list[str] = []
    fenced = False
    for line in [*lines, ""]:
        fenced ^= line.startswith(_FENCE)
        if line or fenced:
            block.append(line)
        elif block:
            yield block
            block = []


def _plain(text: str) -> str:
    """A text without the marks of links and code.

    >>> _plain("A [trait](#trait) such as `HW_NUMA_ROOT`.")
    'A trait such as HW_NUMA_ROOT.'
    """
    return _LINK.sub(r"\1", text).replace("`", "")


def _width() -> int:
    """The columns of a paragraph: those of the terminal, and at most 100."""
    return min(shutil.get_terminal_size().columns if sys.stdout.isatty() else 80, _WIDTH_MAX)
