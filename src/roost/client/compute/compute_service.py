"""Questions to Nova, through openstacksdk, which is an extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from roost.client.compute.nova_flavor import NovaFlavor
from roost.client.errors import PlacementError
from roost.client.transport.connecting import FoundCloud
from roost.model.text import without_user_info

# A migration in another state holds nothing under its own uuid.
_ENDED = frozenset({"cancelled", "completed", "confirmed", "done", "error", "failed", "reverted"})

# From this version on, the list of flavours has their extra specs.
_WITH_EXTRA_SPECS = "2.61"


class ComputeFailed(PlacementError):
    """Nova does not answer a question, or refuses it."""


class ComputeService:
    """The Nova of one cloud."""

    def __init__(self, cloud: FoundCloud) -> None:
        # openstacksdk is an extra.
        from openstack.connection import Connection  # noqa: PLC0415

        self._description = cloud.description
        with self._asking("its address"):
            self._compute: Any = Connection(config=cloud.region).compute

    def consumers(self) -> Iterator[str]:
        """The uuids that hold resources for Nova: those of servers and of migrations under way.

        The list lacks servers that are deleted softly, and those in cells that do not answer.
        `has_server` knows them.
        """
        with self._asking("the servers of all projects"):
            servers = (one.id for one in self._compute.servers(details=False, all_projects=True))
            migrations = (
                one.uuid
                for one in self._compute.migrations()
                if one.uuid and one.status not in _ENDED
            )
            yield from chain(servers, migrations)

    def has_server(self, uuid: str) -> bool:
        """Whether Nova has this server, in whatever state."""
        # openstacksdk is an extra.
        from openstack.exceptions import NotFoundException  # noqa: PLC0415

        with self._asking(f"the server {uuid}"):
            try:
                self._compute.get_server(uuid)
            except NotFoundException:
                return False
        return True

    def flavors(self) -> Iterator[NovaFlavor]:
        """All flavours, also those of single projects."""
        with self._asking("the flavours"):
            for one in self._compute.flavors(is_public=None, microversion=_WITH_EXTRA_SPECS):
                yield NovaFlavor(
                    one.name,
                    one.vcpus,
                    one.ram,
                    one.disk or 0,
                    one.ephemeral or 0,
                    # Old versions send an empty text instead of zero.
                    one.swap or 0,
                    dict(one.extra_specs or {}),
                )

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        """Turn the errors of the libraries into one sentence."""
        # Both libraries are an extra.
        from keystoneauth1.exceptions import ClientException  # noqa: PLC0415
        from openstack.exceptions import SDKException  # noqa: PLC0415

        try:
            yield
        except (ClientException, SDKException) as error:
            raise ComputeFailed(
                f"Nova of {self._description} did not tell {what}. Check the cloud, and whether "
                "its user is an administrator",
                detail=without_user_info(str(error)),
            ) from error
