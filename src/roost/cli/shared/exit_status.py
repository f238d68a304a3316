"""What the exit status of a command says, in one scheme for all commands."""

from __future__ import annotations

from enum import IntEnum

from roost.model.errors import OperatorError


class ExitStatus(IntEnum):
    """The status with which a command ends, and what that means."""

    DONE = 0, "yes, or done"
    FAILED = 1, "failed, so the answer is unknown"
    USAGE = 2, "wrong usage: the command did nothing"
    NO = 3, "no: nothing fits, something differs, or something is wrong"
    CONFIGURATION = 78, "wrong options or configuration of `serve` and `agent`"
    INTERRUPTED = 130, "interrupted, as after Ctrl-C"

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitStatus:
        """A status with its meaning."""
        made = int.__new__(cls, value)
        made._value_ = value
        made.meaning = meaning
        return made


def yes_or_no(answer: object) -> ExitStatus:
    """The status of a command whose answer is yes, or no.

    >>> yes_or_no(True).value, yes_or_no([]).value
    (0, 3)
    """
    return ExitStatus.DONE if answer else ExitStatus.NO


def status_lines() -> str:
    r"""A line for each status, for the help.

    >>> print(status_lines().partition("\n")[0])
      0    yes, or done
    """
    return "\n".join(f"  {status.value:<3}  {status.meaning}" for status in ExitStatus)


class AnsweredNo(OperatorError):
    """The answer of a command is no, such as that a claim is refused; the text says why."""


class WrongUsage(OperatorError):
    """An option or an argument is wrong; the text says why, and what to type."""
