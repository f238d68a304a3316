"""The uuids of the children that an owner creates. Pure."""

from __future__ import annotations

from uuid import UUID, uuid5


def child_uuid(root_uuid: str, owner_trait: str, name: str) -> str:
    """The uuid of a child, by the root that is declared above it, the owner and the child's name.

    A child that is created anew is the same provider. The owner is a part of it: if two owners
    create a child of one name at the same moment, the server tells which one did.

    >>> child_uuid("aaaaaaaa-1111-4111-8111-111111111111", "CUSTOM_ROOST_OWNER_ME", "host_disk_0")
    '32717707-8022-52b5-a601-6fb1c7ce5b1d'
    """
    return str(uuid5(UUID(root_uuid), f"{owner_trait}/{name}"))
