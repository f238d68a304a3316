"""Keystone below /v3 and placement below /placement, on one port."""

from __future__ import annotations

from typing import Any

from keystoneauth1.identity.v3 import Password

from support.stubs.placement_stub import PlacementStub, Received, Reply, Step


class KeystoneStub(PlacementStub):
    """Gives a token to each client that knows the password. Placement takes the last token only."""

    def __init__(self, *script: Step) -> None:
        super().__init__(*script, otherwise=self._answer)
        self.tokens = 0
        self.password = "secret"
        self.regions = ["RegionOne"]
        # Where the catalog says that each service is.
        self.services = {"placement": "/placement"}

    @property
    def auth(self) -> Password:
        """Credentials with the right password."""
        return Password(**self.credentials)

    @property
    def credentials(self) -> dict[str, Any]:
        return {
            "auth_url": f"{self.url}/v3",
            "username": "nova",
            "password": "secret",
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
        }

    @property
    def placement_requests(self) -> list[Received]:
        return [request for request in self.received if request.path.startswith("/placement")]

    def expire_token(self) -> None:
        """Make placement refuse the last token."""
        self.tokens += 1

    def _answer(self, request: Received) -> Reply:
        if request.path == "/v3/auth/tokens":
            return self._authenticate(request)
        if request.path.startswith("/v3"):
            return Reply(404)
        if request.headers.get("x-auth-token") != f"token-{self.tokens}":
            return Reply(401)
        return Reply(200, {"path": request.path})

    def _authenticate(self, request: Received) -> Reply:
        user = request.json["auth"]["identity"]["password"]["user"]
        if user["password"] != self.password:
            return Reply(401, headers={"X-OpenStack-Request-ID": "req-from-identity"})
        self.tokens += 1
        catalog = [
            {"type": service, "name": service, "endpoints": self._endpoints(path)}
            for service, path in self.services.items()
        ]
        token = {
            "methods": ["password"],
            "expires_at": "2999-01-01T00:00:00.000000Z",
            "user": {"id": "1", "name": user["name"], "domain": {"id": "default"}},
            "catalog": catalog,
        }
        return Reply(201, {"token": token}, {"X-Subject-Token": f"token-{self.tokens}"})

    def _endpoints(self, path: str) -> list[dict[str, str]]:
        return [
            {"interface": interface, "region": region, "region_id": region, "url": self.url + where}
            for region in self.regions
            for interface, where in (("public", path), ("internal", f"{path}/internal"))
        ]
