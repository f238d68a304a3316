"""Keystone and Nova on one port: servers, migrations and flavours, as a test tells them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from support.stubs.keystone_stub import KeystoneStub
from support.stubs.placement_stub import Received, Reply

_VERSION = {
    "id": "v2.1",
    "status": "CURRENT",
    "min_version": "2.1",
    "version": "2.96",
}
_PAGE = 2


class NovaStub(KeystoneStub):
    """A compute service. Its lists have pages of two servers, as a large Nova has pages."""

    def __init__(self) -> None:
        super().__init__()
        self.services["compute"] = "/compute/v2.1"
        self.servers: list[str] = []
        # Servers that no list has: those in a cell that does not answer, or deleted softly.
        self.hidden_servers: list[str] = []
        # Status by uuid.
        self.migrations: dict[str, str] = {}
        self.flavors: list[dict[str, Any]] = []
        self.forbids = False

    def write_clouds(self, path: Path) -> None:
        """A clouds.yaml that has this cloud as `stub`."""
        auth = {**self.credentials}
        cloud = {"auth": auth, "region_name": "RegionOne", "identity_api_version": 3}
        path.write_text(yaml.safe_dump({"clouds": {"stub": cloud}}))

    def add_flavor(self, name: str, vcpus: int, ram: int, disk: int = 0, **specs: str) -> None:
        """A flavour; in the names of extra specs, `__` stands for the colon."""
        self.flavors.append(
            {
                "id": name,
                "name": name,
                "vcpus": vcpus,
                "ram": ram,
                "disk": disk,
                "OS-FLV-EXT-DATA:ephemeral": 0,
                "swap": 0,
                "os-flavor-access:is_public": True,
                "extra_specs": {key.replace("__", ":"): value for key, value in specs.items()},
            }
        )

    def _answer(self, request: Received) -> Reply:
        if not request.path.startswith("/compute"):
            return super()._answer(request)
        if request.headers.get("x-auth-token") != f"token-{self.tokens}":
            return Reply(401)
        if self.forbids:
            return Reply(403, {"forbidden": {"code": 403, "message": "Policy does not allow it"}})
        path, _, query = request.path.removeprefix("/compute/v2.1").partition("?")
        if path == "/flavors/detail":
            # Older versions leave out the extra specs.
            assert request.headers["openstack-api-version"] == "compute 2.61"
        return self._of_compute(path, query)

    def _of_compute(self, path: str, query: str) -> Reply:
        if path in ("", "/"):
            link = {"rel": "self", "href": f"{self.url}/compute/v2.1/"}
            return Reply(body={"version": {**_VERSION, "links": [link]}})
        if path == "/servers":
            return self._listed_servers(query)
        if path.startswith("/servers/"):
            uuid = path.removeprefix("/servers/")
            known = uuid in (*self.servers, *self.hidden_servers)
            return Reply(body={"server": {"id": uuid}}) if known else Reply(404, {})
        if path == "/os-migrations":
            rows = [{"uuid": uuid, "status": now} for uuid, now in self.migrations.items()]
            return Reply(body={"migrations": rows})
        if path == "/flavors/detail":
            assert "is_public=None" in query, "private flavours are flavours, too"
            return Reply(body={"flavors": self.flavors})
        return Reply(404, {})

    def _listed_servers(self, query: str) -> Reply:
        if "all_tenants=True" not in query:
            return Reply(body={"servers": []})
        marker = query.rpartition("marker=")[2] if "marker=" in query else None
        begin = 0 if marker is None else self.servers.index(marker) + 1
        page = self.servers[begin : begin + _PAGE]
        links = []
        if begin + _PAGE < len(self.servers):
            following = f"{self.url}/compute/v2.1/servers?all_tenants=True&marker={page[-1]}"
            links = [{"rel": "next", "href": following}]
        return Reply(body={"servers": [{"id": uuid} for uuid in page], "servers_links": links})
