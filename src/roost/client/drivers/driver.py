"""The two kinds of drivers, and calls of them: an error names the driver and what is wrong."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import roost
from roost.client.errors import DeclarationRefused, DriverFailed, ReshapeNeeded
from roost.client.provider_tree import ProviderTree
from roost.client.reading.inspection import InspectedTree, declaration_in
from roost.model.errors import OperatorError
from roost.model.identifiers import is_uuid, new_uuid
from roost.model.inventory import DEFAULTS
from roost.model.trees.declaration import Declaration, DeclaredProvider, InventoryFields

Allocations = dict[str, dict[str, Any]]
"""Consumer -> the body of `GET /allocations/{consumer}`; a driver that reshapes edits it."""

_NAME_LENGTH_MAX = 200

_OWN_CODE = Path(roost.__file__).parent


class Driver(Protocol):
    """A driver with the method that compute services call.

    The driver edits the tree in place. If a change would move inventory that is in use, the
    driver raises `ReshapeNeeded`. The reporter then calls it once more with all `allocations` of
    the tree, and the driver moves these as well. A driver that never reshapes may lack the
    parameter.
    """

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Make the tree equal to the host."""
        ...


@runtime_checkable
class DeclaringDriver(Protocol):
    """A driver that declares the providers of the host.

    The caller compares the declaration with the server, and decides what of the difference its
    owner may write and remove. A driver that declares the wish of an operator has the attribute
    `declares_intent = True`: what it no longer declares is removed at once.
    """

    def declare(self, nodename: str) -> Declaration:
        """All providers of the host, its root (named `nodename`) first."""
        ...


def checked_declaration(declared: object, nodename: str) -> Declaration:
    """The declaration of a driver; raises `DeclarationRefused` if it describes no host.

    A driver may be the work of any author, so its types are not taken for granted. An empty
    declaration is one: the driver finds nothing at all.
    """
    if not isinstance(declared, Declaration):
        raise _refusal(f"returns {_kind(declared)} instead of a Declaration")
    for provider in declared.providers:
        for problem in _problems(provider):
            raise _refusal(f"declares provider {provider.name!r}, {problem}")
    if declared.providers and nodename not in {root.name for root in declared.roots}:
        raise _refusal(f"declares no root {nodename}, which is the host: declare it first")
    return declared


def _problems(provider: DeclaredProvider) -> Iterator[str]:
    """What is wrong with a provider besides what its constructor refuses."""
    if not _is_name(provider.name):
        yield f"whose name is no text of 1 to {_NAME_LENGTH_MAX} characters"
    if provider.uuid is not None and not is_uuid(provider.uuid):
        yield f"whose uuid is {provider.uuid!r}: give a UUID, or None"
    for what in ("traits", "aggregates"):
        if not all(isinstance(each, str) for each in getattr(provider, what)):
            yield f"whose {what} are not all texts"
    yield from _inventory_problems(provider.inventories)


def _is_name(name: str) -> bool:
    if len(name) > _NAME_LENGTH_MAX:
        return False
    # Python has texts that cannot be sent to a server.
    return name == name.encode(errors="replace").decode()


def _inventory_problems(inventories: Mapping[str, InventoryFields]) -> Iterator[str]:
    for resource_class, fields in inventories.items():
        if not isinstance(resource_class, str):
            yield f"with the resource class {resource_class!r}, which is no text"
        elif "total" not in fields:
            yield f"whose {resource_class} is {fields!r}: write it as {{'total': 8}}"
        else:
            for field, value in fields.items():
                if not _is_number(value):
                    yield f"whose {resource_class} has the {field} {value!r}, which is no number"


