"""The servers that an operator has given names: contexts, in one file of the operator.

The file may have tokens. So a file that other users may read is refused, and no error has its text.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from roost.client.errors import NotConfigured
from roost.client.whole_file import replace_text
from roost.model.text import nearest_names, with_next

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")
_BYTES_MAX = 1_000_000
_OTHER_USERS = 0o077


@dataclass(frozen=True, slots=True)
class ServerContext:
    """A server: its address with a token, or a cloud of clouds.yaml."""

    url: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    cloud: str | None = None
    region: str | None = None
    cacert: str | None = None
    insecure: bool = False

    def __post_init__(self) -> None:
        if (self.url is None) == (self.cloud is None):
            raise NotConfigured("a context has a URL or a cloud, and never both")
        if self.cloud is not None and (self.token or self.token_file):
            raise NotConfigured("a cloud has its own credentials: leave the token out")
        if self.token and self.token_file:
            raise NotConfigured("a context has a token or a file with one, and never both")
        if self.url is not None and self.region is not None:
            raise NotConfigured("a region belongs to a cloud: leave it out")

    def shown(self) -> dict[str, Any]:
        """The fields for an operator. A token is never shown, only that there is one."""
        return asdict(self) | {"token": self.token is not None}


@dataclass(frozen=True, slots=True)
class ContextFile:
    """The contexts of a file by name, and the one that is in use."""

    path: Path
    contexts: Mapping[str, ServerContext] = field(default_factory=dict)
    current: str | None = None

    def named(self, name: str) -> ServerContext:
        """The context of this name; an error has the names near it."""
        if name in self.contexts:
            return self.contexts[name]
        near = nearest_names(name, self.contexts)
        hint = f" Near it: {', '.join(near)}." if near else ""
        raise NotConfigured(
            with_next(f"There is no context {name} in {self.path}.{hint}", "roost context list")
        )

    def write(self) -> None:
        """Replace the file as a whole; only its owner may read it."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        contexts = {name: _given(context) for name, context in sorted(self.contexts.items())}
        content = {"current": self.current, "contexts": contexts}
        replace_text(self.path, yaml.safe_dump(content, sort_keys=False), durable=True)


def default_path(environ: Mapping[str, str] = os.environ) -> Path:
    """The file of the contexts: `roost/contexts.yaml` in the directory of configurations."""
    directory = environ.get("XDG_CONFIG_HOME", "")
    # The standard of these directories says that a relative one does not count.
    base = Path(directory) if directory.startswith("/") else Path("~/.config").expanduser()
    return base / "roost" / "contexts.yaml"


def read_contexts(path: Path) -> ContextFile:
    """The contexts of a file; none if there is no file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return ContextFile(path)
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise NotConfigured(f"{path} is no file; contexts are kept in a file")
        if found.st_mode & _OTHER_USERS:
            raise NotConfigured(
                with_next(
                    f"{path} may have tokens, and other users may read it.", f"chmod 600 {path}"
                )
            )
        content = file.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise NotConfigured(f"{path} is larger than a file of contexts ever is")
    return _parsed(path, content)


def check_name(name: str) -> str:
    """A name that a context may have."""
    if not _NAME.match(name):
        raise NotConfigured(
            f"{name!r} is no name of a context: use letters, digits, '.', '_' and '-'"
        )
    return name


def _parsed(path: Path, content: bytes) -> ContextFile:
    try:
        found = yaml.safe_load(content.decode("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        # The text of the error may be a token.
        mark = getattr(error, "problem_mark", None)
        line = "" if mark is None else f" in line {mark.line + 1}"
        raise NotConfigured(f"{path} is not valid YAML{line}; correct it") from None
    found = {} if found is None else found
    entries = found.get("contexts") or {} if isinstance(found, dict) else None
    current = found.get("current") if isinstance(found, dict) else None
    if not isinstance(entries, dict) or not isinstance(current, str | None):
        raise NotConfigured(f"{path} must have `current:` and `contexts:` with names below it")
    contexts = {str(name): _context(path, str(name), entry) for name, entry in entries.items()}
    return ContextFile(path, contexts, current)


def _context(path: Path, name: str, entry: object) -> ServerContext:
    kinds: dict[str, type] = {one.name: str for one in fields(ServerContext)} | {"insecure": bool}
    if not isinstance(entry, dict):
        raise NotConfigured(f"{path}: the context {name} is empty; give it `url:` or `cloud:`")
    for key, value in entry.items():
        if key not in kinds or not isinstance(value, kinds[key]):
            raise NotConfigured(f"{path}: the context {name} has a wrong field {key!r}")
    try:
        return ServerContext(**entry)
    except NotConfigured as error:
        raise NotConfigured(f"{path}: the context {name}: {error}") from None


def _given(context: ServerContext) -> dict[str, Any]:
    return {key: value for key, value in asdict(context).items() if value not in (None, False)}
