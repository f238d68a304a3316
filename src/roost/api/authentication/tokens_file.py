"""The file of static tokens: one token in each line, as JSON, by its hash.

A token is 32 random bytes, so SHA-256 is the right hash: no table and no search finds such a token.
A slow hash such as bcrypt protects passwords, which can be guessed, and would cost every request
a tenth of a second.

A command that changes the file holds a lock on the file itself. So commands at the same time lose
nothing, no further file is left behind, and a user without access cannot hold up its commands.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from roost.configuration.regular_files import regular_file
from roost.configuration.settings import ConfigurationError
from roost.model.text import plain_number

WAIT_SECONDS = 10.0
_PAUSE_SECONDS = 0.01

# Scanners for leaked secrets find tokens by such a beginning.
TOKEN_PREFIX = "roost_"
_RANDOM_BYTES = 32
_HASH_DIGITS = 64
_ID_DIGITS = 12
_FIELDS = frozenset({"sha256", "user", "project", "roles", "created", "expires"})
_BYTES_MAX = 16 * 2**20

_HEX = frozenset("0123456789abcdef")


@contextmanager
def file_turn(path: str, *, create: bool = False) -> Iterator[None]:
    """Hold the file alone. A file that `create` makes is empty and belongs to its owner alone."""
    target = Path(path).resolve()
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        handle = _opened(target, path, create=create)
        try:
            if _locked(handle, path) and _is_file_of(handle, target):
                yield
                return
        finally:
            os.close(handle)
        if time.monotonic() >= deadline:
            raise ConfigurationError(
                f"The file of tokens {path} is locked by another process for "
                f"{plain_number(WAIT_SECONDS)} seconds. Let that process end, and repeat the "
                "command."
            )
        time.sleep(_PAUSE_SECONDS)


def _opened(target: Path, path: str, *, create: bool) -> int:
    try:
        return regular_file(target, os.O_RDONLY | (os.O_CREAT if create else 0))
    except OSError as error:
        verb = "written" if create else "read"
        raise ConfigurationError(
            f"The file of tokens {path} cannot be {verb}: {error.strerror}. Let this user read it "
            "and write to its directory, or name another file."
        ) from None


def _locked(handle: int, path: str) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise ConfigurationError(
            f"The file of tokens {path} cannot be locked: {error.strerror}. Move it to a file "
            "system with locks."
        ) from None
    return True


def _is_file_of(handle: int, target: Path) -> bool:
    """Whether the path still leads to the open file. A command before may have replaced it."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), target.stat())
    return False


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A token of the file, without the token itself."""

    hash: str
    user: str
    project: str | None
    roles: tuple[str, ...]
    created: datetime | None = None
    expires: datetime | None = None

    @property
    def id(self) -> str:
        """The name of the token in lists: the beginning of its hash."""
        return self.hash[:_ID_DIGITS]

    def line(self) -> str:
        """The line of the file."""
        content = {
            "sha256": self.hash,
            "user": self.user,
            "project": self.project,
            "roles": list(self.roles),
            "created": self.created and _stamp(self.created),
            "expires": self.expires and _stamp(self.expires),
        }
        return json.dumps({name: value for name, value in content.items() if value is not None})


@dataclass(frozen=True, slots=True)
class TokensFile:
    """The lines of a file: the tokens, and what is wrong with other lines."""

    tokens: tuple[StaticToken, ...]
    # Sentences that name the file and the line. They contain nothing of the line.
    faults: tuple[str, ...]


def new_token() -> str:
    """A fresh token, which no other token equals."""
    return TOKEN_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def hash_of(token: str) -> str:
    """The hash by which the file knows a token."""
    return sha256(token.encode()).hexdigest()


def read_tokens_file(path: str) -> TokensFile:
    """Read the file; `ConfigurationError` if it cannot be read at all."""
    try:
        with open(path, "rb", opener=regular_file) as file:
            data = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigurationError(
            f"The file of tokens {path} cannot be read: {error.strerror}. Make it with `roost "
            "token create`, or correct [roost]tokens_file."
        ) from None
    if len(data) > _BYTES_MAX:
        raise ConfigurationError(
            f"The file of tokens {path} is larger than {_BYTES_MAX >> 20} MiB. Revoke tokens that "
            "are not in use."
        )
    tokens: list[StaticToken] = []
    faults: list[str] = []
    places: dict[str, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        try:
            token = _parsed(line)
            if token.hash in places:
                raise _Fault(f"has the token of line {places[token.hash]} again")
        except _Fault as fault:
            faults.append(f"{path}, line {number}, {fault}. Correct or remove the line.")
            continue
        places[token.hash] = number
        tokens.append(token)
    return TokensFile(tuple(tokens), tuple(faults))


def add_token(path: str, token: StaticToken) -> None:
    """Append a token. A new file is readable by its owner alone."""
    with file_turn(path, create=True):
        _write(path, [*_lines(path), token.line()])


def remove_tokens(path: str, hashes: Iterable[str]) -> None:
    """Remove the lines of these tokens. All other lines stay as they are."""
    gone = frozenset(hashes)
    with file_turn(path):
        _write(path, [line for line in _lines(path) if _hash_in(line) not in gone])


def check_mode(path: str) -> str | None:
    """A warning if other users can read the file; `ConfigurationError` if they can change it."""
    mode = os.stat(path).st_mode
    if mode & 0o002:
        raise ConfigurationError(
            f"Every user can write to the file of tokens {path}, and so become an administrator. "
            f"Run: chmod 600 {path}"
        )
    if mode & 0o004:
        return (
            f"Every user can read the file of tokens {path}. It has hashes only, but names "
            f"users and roles. Run: chmod o-r {path}"
        )
    return None


class _Fault(Exception):
    """What is wrong with a line."""


def _parsed(line: bytes) -> StaticToken:
    try:
        content = json.loads(line)
    except ValueError:
        raise _Fault("is not JSON") from None
    except RecursionError:
        raise _Fault("is nested too deeply") from None
    if not isinstance(content, dict):
        raise _Fault("is not a JSON object")
    unknown = sorted(content.keys() - _FIELDS)
    if unknown:
        raise _Fault(f"has the unknown field {unknown[0][:40]!r}")
    digits = content.get("sha256")
    if not isinstance(digits, str) or len(digits) != _HASH_DIGITS or set(digits) - _HEX:
        raise _Fault("has no sha256 of 64 hexadecimal digits in lower case")
    roles = content.get("roles")
    if not isinstance(roles, list) or not all(isinstance(role, str) and role for role in roles):
        raise _Fault("has no list of roles")
    return StaticToken(
        hash=digits,
        user=_text(content, "user"),
        project=_text(content, "project") if "project" in content else None,
        roles=tuple(roles),
        created=_time(content, "created"),
        expires=_time(content, "expires"),
    )


def _text(content: dict[str, Any], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str) or not value:
        raise _Fault(f"has no {name}")
    return value


def _time(content: dict[str, Any], name: str) -> datetime | None:
    value = content.get(name)
    if value is None:
        return None
    with suppress(ValueError, TypeError, OverflowError):
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            # A time of the first or the last year may lie outside of them in another zone.
            return moment.astimezone(UTC)
    raise _Fault(f"has a time in {name!r} that is none; write it as 2027-02-15T00:00:00Z")


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", opener=regular_file) as file:
            return file.read().splitlines()
    except OSError as error:
        raise ConfigurationError(
            f"The file of tokens {path} cannot be read: {error.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"The file of tokens {path} is not a text in UTF-8.") from None


def _hash_in(line: str) -> str | None:
    with suppress(_Fault):
        return _parsed(line.encode()).hash
    return None


def _write(path: str, lines: Sequence[str]) -> None:
    """Replace the file at once, so that no reader sees half of it. Its mode and owner stay."""
    target = Path(path).resolve()
    try:
        status = target.stat()
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
                os.fchmod(file.fileno(), status.st_mode & 0o7777)
                with suppress(PermissionError):
                    os.fchown(file.fileno(), status.st_uid, status.st_gid)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise ConfigurationError(
            f"The file of tokens {path} cannot be written: {error.strerror}. Let this user write "
            "to its directory, or name another file."
        ) from None
