"""A placement server with four providers, which answers only reads."""

from __future__ import annotations

from typing import Any

from support.stubs.placement_stub import PlacementStub, Received, Reply


class FourProviderStub(PlacementStub):
    """A server with the roots c, a and b, and the child d of b."""

    def __init__(self) -> None:
        super().__init__(otherwise=self._answer)
        self.deleted: set[str] = set()
        """The providers that the list of all providers shows, but their tree does not."""

    @staticmethod
    def uuid(name: str) -> str:
        return f"5a1cbbc0-7f0e-4b6c-9a53-{name:0>12}"

    def _answer(self, request: Received) -> Reply:
        if request.path == "/":
            return Reply(body={"versions": [{"max_version": "1.39"}]})
        if request.path.startswith("/roost/"):
            return Reply(404)
        if request.path == "/resource_providers":
            return Reply(body={"resource_providers": [self._body(name) for name in "dcab"]})
        _, _, tree = request.path.partition("in_tree=")
        if tree:
            names = {"b": "bd"}.get(tree[-1], tree[-1])
            there = [self._body(name) for name in names if name not in self.deleted]
            return Reply(body={"resource_providers": there})
        nothing: dict[str, Any] = {"inventories": {}, "aggregates": [], "traits": []}
        return Reply(body={"resource_provider_generation": 0, **nothing})

    def _body(self, name: str) -> dict[str, Any]:
        parent = self.uuid("b") if name == "d" else None
        return {
            "uuid": self.uuid(name),
            "name": name,
            "generation": 0,
            "parent_provider_uuid": parent,
            "root_provider_uuid": parent or self.uuid(name),
        }
