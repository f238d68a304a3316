"""The epoch of a journal: a text that distinguishes it from all other journals.

A new epoch makes every reader read all tables again. The epoch also says whether triggers write to
the journal: then other programs change the tables too, and do not lock providers as Roost does.
"""

from __future__ import annotations

import uuid

from sqlalchemy import Connection, select, update

from roost.store.tables import roost_meta

_EPOCH = "epoch"
_MARK = "+triggers"


def new_epoch(*, with_triggers: bool) -> str:
    """An epoch that no journal had before."""
    return f"{uuid.uuid4()}{_MARK if with_triggers else ''}"


def has_triggers(epoch: str) -> bool:
    """Whether triggers write to the journal of this epoch.

    >>> has_triggers("0b6aa1a8-93d5-4d3c-9a5c-3a1c1f9b9a50+triggers")
    True
    """
    return epoch.endswith(_MARK)


def read_epoch(connection: Connection) -> str | None:
    """The epoch of the journal; `None` if the row is missing."""
    return connection.scalar(select(roost_meta.c.value).where(roost_meta.c.name == _EPOCH))


def renew_epoch(connection: Connection, *, with_triggers: bool | None = None) -> None:
    """Make all readers read all tables again; `None` keeps what the epoch says of triggers."""
    if with_triggers is None:
        with_triggers = has_triggers(read_epoch(connection) or "")
    connection.execute(
        update(roost_meta)
        .where(roost_meta.c.name == _EPOCH)
        .values(value=new_epoch(with_triggers=with_triggers))
    )
