"""The answers of a fake server about traits and resource classes."""

from __future__ import annotations

from typing import Any

from roost.client.testing import bodies
from roost.client.testing.cloud import FakeCloud, FakeRefusal
from roost.client.testing.fake_request import FakeRequest
from roost.client.testing.faults import json_answer
from roost.client.transport import PlacementResponse
from roost.model.identifiers import is_custom_name

_NO_CONTENT = PlacementResponse(204)


# -- traits


def list_traits(cloud: FakeCloud, request: FakeRequest) -> PlacementResponse:
    """The traits that pass the filters of the query."""
    found = cloud.traits
    for value in request.query.get("name", ()):
        operator, _, operand = value.partition(":")
        if operator == "in":
            found = found & set(operand.split(","))
        elif operator == "startswith":
            found = {name for name in found if name.startswith(operand)}
        else:
            raise FakeRefusal(400, f"Badly formatted name parameter. Got: {value}")
    for value in request.query.get("associated", ()):
        of_providers = {name for each in cloud.providers.values() for name in each.traits}
        found = found & of_providers if value.lower() == "true" else found - of_providers
    return json_answer({"traits": sorted(found)})


def show_trait(cloud: FakeCloud, _request: FakeRequest, name: str) -> PlacementResponse:
    """Whether a trait exists."""
    _demand_trait(cloud, name)
    return _NO_CONTENT


def ensure_trait(cloud: FakeCloud, _request: FakeRequest, name: str) -> PlacementResponse:
    """Create a custom trait, unless it exists."""
    headers = {"location": f"/traits/{name}"}
    if not is_custom_name(name):
        raise FakeRefusal(400, f"The trait is invalid: {name} must start with CUSTOM_")
    if name in cloud.traits:
        return PlacementResponse(204, headers)
    cloud.traits.add(name)
    return PlacementResponse(201, headers)


def delete_trait(cloud: FakeCloud, _request: FakeRequest, name: str) -> PlacementResponse:
    """Delete a custom trait that no provider has."""
    _demand_trait(cloud, name)
    cloud.demand_custom(name, "trait")
    if any(name in each.traits for each in cloud.providers.values()):
        raise FakeRefusal(409, f"The trait {name} is in use by a resource provider.")
    cloud.traits.discard(name)
    return _NO_CONTENT


def _demand_trait(cloud: FakeCloud, name: str) -> None:
    if name not in cloud.traits:
        raise FakeRefusal(404, f"No such trait(s): {name}.")


# -- resource classes


def list_classes(cloud: FakeCloud, _request: FakeRequest) -> PlacementResponse:
    """All resource classes."""
    return json_answer({"resource_classes": [_body(name) for name in cloud.classes]})


def show_class(cloud: FakeCloud, _request: FakeRequest, name: str) -> PlacementResponse:
    """One resource class."""
    _demand_class(cloud, name)
    return json_answer(_body(name))


def create_class(cloud: FakeCloud, request: FakeRequest) -> PlacementResponse:
    """Create a custom resource class."""
    name = request.valid(bodies.RESOURCE_CLASS)["name"]
    if name in cloud.classes:
        raise FakeRefusal(409, f"Conflicting resource class already exists: {name}")
    return _new_class(cloud, name)


def ensure_class(cloud: FakeCloud, _request: FakeRequest, name: str) -> PlacementResponse:
    """Create a custom resource class, unless it exists."""
    bodies.demand_valid(name, bodies.CUSTOM_NAME)
    if name in cloud.classes:
        return PlacementResponse(204, _location(name))
    return _new_class(cloud, name)


def delete_class(cloud: FakeCloud, _request: FakeRequest, name: str) -> PlacementResponse:
    """Delete a custom resource class that no inventory has."""
    _demand_class(cloud, name)
    cloud.demand_custom(name, "resource class")
    if any(name in each.inventories for each in cloud.providers.values()):
        raise FakeRefusal(409, f"Cannot delete resource class {name}: it is in use in inventory.")
    cloud.classes.remove(name)
    return _NO_CONTENT


def _new_class(cloud: FakeCloud, name: str) -> PlacementResponse:
    cloud.classes.append(name)
    return PlacementResponse(201, _location(name))


def _demand_class(cloud: FakeCloud, name: str) -> None:
    if name not in cloud.classes:
        raise FakeRefusal(404, f"No such resource class {name}.")


def _location(name: str) -> dict[str, str]:
    return {"location": f"/resource_classes/{name}"}


def _body(name: str) -> dict[str, Any]:
    links = [{"rel": "self", "href": f"/resource_classes/{name}"}]
    return {"name": name, "links": links}
