"""The traits and resource classes of a tree file, and suggestions for misspelt ones."""

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
    """Whether a server may know this trait: custom, or in a namespace of the standard traits.

    A server may have newer standard traits than this machine. So an unknown name in a namespace
    is a trait, though not one of `is_known_trait`.

    >>> is_trait("CUSTOM_GOLD"), is_trait("HW_CPU_OF_NEXT_YEAR"), is_trait("GOLD")
    (True, True, False)
    """
    return is_custom_name(name) or (
        len(name) <= NAME_LENGTH_MAX
        and name.startswith(_NAMESPACES)
        and _WELL_FORMED.match(name) is not None
    )


def is_known_trait(name: str) -> bool:
    """Whether a trait is custom or among the standard traits of this machine."""
    return is_custom_name(name) or name in STANDARD_TRAITS


def is_resource_class(name: str) -> bool:
    """Whether a resource class is custom or standard.

    Standard classes have no namespaces and have not changed for years. So a name that is not
    among those of this machine is misspelt.
    """
    return is_custom_name(name) or name in STANDARD_CLASSES


def closest(word: str, words: Iterable[str]) -> str | None:
    """The word that is most like a misspelt one; `None` if none is like it.

    >>> closest("trait", ["traits", "uuid"])
    'traits'
    """
    return next(iter(get_close_matches(word, list(words), n=1)), None)


def suggested_trait(name: str) -> str:
    """The well-formed trait that is most like this name."""
    return _suggested(name, STANDARD_TRAITS)


def suggested_resource_class(name: str) -> str:
    """The well-formed resource class that is most like this name.

    >>> suggested_resource_class("vcpus"), suggested_resource_class("Custom-Gold")
    ('VCPU', 'CUSTOM_GOLD')
    """
    return _suggested(name, STANDARD_CLASSES)


@lru_cache(maxsize=1000)
def _suggested(name: str, standard: Collection[str]) -> str:
    well_formed = re.sub(r"[^A-Z0-9_]", "_", name.upper())
    if well_formed in standard or is_custom_name(well_formed):
        return well_formed
    custom = f"{CUSTOM_PREFIX}{well_formed.strip('_') or 'NAME'}"
    return closest(well_formed, sorted(standard)) or custom[:NAME_LENGTH_MAX]
