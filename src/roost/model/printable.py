"""Text that cannot steer a terminal, forge lines of a log, or show in another order."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""One line in which each character is seen: control and format characters are spelt out.

    Names come from servers and files. A terminal obeys control characters in them, and marks of
    direction show a text in another order than it is.

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