def _is_number(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _refusal(text: str) -> DeclarationRefused:
    return DeclarationRefused(f"The driver {text}")


def declared_by(driver: DeclaringDriver, nodename: str) -> Declaration:
    """What a driver declares of a host; raises an error if that describes no host."""
    with calling(driver):
        declared = driver.declare(nodename)
    return checked_declaration(declared, nodename)


@contextmanager
def calling(driver: object, *, may_reshape: bool = True) -> Iterator[None]:
    """Turn an unexpected error of the driver into `DriverFailed`, which has it as its cause.

    A driver that calls `sys.exit` would end the agent without a word, so that is a failure, too.
    """
    try:
        yield
    except OperatorError:
        raise
    except (Exception, SystemExit) as error:
        if may_reshape and asks_for_reshape(error):
            raise
        text = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise DriverFailed(f"{_name_of(driver)} failed with {text} ({_place_of(error)})") from error


def asks_for_reshape(error: BaseException) -> bool:
    """Whether this is a `ReshapeNeeded`: the client's, or Nova's in a driver that Nova has too."""
    return isinstance(error, ReshapeNeeded) or any(
        kind.__name__ == ReshapeNeeded.__name__ for kind in type(error).__mro__
    )


def _name_of(driver: object) -> str:
    kind = type(driver)
    return f"The driver {kind.__module__}:{kind.__qualname__}"


def _place_of(error: BaseException) -> str:
    """The last line outside Roost that led to the error, or else the last line of all."""
    frames = traceback.extract_tb(error.__traceback__)
    # Code that Python makes, such as the constructor of a dataclass, has no file.
    in_files = [frame for frame in frames if not frame.filename.startswith("<")]
    outside = [frame for frame in in_files if _OWN_CODE not in Path(frame.filename).parents]
    last = (outside or frames)[-1]
    return f"{last.filename}, line {last.lineno}, in {last.name}"


def declared_offline(
    driver: Driver | DeclaringDriver, name: str, uuid: str | None = None
) -> Declaration:
    """The host as the driver declares it, or as it edits the tree of a host without children."""
    if isinstance(driver, DeclaringDriver):
        return _with_root_uuid(declared_by(driver, name), name, uuid)
    root_uuid = uuid or new_uuid()
    tree = _new_host(name, root_uuid)
    try:
        with calling(driver):
            driver.update_provider_tree(tree, name)
    except Exception as error:
        if not asks_for_reshape(error):
            raise
        tree = _new_host(name, root_uuid)
        # A driver that has the allocations may not ask for them again.
        with calling(driver, may_reshape=False):
            driver.update_provider_tree(tree, name, allocations={})
    return _without_uuids(declaration_in(tree, root_uuid), name, uuid)


def declared_tree(declaration: Declaration, root: DeclaredProvider) -> InspectedTree:
    """One tree of a declaration, with the defaults of inventories and without usage.

    A provider without a declared uuid has a random one in it.
    """
    tree = ProviderTree()
    root_uuid = root.uuid or new_uuid()
    for provider in declaration.trees()[root.name].providers:
        if provider.parent is None:
            tree.new_root(provider.name, root_uuid)
        else:
            tree.new_child(provider.name, provider.parent, provider.uuid or new_uuid())
        inventories = {
            resource_class: {**DEFAULTS, **fields}
            for resource_class, fields in provider.inventories.items()
        }
        tree.update_inventory(provider.name, inventories)
        tree.update_traits(provider.name, provider.traits)
        tree.update_aggregates(provider.name, provider.aggregates)
    return InspectedTree(root_uuid, tree, {})


def _new_host(name: str, uuid: str) -> ProviderTree:
    tree = ProviderTree()
    tree.new_root(name, uuid)
    return tree


def _with_root_uuid(declaration: Declaration, name: str, uuid: str | None) -> Declaration:
    """The declaration with the given uuid of the host."""
    providers = tuple(
        replace(provider, uuid=uuid or provider.uuid) if provider.name == name else provider
        for provider in declaration.providers
    )
    return replace(declaration, providers=providers)


def _without_uuids(declaration: Declaration, name: str, uuid: str | None) -> Declaration:
    """The declaration without the random uuids of new providers."""
    providers = tuple(
        replace(provider, uuid=uuid if provider.name == name else None)
        for provider in declaration.providers
    )
    return replace(declaration, providers=providers)
