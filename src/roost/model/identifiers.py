"""UUIDs and names, as the API spells them."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

CUSTOM_PREFIX = "CUSTOM_"
NAME_LENGTH_MAX = 255

_DIGITS = re.compile(r"[0-9a-fA-F]{32}\Z")
_CUSTOM_NAME = re.compile(r"CUSTOM_[A-Z0-9_]+\Z")


@dataclass(frozen=True, slots=True)
class Name:
    """A resource class or a trait, as the tables have it."""

    id: int
    name: str
    # `None` if another service wrote a row without times.
    modified_at: datetime | None


def new_uuid() -> str:
    """A fresh random UUID in canonical form."""
    return str(uuid.uuid4())


def is_uuid(value: object) -> bool:
    """Whether the value is a UUID in any of its usual spellings: dashes, braces, `urn:uuid:`.

    >>> is_uuid("C0FFEE00-0000-0000-0000-000000000001"), is_uuid("not one")
    (True, False)

    Python's `uuid.UUID` accepts more, because it accepts all that `int` accepts:

    >>> is_uuid("0x000000000000000000000000000000"), is_uuid(" " + "0" * 31)
    (False, False)
    """
    if not isinstance(value, str):
        return False
    digits = value.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    return _DIGITS.match(digits) is not None


def canonical_uuid(value: str) -> str:
    """The lower-case dashed spelling of a UUID that `is_uuid` accepts.

    >>> canonical_uuid("{C0FFEE00000000000000000000000001}")
    'c0ffee00-0000-0000-0000-000000000001'
    """
    return str(uuid.UUID(value))


# A claim asks for the spellings of its consumer several times.
@lru_cache(64)
def uuid_spellings(value: str) -> tuple[str, ...]:
    """Every spelling under which an existing row may hold this UUID, the canonical one first.

    Roost writes only the canonical form. Another service may have stored a UUID as its client spelt
    it. A value that is no UUID has one spelling, itself.

    >>> uuid_spellings("ABC")
    ('ABC',)
    """
    if not is_uuid(value):
        return (value,)
    canonical = canonical_uuid(value)
    plain = canonical.replace("-", "")
    candidates = (canonical, value, canonical.upper(), plain, plain.upper())
    return tuple(dict.fromkeys(spelling for spelling in candidates if len(spelling) <= 36))


def is_custom_name(name: str) -> bool:
    """Whether this is a well-formed name of a custom resource class or trait.

    >>> is_custom_name("CUSTOM_GOLD"), is_custom_name("CUSTOM_"), is_custom_name("CUSTOM_X\\n")
    (True, False, False)
    """
    return len(name) <= NAME_LENGTH_MAX and _CUSTOM_NAME.match(name) is not None


def is_custom(name: str) -> bool:
    """Whether a stored class or trait is custom, not standard."""
    return name.startswith(CUSTOM_PREFIX)
