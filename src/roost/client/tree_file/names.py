"""The traits and resource classes that a tree file may name, and which one was probably meant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import lru_cache

import os_resource_classes
import os_traits

from roost.model.identifiers import CUSTOM_PREFIX, NAME_LENGTH_MAX, is_custom_name

STANDARD_TRAITS = frozenset(os_traits.get_traits())
STANDARD_CLASSES = frozenset(os_resource_classes.STANDARDS)

_NAMESPACES = tuple(sorted({f"{name.split('_')[0]}_" for name in STANDARD_TRAITS}))
_WELL_FORMED = re.compile(r"[A-Z0-9_]+\Z")


def is_trait(name: str) -> bool:
    """Whether a server may know this trait: custom, or in a namespace of the standard ones.

    A server may have newer standard traits than this machine, so those installed here do not
    decide; `is_known_trait` tells which deserve a second look.

    >>> is_trait("CUSTOM_GOLD"), is_trait("HW_CPU_OF_NEXT_YEAR"), is_trait("GOLD")
    (True, True, False)
    """
    return is_custom_name(name) or (
        len(name) <= NAME_LENGTH_MAX
        and name.startswith(_NAMESPACES)
        and _WELL_FORMED.match(name) is not None
    )


def is_known_trait(name: str) -> bool:
    """Whether a trait is custom or among the standard ones installed here."""
    return is_custom_name(name) or name in STANDARD_TRAITS


def is_resource_class(name: str) -> bool:
    """Whether a class is custom or standard.

    The standard ones have no namespaces and have not changed for years, so that a name which is
    not among those installed is a slip.
    """
    return is_custom_name(name) or name in STANDARD_CLASSES


def closest(word: str, words: Iterable[str]) -> str | None:
    """That one of the words which somebody may have meant who wrote another one.

    >>> closest("trait", ["traits", "uuid"])
    'traits'
    """
    return next(iter(get_close_matches(word, list(words), n=1)), None)


def meant_trait(name: str) -> str:
    """The well-formed trait that is most like this name."""
    return _meant(name, STANDARD_TRAITS)


def meant_resource_class(name: str) -> str:
    """The well-formed resource class that is most like this name.

    >>> meant_resource_class("vcpus"), meant_resource_class("Custom-Gold")
    ('VCPU', 'CUSTOM_GOLD')
    """
    return _meant(name, STANDARD_CLASSES)


@lru_cache(maxsize=1000)
def _meant(name: str, standard: Collection[str]) -> str:
    spelt_well = re.sub(r"[^A-Z0-9_]", "_", name.upper())
    if spelt_well in standard or is_custom_name(spelt_well):
        return spelt_well
    custom = f"{CUSTOM_PREFIX}{spelt_well.strip('_') or 'NAME'}"
    return closest(spelt_well, sorted(standard)) or custom[:NAME_LENGTH_MAX]
