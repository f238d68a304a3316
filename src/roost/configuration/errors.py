"""What is wrong with a configuration."""

from __future__ import annotations

from roost.model.errors import OperatorError


class ConfigurationError(OperatorError):
    """The configuration cannot be used; the message names the option and the fix."""
