"""Errors that every layer may raise, and that the command line shows as one sentence."""

from __future__ import annotations


class OperatorError(Exception):
    """A problem that an operator can solve; the text says what failed and what to do.

    A text of several lines is made by `own_lines`. Any other text is shown in one line.
    """

    def __str__(self) -> str:
        # The method of `Exception` returns a copy, which no longer knows its own lines.
        text = self.args[0] if len(self.args) == 1 else None
        return text if isinstance(text, str) else super().__str__()

    @property
    def explanation(self) -> str:
        """The text for the operator; it may have details that clients must not see."""
        return str(self)


class ConfigurationError(OperatorError):
    """The configuration cannot be used; the text names the option and the fix."""


class AddressUnusable(OperatorError):
    """The server cannot listen at an address, which may be free or known a little later."""
