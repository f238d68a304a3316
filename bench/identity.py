"""Scenario: what it costs to know the caller, with Keystone and with a file of tokens.

Three servers on copies of one cloud get the same requests in turns. All tokens are known to the
server before the first turn. A stub stands for Keystone, which a warm cache does not ask.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

import clouds
from meters import Claims, Meter, Work
from queries import FLAT
from results import Column, Table, ratio
from server import Options
from stage import Stage
from support.stubs.identity_stub import IdentityStub
from targets import Target, roost_program, running

HOSTS = 1_000
LIMIT = 10
# As long as a Fernet token for a project.
TOKEN_BYTES = 138
# A turn has to be much longer than a tick of the clock that counts CPU.
REQUESTS = 400
SECONDS = 4.0
BOUND = 1.25

TABLE = Table(
    "Identity: CPU of the server, ms a request; known tokens",
    (
        Column("noauth2", ".3f"),
        Column("keystone", ".3f"),
        Column("tokens", ".3f"),
        ratio("keystone/noauth2"),
        ratio("tokens/noauth2"),
    ),
)


def run(stage: Stage) -> None:
    """Measure candidates and claims with each strategy."""
    with _servers(stage) as (cloud, targets):
        path = FLAT[0].path(cloud, LIMIT)
        kinds: dict[str, list[Work]] = {
            f"candidates, limit={LIMIT}": [partial(_ask, target, path) for target in targets],
            "claim (PUT /allocations)": [Claims(target, cloud).claim for target in targets],
        }
        for name, works in kinds.items():
            meters = [Meter(target) for target in targets]
            for work in works:
                for number in range(REQUESTS):
                    work(-1 - number)
            for _ in range(stage.rounds):
                for meter, work in zip(meters, works, strict=True):
                    meter.run(work, SECONDS, REQUESTS)
            plain, keystone, tokens = (meter.milliseconds for meter in meters)
            ratios = keystone / plain, tokens / plain
            stage.results.add(TABLE, name, plain, keystone, tokens, *ratios)
            for strategy, measured in zip(("keystone", "tokens"), ratios, strict=True):
                stage.results.at_most(f"identity: {name}: {strategy} / noauth2", measured, BOUND)


def _ask(target: Target, path: str, _number: int) -> None:
    target.get(path)


@contextmanager
def _servers(stage: Stage) -> Iterator[tuple[clouds.Cloud, list[Target]]]:
    """The same cloud behind `noauth2`, `keystone` and `tokens`, one worker each."""
    with ExitStack() as stack:
        home = stack.enter_context(stage.home())
        stub = stack.enter_context(IdentityStub())
        stage.results.progress("making identity")
        cloud = clouds.make_sqlite(clouds.flat(HOSTS, amount=1_000), home / "0.db", stage.roost)
        token = secrets.token_urlsafe(TOKEN_BYTES)
        stub.add(token, "admin", "member", "reader")
        ways: list[tuple[str, Options]] = [
            ("admin", {}),
            (token, _keystone(stub)),
            (token, _tokens(home / "tokens.jsonl", token)),
        ]
        files = [home / f"{number}.db" for number in range(len(ways))]
        for file in files[1:]:
            shutil.copy(files[0], file)
        targets = []
        for file, (sent, options) in zip(files, ways, strict=True):
            program = replace(roost_program(stage.roost, 1), options=options)
            place = stack.enter_context(stage.home())
            targets.append(stack.enter_context(running(program, f"sqlite:///{file}", place, sent)))
        yield cloud, targets


def _keystone(stub: IdentityStub) -> Options:
    lines = stub.section.splitlines()[1:]
    options = dict(line.split(" = ", 1) for line in lines)
    return {"api": {"auth_strategy": "keystone"}, "keystone_authtoken": options}


def _tokens(file: Path, token: str) -> Options:
    digest = sha256(token.encode()).hexdigest()
    line = {"sha256": digest, "user": "ann", "project": "lab", "roles": ["admin"]}
    file.write_text(json.dumps(line) + "\n")
    file.chmod(0o600)
    return {"api": {"auth_strategy": "tokens"}, "roost": {"tokens_file": str(file)}}
