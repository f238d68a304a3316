"""Errors that every layer may raise, and that the command line shows as one sentence."""

from __future__ import annotations


class OperatorError(Exception):
    """A problem that an operator can solve; the text says what failed and what to do."""

    @property
    def explanation(self) -> str:
        """The text for the operator; it may have details that clients must not see."""
        return str(self)


class ConfigurationError(OperatorError):
    """The configuration cannot be used; the text names the option and the fix."""


class AddressUnusable(OperatorError):
    """The server cannot listen at an address, which may be free or known a little later."""
