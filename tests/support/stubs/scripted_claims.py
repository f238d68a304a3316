"""Calls of `Claims` against a script of requests and answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from roost.client.claims import Claims
from roost.client.errors import AnswerLost, PlacementAPIConnectFailure
from roost.client.transport import PlacementRequest, PlacementResponse

Reply = PlacementResponse | Exception
Step = tuple[str, Reply]
"""A request, as `METHOD path`, and the reply to it."""
Call = Callable[[Claims], object]

ALICE, BOB = "a11ce000-0000-4000-8000-000000000001", "b0b00000-0000-4000-8000-000000000002"
HOST, OTHER = "c0000000-0000-4000-8000-00000000000a", "c0000000-0000-4000-8000-00000000000b"
AT_ALICE, AT_BOB = f"/allocations/{ALICE}", f"/allocations/{BOB}"
VCPU_1, VCPU_2 = {"resources": {"VCPU": 1}}, {"resources": {"VCPU": 2}}
REQUEST = {"allocations": {HOST: VCPU_1}, "mappings": {"": [HOST]}}
OWNER = {"project_id": "project", "user_id": "user"}

VERSIONS = ("GET /", PlacementResponse(200, content=b'{"versions": [{"max_version": "1.39"}]}'))
"""The question for the versions of the server, and an answer."""
DONE = PlacementResponse(204)
NOTHING = PlacementResponse(200, content=b'{"allocations": {}}')


class Script:
    """A transport that expects certain requests in order, with a reply to each."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self.sent: list[PlacementRequest] = []

    def send(self, request: PlacementRequest) -> PlacementResponse:
        assert self._steps, f"{request} was not expected: {[str(sent) for sent in self.sent]}"
        expected, reply = self._steps.pop(0)
        assert str(request) == expected
        self.sent.append(request)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def close(self) -> None:
        assert not self._steps, f"these requests did not come: {self._steps}"


class Run:
    """One call against a script: its result or error, its requests, and its pauses."""

    def __init__(self, call: Call, *steps: Step) -> None:
        script = Script(*steps)
        self.slept: list[float] = []
        self.result: object = None
        self.error: Exception | None = None
        try:
            self.result = call(Claims(script, sleep=self.slept.append, random=self._most))
        except AssertionError:
            raise
        except Exception as error:
            self.error = error
        script.close()
        self.sent = script.sent

    @staticmethod
    def _most(low: float, high: float) -> float:
        assert low == 0
        return high

    @property
    def versions(self) -> list[str | None]:
        return [request.version for request in self.sent]

    @property
    def body(self) -> Any:
        """The last body that was sent."""
        return [request.body for request in self.sent if request.body is not None][-1]


def answer(body: Any, status: int = 200) -> PlacementResponse:
    return PlacementResponse(status, {"x-openstack-request-id": "req-1"}, json.dumps(body).encode())


def holds(allocations: dict[str, Any], generation: int = 1, **more: str) -> PlacementResponse:
    owner = {**OWNER, "consumer_generation": generation, **more}
    return answer({"allocations": allocations, **owner})


def refused(
    status: int, detail: str = "no", code: str = "placement.undefined_code"
) -> PlacementResponse:
    return answer({"errors": [{"status": status, "detail": detail, "code": code}]}, status)


def provider(uuid: str, name: str = "host") -> dict[str, Any]:
    """A provider as a server lists it."""
    family = {"parent_provider_uuid": None, "root_provider_uuid": uuid}
    return {"uuid": uuid, "name": name, "generation": 1, **family}


PROVIDER_CONFLICT = refused(409, "allocations changed", "placement.concurrent_update")
CONSUMER_CONFLICT = refused(
    409, "consumer generation conflict - expected 2 but got 1", "placement.concurrent_update"
)
FULL = refused(409, "exceed the capacity")
UNREACHABLE = PlacementAPIConnectFailure("connection refused")


def lost() -> AnswerLost:
    return AnswerLost("no answer in time")


def claim(claims: Claims) -> bool:
    return claims.claim_resources(ALICE, REQUEST, "project", "user", version="1.36")


def put(claims: Claims) -> bool:
    body = {"allocations": {HOST: VCPU_1}, **OWNER, "consumer_generation": 1}
    return claims.put_allocations(ALICE, body)


def move(claims: Claims) -> bool:
    return claims.move_allocations(ALICE, BOB)


def delete(claims: Claims) -> bool:
    return claims.delete_allocations(ALICE)


def delete_by_force(claims: Claims) -> bool:
    return claims.delete_allocations(ALICE, force=True)


def add(claims: Claims) -> bool:
    return claims.add_resources(ALICE, {HOST: {"VCPU": 1}})


def remove_tree(claims: Claims) -> bool:
    return claims.remove_provider_tree(ALICE, HOST)


GET_A, GET_B = f"GET {AT_ALICE}", f"GET {AT_BOB}"
PUT_A, DELETE_A, POST = f"PUT {AT_ALICE}", f"DELETE {AT_ALICE}", "POST /allocations"
TREE = f"GET /resource_providers?in_tree={HOST}"

# The reads of each call before its write. ALICE has one VCPU of HOST, BOB has none.
READ: dict[Call, list[Step]] = {
    claim: [(GET_A, NOTHING)],
    put: [],
    move: [(GET_A, holds({HOST: VCPU_1})), (GET_B, NOTHING)],
    delete: [(GET_A, holds({HOST: VCPU_1}))],
    delete_by_force: [],
    add: [(GET_A, holds({HOST: VCPU_1}))],
    remove_tree: [
        (GET_A, holds({HOST: VCPU_1})),
        (TREE, answer({"resource_providers": [provider(HOST)]})),
    ],
}
WRITE: dict[Call, str] = {
    **{call: PUT_A for call in (claim, put, delete, add, remove_tree)},
    move: POST,
    delete_by_force: DELETE_A,
}


def steps(call: Call, reply: Reply) -> list[Step]:
    """The steps of one attempt of a call, with this reply to its write."""
    return [*READ[call], (WRITE[call], reply)]


def with_calls(*calls: Call) -> pytest.MarkDecorator:
    """Run the test once for each of these calls."""
    return pytest.mark.parametrize("call", calls, ids=lambda call: call.__name__)
