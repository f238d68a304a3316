"""Text for operators: names that no terminal obeys, and the name that a misspelling meant."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from fnmatch import fnmatchcase
from itertools import islice

_USER_INFO = re.compile(r"://[^/\s]*@")

NEXT = "Next: "
"""Begins the line with the next command to type."""

_COMPARED_MAX = 5000
"""The number of names whose likeness is worked out: it takes about 50 us each."""


def printable(text: str) -> str:
    r"""The text in one line, with control and format characters spelt out.

    Servers and files give names. A terminal obeys control characters in a name, and marks of
    direction change the order in which it shows a name.

    >>> print(printable("host\x1b]0;owned\x07 \u202ebig\n"))
    host\x1b]0;owned\x07 \u202ebig\n
    """
    if text.isprintable():
        return text
    return "".join(
        character
        if character.isprintable()
        # The codec's name for a character in ASCII, such as \x1b.
        else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


class OwnLines(str):
    """A text whose line ends the program made itself; what is foreign in it is printable.

    Any other text is one line for an operator: a line feed in it came with a name or an answer.
    """

    __slots__ = ()


def own_lines(*lines: str) -> OwnLines:
    r"""Lines of a program, each made printable; lines that were joined before stay lines.

    >>> own_lines("host\nNext: rm", own_lines("a", "b"))
    'host\\nNext: rm\na\nb'
    """
    return OwnLines("\n".join(map(shown_text, lines)))


def shown_text(text: str) -> str:
    """A text for an operator: the program's own lines as they are, any other text in one line."""
    return text if isinstance(text, OwnLines) else printable(text)


def one_line(text: str) -> str:
    """The same in one line, for logs; the program's own lines follow each other.

    >>> one_line(own_lines("It failed.", "Next: roost doctor"))
    'It failed. Next: roost doctor'
    """
    return " ".join(text.split("\n")) if isinstance(text, OwnLines) else printable(text)


def without_user_info(text: str, mark: str = "***@") -> str:
    """The text with a mark instead of user and password in each address.

    >>> without_user_info("http://ann:geheim@k.example/v3 and http://k.example/@v3")
    'http://***@k.example/v3 and http://k.example/@v3'
    """
    return _USER_INFO.sub(f"://{mark}", text)


def matches(name: str, pattern: str) -> bool:
    """Whether a name fits a pattern, in which * and ? stand for any characters.

    >>> matches("host[1]", "host[*"), matches("host1", "host[1]")
    (True, False)
    """
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that the operator may have meant; `None` if no name is that much alike.

    >>> nearest("sslmod", ["sslmode", "sslcert"])
    'sslmode'
    """
    return next(iter(difflib.get_close_matches(name, list(known), 1, likeness)), None)


def with_next(text: str, command: str) -> OwnLines:
    """An explanation that ends with the next command to type.

    >>> print(with_next("No trait has the name X.", "roost trait list"))
    No trait has the name X.
    Next: roost trait list
    """
    return own_lines(text, f"{NEXT}{command}")


def has_next(text: str) -> bool:
    """Whether an explanation ends with a command."""
    return isinstance(text, OwnLines) and f"\n{NEXT}" in text


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "provider"), counted(2000, "provider")
    ('1 provider', '2,000 providers')
    """
    return f"{with_separators(number)} {noun}{'' if number == 1 else 's'}"


def listed(names: Iterable[str], word: str = "and", at_most: int = 6) -> str:
    """The names in one phrase; of many names the first, and how many more there are.

    >>> listed(["a", "b", "c"], "or"), listed("abcd", at_most=2)
    ('a, b or c', 'a, b and 2 more')
    """
    shown = list(names)
    more = len(shown) - at_most
    if more > 1:
        shown[at_most:] = [f"{more} more"]
    *first, last = shown or [""]
    return f"{', '.join(first)} {word} {last}" if first else last


def whole_number(amount: float) -> str:
    """An amount for a sentence: its integer part, as consumers hold and the API shows it.

    >>> whole_number(1048576.0), whole_number(13.5)
    ('1048576', '13')
    """
    return str(int(amount)) if math.isfinite(amount) else str(amount)


def with_separators(amount: float) -> str:
    """The integer part of an amount as people read it. Programs get the number itself.

    >>> with_separators(1048576), with_separators(13.5), with_separators(-1000)
    ('1,048,576', '13', '-1,000')
    """
    return f"{int(amount):,}" if math.isfinite(amount) else str(amount)


def plain_number(number: float) -> str:
    """A number that may be a fraction, to ten digits: never with an exponent.

    >>> plain_number(4.0), plain_number(0.00001), plain_number(1e16)
    ('4', '0.00001', '10000000000000000')
    """
    return f"{Decimal(f'{number:.10g}'):f}"


def done_or_planned(word: str, *, planned: bool) -> str:
    """What was done, or what would be done.

    >>> done_or_planned("created", planned=False), done_or_planned("created", planned=True)
    ('created', 'would be created')
    """
    return f"would be {word}" if planned else word


def nearest_names(name: str, known: Iterable[str], at_most: int = 3) -> list[str]:
    """The known names that the operator may have meant, best first.

    Names that differ only in case, punctuation or leading zeros come first. Longer names that
    have it as a part follow, and then names that are alike.

    >>> nearest_names("compute1", ["compute-2", "compute-001", "storage"])
    ['compute-001', 'compute-2']
    >>> nearest_names("gpu", ["HOST_GPU_1", "cpu"])
    ['HOST_GPU_1', 'cpu']
    """
    names = sorted(set(known))
    wanted, folded = _bare(name), name.casefold()
    found = [other for other in names if _bare(other) == wanted]
    with_part = [other for other in names if folded and folded in other.casefold()]
    found += sorted(with_part, key=len)
    compared = names if len(names) <= _COMPARED_MAX else _with_same_end(name, names)
    if len(found) < at_most and compared:
        alike = difflib.get_close_matches(name, compared, len(compared), 0.6)
        likeness = difflib.SequenceMatcher(b=name)

        def distance(other: str) -> float:
            likeness.set_seq1(other)
            return -likeness.ratio()

        found += sorted(sorted(alike), key=distance)
    return list(dict.fromkeys(found))[:at_most]


def _with_same_end(name: str, names: Iterable[str]) -> list[str]:
    """Names that begin or end like this one: a cheap choice out of very many."""
    chosen = (
        other for other in names if other[-2:] == name[-2:] or other.startswith(name[:-2] or name)
    )
    return list(islice(chosen, _COMPARED_MAX))


def _bare(name: str) -> str:
    """A name without what people leave out.

    >>> _bare("Compute-001")
    'compute1'
    """
    return re.sub(r"[\W_]|(?<!\d)0+(?=\d)", "", name.casefold())
