"""Secrets among options and words of a command line, and how they are shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from roost.model.text import without_user_info

HIDDEN = "***"
"""Stands for a secret."""

_PARTS = frozenset({"cookie", "key", "keys", "pass", "pin", "psk", "pwd"})
_ANYWHERE = ("apikey", "credential", "passphrase", "passwd", "password", "secret", "token")
# The name of such an option ends with what it is: a place, which is no secret itself.
_PLACES = frozenset({"dir", "directory", "file", "path"})
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret_name(name: str) -> bool:
    """Whether the name of an option tells that its value is a secret.

    >>> [is_secret_name(name) for name in ("api_key", "dbPassword", "--os-token", "passwd")]
    [True, True, True, True]
    >>> [is_secret_name(name) for name in ("token-file", "monkey", "bypass", "disks")]
    [False, False, False, False]
    """
    parts = [part for part in re.split(r"[^a-z0-9]+", _HUMP.sub("-", name).lower()) if part]
    if not parts or parts[-1] in _PLACES:
        return False
    joined = "".join(parts)
    return not _PARTS.isdisjoint(parts) or any(word in joined for word in _ANYWHERE)


def shown_value(name: str, value: Any) -> Any:
    """The value of an option as operators may see it: secrets and passwords in URLs are hidden.

    >>> shown_value("api_key", "geheim"), shown_value("url", "http://ann:geheim@host")
    ('***', 'http://***@host')
    """
    if value is not None and is_secret_name(name):
        return HIDDEN
    return without_user_info(value) if isinstance(value, str) else value


def shown_words(words: Iterable[str]) -> list[str]:
    """The words of a command line as operators may see them.

    >>> " ".join(shown_words(["agent", "--token", "geheim", "--option=api_key=geheim", "--once"]))
    'agent --token *** --option=api_key=*** --once'
    """
    shown: list[str] = []
    follows_secret = False
    for word in words:
        shown.append(HIDDEN if follows_secret else _shown_word(word))
        # The value of an option may be the next word.
        follows_secret = word.startswith("-") and "=" not in word and is_secret_name(word)
    return shown


def _shown_word(word: str) -> str:
    name, sign, value = word.partition("=")
    if not sign:
        return without_user_info(word)
    if is_secret_name(name):
        return f"{name}={HIDDEN}"
    return f"{name}={_shown_word(value)}"


def without_secrets(text: str, options: Mapping[str, object]) -> str:
    """A text, such as an error, without the values of the options that are secret.

    >>> without_secrets("'geheim' is no number", {"api_key": "geheim", "size": "8"})
    "'***' is no number"
    """
    for name, value in options.items():
        if is_secret_name(name) and str(value):
            text = text.replace(str(value), HIDDEN)
    return without_user_info(text)
