"""Text for operators: names that no terminal obeys, and the name that a misspelling meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_USER_INFO = re.compile(r"://[^/\s]*@")


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


def without_user_info(text: str, mark: str = "***@") -> str:
    """The text with a mark instead of user and password in each address.

    >>> without_user_info("http://ann:geheim@k.example/v3 and http://k.example/@v3")
    'http://***@k.example/v3 and http://k.example/@v3'
    """
    return _USER_INFO.sub(f"://{mark}", text)


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that the operator may have meant; `None` if no name is that much alike.

    >>> nearest("sslmod", ["sslmode", "sslcert"])
    'sslmode'
    """
    return next(iter(difflib.get_close_matches(name, list(known), 1, likeness)), None)
