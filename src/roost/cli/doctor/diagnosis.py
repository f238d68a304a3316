"""What the doctor finds: a sentence, and the command that mends it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from roost.client.lookup import provider_argument


class Grade(StrEnum):
    """How grave a finding is; a cloud with notes only is sound."""

    FAULT = "fault"
    WARNING = "warning"
    NOTE = "note"


class ProviderName(NamedTuple):
    """The provider that a finding is about."""

    uuid: str
    name: str

    @property
    def argument(self) -> str:
        """The provider as a word of a command."""
        return provider_argument(self._asdict())


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One finding."""

    severity: Grade
    # The name of the check, for programs.
    check: str
    text: str
    # The command that mends it, or that shows what to mend.
    command: str
    provider: ProviderName | None = None

    def as_json(self) -> dict[str, Any]:
        """The finding as a JSON value."""
        return {
            **asdict(self),
            "severity": self.severity.value,
            "provider": self.provider._asdict() if self.provider else None,
        }
