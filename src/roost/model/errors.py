"""What every part of the program may raise, and the command line tells in a sentence."""

from __future__ import annotations


class OperatorError(Exception):
    """Something that whoever runs the program can mend; the text says what and how."""

    @property
    def explanation(self) -> str:
        """The text for whoever runs the program, who may know more than a client of it."""
        return str(self)
