"""The calls that only commands of operators make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlencode

from roost.client.errors import (
    InvalidResourceClass,
    NameInUse,
    PlacementError,
    ResourceProviderUpdateConflict,
    ResourceProviderUpdateFailed,
    TraitRetrievalFailed,
)
from roost.client.placement import answers
from roost.client.placement.answers import ProviderBody, refusal, require_ok
from roost.client.placement.placement import Placement
from roost.client.shapes import AMOUNTS
from roost.client.versions import ServerVersion, newest_common

AmountsByClass = Mapping[str, int]


class Administration(Placement):
    """A placement server as an operator sees it."""

    @cached_property
    def version(self) -> ServerVersion:
        """The newest version that the client and the server both speak."""
        return newest_common(self._transport)

    # -- providers

    def matching_providers(self, query: Sequence[tuple[str, str]]) -> list[ProviderBody]:
        """The providers that match these parameters of GET /resource_providers."""
        path = f"/resource_providers?{urlencode(query)}" if query else "/resource_providers"
        return answers.provider_bodies(self._read(path, str(self.version), None))

    def update_provider(self, uuid: str, name: str, parent_uuid: str | None) -> None:
        """Give a provider a name and a parent; `None` makes it a root."""
        body = {"name": name, "parent_provider_uuid": parent_uuid}
        answer = self._send("PUT", f"/resource_providers/{uuid}", body, str(self.version))
        message = f"Cannot give provider {uuid} this name and parent"
        if answer.status == 409:
            raise refusal(ResourceProviderUpdateConflict, message, answer, uuid)
        require_ok(answer, ResourceProviderUpdateFailed, message, uuid)

    def allocations_on(self, uuid: str) -> dict[str, AmountsByClass]:
        """What each consumer holds of a provider."""
        answer = self._read(f"/resource_providers/{uuid}/allocations", None, uuid)
        return answers.holdings(answer)

    # -- traits and resource classes

    def trait_names(self, *, associated: bool | None = None) -> set[str]:
        """All traits; only those that some provider has, or that none has."""
        query = "" if associated is None else f"?associated={str(associated).lower()}"
        answer = self._send("GET", f"/traits{query}", version="1.6")
        require_ok(answer, TraitRetrievalFailed, "Cannot read which traits there are")
        return set(answers.names(answer, "traits"))

    def delete_trait(self, name: str) -> None:
        """Delete a trait, which no provider may have."""
        answer = self._send("DELETE", f"/traits/{quote(name)}", version="1.6")
        message = f"Cannot delete trait {name}"
        if answer.status == 409:
            raise refusal(NameInUse, message, answer)
        require_ok(answer, TraitRetrievalFailed, message)

    def delete_resource_class(self, name: str) -> None:
        """Delete a resource class, of which no provider may have inventory."""
        answer = self._send("DELETE", f"/resource_classes/{quote(name)}", version="1.2")
        message = f"Cannot delete resource class {name}"
        if answer.status == 409:
            raise refusal(NameInUse, message, answer)
        require_ok(answer, InvalidResourceClass, message)

    # -- usages

    def usages_of_project(self, project: str, user: str | None = None) -> dict[str, Any]:
        """The amounts of each class that a project uses; by type of consumer from 1.38 on."""
        query = urlencode([("project_id", project), *([("user_id", user)] if user else [])])
        answer = self._send("GET", f"/usages?{query}", version=str(self.version))
        require_ok(answer, PlacementError, f"Cannot read the usages of project {project}")
        return dict(answer.field("usages", {str: (int, AMOUNTS)}))
