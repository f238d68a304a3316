"""A world: the data that the tests of one file start from, made through the public API.

The order and size of the calls give the generations that the suite asserts:

* one POST of an inventory for each resource class: provider generation +1 each
* one PUT of a provider's traits: +1
* aggregates at microversion 1.1: +0 (from 1.19 on: +1)
* one PUT of allocations for each consumer: +1 for the provider, and consumer generation 1; at
  microversion 1.28, where consumers have no type yet
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from uuid import uuid4

import httpx


class WorldError(Exception):
    """A world could not be made."""


def new_uuid() -> str:
    """Return a fresh UUID."""
    return str(uuid4())


class World:
    """The providers, inventories, traits and allocations that the tests of one file start from."""

    def __init__(self, url: str) -> None:
        self.variables = _common_variables()
        """The values that the tests read as $ENVIRON['NAME']."""
        self._generations: dict[str, int] = {}
        self._resource_classes: set[str] = set()
        self._traits: set[str] = set()
        self._client = httpx.Client(
            base_url=url,
            # uwsgi closes every connection without a header. A kept connection would lose the
            # next request.
            headers={"x-auth-token": "admin", "connection": "close"},
            timeout=60,
            trust_env=False,
            # There is no TLS here, and loading the certificates takes time.
            verify=False,
        )

    def __enter__(self) -> World:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def provider(
        self,
        name: str,
        *aggregates: str,
        parent: str | None = None,
        uuid: str | None = None,
        variable: str | None = None,
    ) -> str:
        """Create a provider and return its UUID; the variable exports the UUID to the tests."""
        uuid = uuid or new_uuid()
        body = {"name": name, "uuid": uuid}
        if parent:
            body["parent_provider_uuid"] = parent
        self._send("POST", "/resource_providers", "1.20", body)
        self._generations[uuid] = 0
        if aggregates:
            self.aggregates(uuid, *aggregates)
        if variable:
            self.variables[variable] = uuid
        return uuid

    def aggregates(self, provider: str, *aggregates: str) -> None:
        """Set the aggregates of a provider."""
        self._send("PUT", f"/resource_providers/{provider}/aggregates", "1.1", list(aggregates))

    def resource_class(self, name: str) -> None:
        """Create a custom resource class that does not exist yet."""
        if name.startswith("CUSTOM_") and name not in self._resource_classes:
            self._send("PUT", f"/resource_classes/{name}", "1.7")
            self._resource_classes.add(name)

    def inventory(
        self, provider: str, resource_class: str, total: int, **fields: int | float
    ) -> None:
        """Add the inventory of one resource class; max_unit is the total unless given."""
        self.resource_class(resource_class)
        body = {
            "resource_class": resource_class,
            "resource_provider_generation": self._generations[provider],
            "total": total,
            "max_unit": total,
            **fields,
        }
        self._send("POST", f"/resource_providers/{provider}/inventories", "1.20", body)
        self._generations[provider] += 1

    def traits(self, provider: str, *names: str) -> None:
        """Set the traits of a provider; custom ones are created."""
        for name in names:
            if name.startswith("CUSTOM_") and name not in self._traits:
                self._send("PUT", f"/traits/{name}", "1.6")
                self._traits.add(name)
        body = {
            "traits": list(names),
            "resource_provider_generation": self._generations[provider],
        }
        self._send("PUT", f"/resource_providers/{provider}/traits", "1.6", body)
        self._generations[provider] += 1

    def allocation(
        self, provider: str, user: str, project: str, resources: Mapping[str, int]
    ) -> str:
        """Allocate from one provider to a new consumer and return the consumer's UUID."""
        consumer = new_uuid()
        body = {
            "allocations": {provider: {"resources": dict(resources)}},
            "user_id": user,
            "project_id": project,
            "consumer_generation": None,
        }
        self._send("PUT", f"/allocations/{consumer}", "1.28", body)
        self._generations[provider] += 1
        return consumer

    def verify(self) -> None:
        """Compare the generation of every provider with the one that the calls must give."""
        for provider, expected in self._generations.items():
            answer = self._send("GET", f"/resource_providers/{provider}", "1.20").json()
            if answer["generation"] != expected:
                raise WorldError(
                    f"provider {answer['name']} has generation {answer['generation']} "
                    f"after the fixture's writes, expected {expected}"
                )

    def _send(
        self, method: str, path: str, microversion: str, body: object = None
    ) -> httpx.Response:
        """Send one request; a failure or an error status is a WorldError."""
        headers = {"openstack-api-version": f"placement {microversion}"}
        try:
            answer = self._client.request(method, path, headers=headers, json=body)
        except httpx.HTTPError as error:
            raise WorldError(f"{method} {path}: {error!r}") from error
        if not answer.is_success:
            raise WorldError(
                f"{method} {path} at {microversion} answered {answer.status_code}: "
                f"{answer.text[:500]}"
            )
        return answer


def _common_variables() -> dict[str, str]:
    """Return the variables that every file of the suite may use."""
    names = (
        "RP_UUID RP_NAME RP_UUID1 RP_NAME1 RP_UUID2 RP_NAME2 PROJECT_ID ADMIN_PROJECT_ID "
        "SERVICE_PROJECT_ID USER_ID PROJECT_ID_ALT USER_ID_ALT INSTANCE_UUID MIGRATION_UUID "
        "CONSUMER_UUID PARENT_PROVIDER_UUID ALT_PARENT_PROVIDER_UUID"
    )
    variables = {name: new_uuid() for name in names.split()}
    for suffix in ("", "1", "2"):
        variables[f"CUSTOM_RES_CLASS{suffix}"] = f"CUSTOM_IRON_NFV{suffix}"
    return variables
