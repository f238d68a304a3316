"""A server that answers every request of every command, with one word in every name and text."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.stubs.placement_stub import PlacementStub, Received, Reply, Step

ROOT = "c0ffee00-0000-4000-8000-000000000001"
CHILD = "c0ffee00-0000-4000-8000-000000000002"
SHARING = "c0ffee00-0000-4000-8000-000000000003"
AGGREGATE = "aaaaaaaa-0000-4000-8000-000000000001"
CONSUMER = "11111111-0000-4000-8000-000000000001"
# The fields of an inventory. Its reserved amount leaves nothing to claims.
FIELDS = {
    "total": 8,
    "reserved": 9,
    "min_unit": 1,
    "max_unit": 8,
    "step_size": 1,
    "allocation_ratio": 1.0,
}


class WordStub(PlacementStub):
    """Three providers, one consumer, and an answer to each question under `/roost/`.

    With `refuses`, each write is refused with the word in its reason.
    """

    def __init__(self, word: str = "", *, refuses: bool = False) -> None:
        super().__init__(otherwise=self.answer)
        self.word = word
        self.refuses = refuses
        # Whether the server has whole trees and an audit.
        self.has_ledger = True
        self.parents: dict[str, str | None] = {ROOT: None, CHILD: ROOT, SHARING: None}
        self.names = {uuid: f"provider-{uuid[-1]}{word}" for uuid in self.parents}
        self.used = tuple(self.parents)
        self.resource_class = f"CUSTOM_CLASS{word}"
        self.trait = f"CUSTOM_TRAIT{word}"

    def answer(self, request: Received) -> Step:
        path = urlsplit(request.path).path
        if request.method == "GET" or path == "/roost/whatif":
            if path == "/usages" and request.headers["openstack-api-version"].endswith(" 1.9"):
                return Reply(body={"usages": {self.resource_class: 2 * len(self.used)}})
            return self._read(path, dict(parse_qsl(urlsplit(request.path).query)))
        lacks = not self.has_ledger and path == "/roost/audit"
        if self.refuses or lacks:
            return self.error(404 if lacks else 409)
        body: dict[str, Any] = json.loads(request.body) if request.body else {}
        if path.startswith("/roost/"):
            return Reply(body=self._changed(path.rpartition("/")[2]))
        if request.method == "POST" and path == "/resource_providers":
            self.parents[body["uuid"]] = body.get("parent_provider_uuid")
            self.names[body["uuid"]] = body["name"]
            return Reply(body=self._provider(body["uuid"]))
        if "inventories" in body:
            given = body["inventories"].items()
            body["inventories"] = {name: {**FIELDS, **fields} for name, fields in given}
        generation = body.get("resource_provider_generation", 0) + 1
        return Reply(200, {**body, "resource_provider_generation": generation})

    def error(self, status: int) -> Reply:
        """An error with the word in each of its fields."""
        error = {"status": status, "title": self.word, "code": self.word, "detail": self.word}
        return Reply(status, {"errors": [error]}, {"x-openstack-request-id": "req-1"})

    def _read(self, path: str, query: dict[str, str]) -> Reply:
        if path == "/metrics":
            return Reply(body=self._metrics().encode())
        if path == "/readyz":
            check = {"ok": False, "text": f"down{self.word}"}
            return Reply(503, {"version": f"9{self.word}", "checks": {f"x{self.word}": check}})
        found = re.fullmatch(r"/resource_providers/([0-9a-f-]{36})(?:/(\w+))?", path)
        if found and found[1] not in self.parents:
            return self.error(404)
        if path == "/resource_providers":
            chosen = [self._provider(uuid) for uuid in self.parents if self._matches(uuid, query)]
            return Reply(body={"resource_providers": chosen})
        body = self._of_provider(found[1], found[2]) if found else self._body(path)
        return self.error(404) if body is None else Reply(body=body)

    def _matches(self, uuid: str, query: dict[str, str]) -> bool:
        tree = query.get("in_tree")
        is_in_tree = tree is None or self._root(uuid) == self._root(tree)
        return is_in_tree and query.get("name") in (None, self.names[uuid])

    def _root(self, uuid: str) -> str:
        return self.parents.get(uuid) or uuid

    def _provider(self, uuid: str) -> dict[str, Any]:
        parent = self.parents[uuid]
        return {
            "uuid": uuid,
            "name": self.names[uuid],
            "generation": 1,
            "parent_provider_uuid": parent,
            "root_provider_uuid": parent or uuid,
        }

    def _of_provider(self, uuid: str, what: str | None) -> dict[str, Any]:
        if what is None:
            return self._provider(uuid)
        parts: dict[str, Any] = {
            "inventories": {self.resource_class: FIELDS},
            "usages": {self.resource_class: 2},
            "aggregates": [] if uuid == SHARING else [AGGREGATE],
            "traits": [self.trait],
            "allocations": {
                CONSUMER: {"resources": {self.resource_class: 2}, "consumer_generation": 1}
            }
            if uuid in self.used
            else {},
        }
        return {"resource_provider_generation": 1, what: parts[what]}

    def _body(self, path: str) -> dict[str, Any] | None:
        amounts = {self.resource_class: 2}
        bodies: dict[str, dict[str, Any]] = {
            "/": {"versions": [{"max_version": "1.39"}]},
            "/resource_classes": {
                "resource_classes": [{"name": self.resource_class}, {"name": "CUSTOM_OLD"}]
            },
            "/traits": {"traits": [self.trait, "CUSTOM_OLD", "MISC_SHARES_VIA_AGGREGATE"]},
            "/usages": {"usages": {f"TYPE{self.word}": {**amounts, "consumer_count": 1}}},
            f"/allocations/{CONSUMER}": {
                "allocations": {
                    uuid: {"resources": amounts, "generation": 1} for uuid in self.used
                },
                "project_id": f"project{self.word}",
                "user_id": f"user{self.word}",
                "consumer_type": f"TYPE{self.word}",
                "consumer_generation": 1,
            },
        }
        candidates = self._candidates()
        questions: dict[str, dict[str, Any]] = {
            "/allocation_candidates": candidates,
            "/roost/candidates": candidates,
            "/roost/explain": self._explanation(),
            "/roost/capacity": self._capacity(),
            "/roost/whatif": {
                "changes": [{"text": f"change{self.word}"}],
                "answers": [{"before": self._explanation(), "after": self._explanation()}],
            },
            "/roost/fragmentation": {
                "resource_classes": {self.resource_class: {"free": 5, "usable": [1]}},
                "empty_roots": 0,
            },
            "/roost/changes": {
                "changes": [self._change()],
                "next": f"cursor{self.word}",
                "more": False,
            },
            "/roost/resilience": {
                "survives": 1,
                "roots": [{"root": self._reference(), "text": f"text{self.word}"}],
                "exact": True,
            },
        }
        if self.has_ledger:
            questions |= self._trees()
        if path.startswith("/allocations/") and path not in bodies:
            return {"allocations": {}}
        return {**bodies, **questions}.get(path)

    def _trees(self) -> dict[str, dict[str, Any]]:
        trees = {uuid: self._tree(uuid) for uuid, parent in self.parents.items() if parent is None}
        answers: dict[str, dict[str, Any]] = {
            f"/roost/trees/{uuid}": trees[self._root(uuid)] for uuid in self.parents
        }
        return answers | {"/roost/trees": {"trees": list(trees.values()), "next": None}}

    def _tree(self, root: str) -> dict[str, Any]:
        members = [uuid for uuid in self.parents if self._root(uuid) == root]
        lending = [] if root == SHARING else [SHARING]
        return {
            "providers": [self._whole(uuid) for uuid in members],
            "sharing_providers": [self._whole(uuid) for uuid in lending],
        }

    def _whole(self, uuid: str) -> dict[str, Any]:
        parent = self.parents[uuid]
        parts = ("inventories", "usages", "aggregates", "traits")
        return {
            "name": self.names[uuid],
            "uuid": uuid,
            **({} if parent is None else {"parent": self.names[parent]}),
            "generation": 1,
            **{part: self._of_provider(uuid, part)[part] for part in parts},
        }

    def _reference(self) -> dict[str, str]:
        return {"uuid": ROOT, "name": self.names[ROOT]}

    def _change(self) -> dict[str, Any]:
        text = f"text{self.word}"
        return {
            **dict.fromkeys(("at", "kind", "request_id", "user_id", "project_id"), text),
            **dict.fromkeys(("provider", "root"), self._reference()),
            "resource_classes": [self.resource_class],
        }

    def _candidates(self) -> dict[str, Any]:
        amounts = {self.resource_class: {"capacity": 8, "used": 2}}
        summary = {"resources": amounts, "root_provider_uuid": ROOT, "traits": [self.trait]}
        request = {
            "allocations": {ROOT: {"resources": {self.resource_class: 2}}},
            "mappings": {f"_g{self.word}": [ROOT]},
        }
        return {"allocation_requests": [request], "provider_summaries": {ROOT: summary}}

    def _explanation(self) -> dict[str, Any]:
        text = f"text{self.word}"
        stage = {"stage": f"room{self.word}", "providers": 1, "trees": 1, "text": text}
        group = {"group": f"_g{self.word}", "funnel": [stage]}
        return {
            "feasible": False,
            "exact": False,
            "reason": {"stage": stage["stage"], "group": group["group"], "text": text},
            "groups": [group],
            "trees": [{"stage": "together", "trees": 0, "text": text}],
            "misses": [{"root": self._reference(), "lacks": [{"text": text}]}],
            "hints": [{"text": text, "query": f"resources=VCPU:1{self.word}"}],
        }

    def _changed(self, verb: str) -> dict[str, Any]:
        """What a change under `/roost/` answers."""
        reference, text = self._reference(), f"text{self.word}"
        changed = {"provider": {"uuid": AGGREGATE, "name": text}, "was": reference}
        mend = {"method": text, "path": f"/x{self.word}", "body": {text: text}}
        finding = {"kind": text, "provider": reference, "consumer": None, "text": text}
        answers: dict[str, dict[str, Any]] = {
            "adopt": changed,
            "rename": {"renamed": [changed]},
            "merge": {
                "provider": reference,
                "merged": {"uuid": SHARING, "name": text},
                "consumers": 1,
                **{key: [text] for key in ("resource_classes", "traits", "aggregates")},
                "children": [reference],
            },
            "audit": {
                "findings": [{**finding, "mend": mend, "deleted": True}],
                "counts": {text: 1},
                "consumers": 1,
                "next": None,
            },
        }
        return answers[verb]

    def _capacity(self) -> dict[str, Any]:
        limit = {"resource_class": self.resource_class, "text": f"text{self.word}"}
        root = {"root": self._reference(), "fits": 3}
        return {"fits": 3, "exact": True, "limited_by": limit, "roots": [root], "next": None}

    def _metrics(self) -> str:
        label = json.dumps(f"x{self.word}", ensure_ascii=False)
        # Prometheus escapes line feeds, and leaves other characters as they are.
        label = re.sub(r"\\u[0-9a-f]{4}", lambda found: json.loads(f'"{found[0]}"'), label)
        lines = [
            f"roost_build_info{{version={label}}} 1",
            f"roost_requests_total{{route={label},method={label},status={label}}} 5",
            f"roost_conflicts_total{{cause={label}}} 5",
            f"roost_stage_seconds_total{{stage={label}}} 5",
            f"roost_resource_capacity{{resource_class={label}}} 5",
        ]
        return "\n".join([*lines, ""])
