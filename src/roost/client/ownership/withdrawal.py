"""When an owner withdraws what its driver no longer finds. Pure.

A device may be away for a moment: a card is reset, or a driver of the kernel is loaded anew. So the
owner keeps a missing provider for some reports and some minutes. If a driver suddenly misses most
of its providers, the machine is probably not readable. Then nothing is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from roost.client.errors import SuddenLoss
from roost.client.ownership.record import Absence, OwnedProvider
from roost.model.text import plain_number

REPORTS = 3
SECONDS = 300.0
_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class WithdrawalPolicy:
    """Withdraws a provider that is missing in so many reports, and for so many seconds.

    `now` is the time of the report, in seconds since the epoch.
    """

    now: float
    reports: int = REPORTS
    seconds: float = SECONDS

    def absence_of(self, missing: OwnedProvider) -> Absence:
        """The absence of a provider that this report misses."""
        # One long gap between two reports must not be enough.
        longest_gap = self.seconds / max(1, self.reports - 1)
        return Absence.counted(missing.absence, self.now, longest_gap)

    def is_due(self, absence: Absence) -> bool:
        """Whether the provider has been missing for long enough."""
        return absence.reports >= self.reports and absence.seconds >= self.seconds

    def describe(self) -> str:
        """What happens to a missing provider that is not due yet, in words.

        The text is the same in each report, so that the agent prints it once.
        """
        return (
            "stays for now, the driver does not find it; it is withdrawn after "
            f"{self.reports} reports and {plain_number(self.seconds / 60)} minutes"
        )


def refuse_sudden_loss(
    recorded: Mapping[str, OwnedProvider], missing: Collection[OwnedProvider]
) -> None:
    """Raise `SuddenLoss` if most of the recorded providers that the driver found are missing."""
    before = [owned for owned in recorded.values() if owned.absence is None]
    lost = sorted(owned.name for owned in missing if owned.absence is None)
    found = len(before) - len(lost)
    if found * 2 >= len(before):
        return
    shown = ", ".join(lost[:_NAMES_SHOWN]) + (", ..." if len(lost) > _NAMES_SHOWN else "")
    raise SuddenLoss(
        f"The driver finds {found} of the {len(before)} providers that it found before; missing "
        f"are {shown}. Nothing is reported. Is /sys mounted, and the driver allowed to read it? "
        "If the devices are really gone, report once with --accept-loss"
    )
