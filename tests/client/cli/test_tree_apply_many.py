"""`roost tree apply` writes many trees at a time, goes on after a failure, and ends cleanly."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.client.live_providers import LiveProviders
from support.roost_command import Outcome, roost
from support.servers.live_server import LiveServer
from support.stubs.four_provider_stub import FourProviderStub
from support.stubs.placement_stub import Received, Reply, Step
from support.transports.tampering import one_server
from support.waiting import SECONDS_MAX


def write(*providers: dict[str, Any]) -> None:
    Path("rack.yaml").write_text(json.dumps({"owner": "rack", "providers": providers}))


def apply(*arguments: str) -> Outcome:
    return roost("tree", "apply", "-f", "rack.yaml", *arguments)


def provider(live_providers: LiveProviders, short: str, **keys: Any) -> dict[str, Any]:
    """A provider of a tree file, with the name and uuid that it has on the server."""
    return {"name": live_providers.name(short), "uuid": live_providers.uuid(short), **keys}


def misnamed(live_providers: LiveProviders, short: str) -> dict[str, Any]:
    """A provider of the server, declared under a name that it does not have."""
    return {"name": live_providers.name(f"not {short}"), "uuid": live_providers.uuid(short)}


# -- failures


def test_a_tree_that_fails_holds_up_no_other_tree(live_providers: LiveProviders) -> None:
    live_providers.add("b")
    write(
        provider(live_providers, "a", inventories={"VCPU": 1}),
        misnamed(live_providers, "b"),
        provider(live_providers, "c", inventories={"VCPU": 1}),
    )
    # The reference on SQLite fails at times if several clients write at once.
    outcome = apply("--jobs", "1")
    assert outcome.status == 1
    assert [live_providers.totals(short) for short in "ac"] == [{"VCPU": 1}] * 2
    assert len(outcome.lines) == 6
    changes, failure, last = outcome.err.splitlines()
    assert changes == "6 changes made, as owner rack"
    assert failure.startswith(f"failed: {live_providers.name('not b')}: Provider ")
    assert last == "1 of 3 trees failed"


@one_server
def test_json_has_the_failures_beside_the_trees(live_providers: LiveProviders) -> None:
    live_providers.add("b")
    write(misnamed(live_providers, "b"), provider(live_providers, "a"))
    outcome = apply("--json")
    assert outcome.status == 1
    assert [tree["tree"] for tree in outcome.json["trees"]] == [live_providers.name("a")]
    (failure,) = outcome.json["failures"]
    assert (failure["tree"], failure["outcome"]) == (live_providers.name("not b"), "failed")
    assert live_providers.uuid("b") in failure["error"]
    assert outcome.json["not_begun"] == 0
    assert outcome.err.endswith("1 of 2 trees failed\n")


@one_server
def test_a_failure_is_the_status_of_diff_as_well(live_providers: LiveProviders) -> None:
    live_providers.add("b")
    write(misnamed(live_providers, "b"), provider(live_providers, "a"))
    outcome = roost("tree", "diff", "-f", "rack.yaml")
    assert outcome.status == 1
    assert f"{live_providers.name('a')}: would be created" in outcome.lines
    assert outcome.err.endswith("1 of 2 trees failed\n")


@one_server
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_name_moves_from_one_tree_to_another_in_either_order(
    live_providers: LiveProviders, order: str
) -> None:
    disk = {"name": live_providers.name("disk"), "inventories": {"DISK_GB": 1}}
    trees = {"a": [disk], "b": []}
    write(*(provider(live_providers, short, children=trees[short]) for short in order))
    assert apply().status == 0
    trees = {"a": [], "b": [disk]}
    write(*(provider(live_providers, short, children=trees[short]) for short in order))
    # One tree at a time: the order decides which tree needs the name first.
    moved = apply("--jobs", "1")
    assert (moved.status, "failed" in moved.err) == (0, False)
    (found,) = live_providers.send("GET", f"/resource_providers?name={disk['name']}").json[
        "resource_providers"
    ]
    assert found["root_provider_uuid"] == live_providers.uuid("b")


@one_server
def test_a_name_may_come_from_a_tree_that_prune_removes(live_providers: LiveProviders) -> None:
    disk = {"name": live_providers.name("disk")}
    write(provider(live_providers, "a", children=[disk]))
    assert apply().status == 0
    write(provider(live_providers, "b", children=[disk]))
    moved = apply("--prune")
    assert (moved.status, "failed" in moved.err) == (0, False)
    assert not live_providers.exists("a")


class RootsStub(FourProviderStub):
    """The small server, which also finds providers by name; a test answers chosen requests."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, Step] = {}
        """Answers by the method and how the path ends."""
        self.interrupts = 0

    def _answer(self, request: Received) -> Any:
        for start, step in self.answers.items():
            method, _, end = start.partition(" ")
            if request.method == method and request.path.endswith(end):
                if self.interrupts:
                    self.interrupts -= 1
                    os.kill(os.getpid(), signal.SIGINT)
                return step
        _, _, name = request.path.partition("?name=")
        if name:
            return Reply(body={"resource_providers": [self._body(name)]})
        return super()._answer(request)


@pytest.fixture
def roots(monkeypatch: pytest.MonkeyPatch) -> Iterator[RootsStub]:
    with RootsStub() as stub:
        monkeypatch.setenv("ROOST_URL", stub.url)
        write(*({"name": name} for name in "abc"))
        yield stub


def test_a_lost_answer_is_told_as_unknown(roots: RootsStub) -> None:
    write({"name": "a", "inventories": {"VCPU": 1}}, {"name": "c"})
    roots.answers[f"PUT {roots.uuid('a')}/inventories"] = Reply(504)
    outcome = apply()
    assert outcome.status == 1
    _, unknown, last = outcome.err.splitlines()
    assert unknown.startswith("unknown: a: ")
    assert unknown.endswith("the server may have carried it out. Apply the file again to find out")
    assert last == "1 of 2 trees failed"
    assert apply("--json").json["failures"][0]["outcome"] == "unknown"


def test_a_read_that_fails_is_not_told_as_unknown(roots: RootsStub) -> None:
    roots.answers[f"GET {roots.uuid('b')}/traits"] = Reply(500)
    outcome = apply()
    assert outcome.err.splitlines()[1].startswith("failed: b: Cannot read ")


def test_no_further_tree_begins_when_the_server_takes_the_token_no_more(roots: RootsStub) -> None:
    roots.answers[f"GET in_tree={roots.uuid('b')}"] = Reply(401)
    outcome = apply("--jobs", "1")
    assert outcome.status == 1
    assert not [path for path in roots.asked if path.endswith(f"in_tree={roots.uuid('c')}")]
    _, not_begun, failed, complaint, following = outcome.err.splitlines()
    assert (not_begun, failed) == ("1 tree not begun", "1 of 3 trees failed")
    assert "Cannot read /resource_providers" in complaint
    assert "--token" in complaint
    assert following.startswith("Next: roost doctor --url ")


# -- interruption


def test_ctrl_c_ends_after_the_tree_under_way(roots: RootsStub) -> None:
    nothing = {"resource_provider_generation": 0, "traits": []}
    roots.answers[f"GET {roots.uuid('b')}/traits"] = Reply(body=nothing)
    roots.interrupts = 1
    outcome = apply("--jobs", "1", "--json")
    assert outcome.status == 130
    assert [tree["tree"] for tree in outcome.json["trees"]] == ["a", "b"]
    assert outcome.json["not_begun"] == 1
    assert outcome.err.splitlines() == [
        "1 tree not begun",
        "roost: Interrupted. 2 of 3 trees done. Run the same command again: it continues.",
    ]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_ends_at_once(roots: RootsStub) -> None:
    roots.answers["GET /traits"] = Reply(503)
    roots.interrupts = 2
    outcome = apply("--jobs", "1")
    assert outcome.status == 130
    assert "0 of 3 trees done" in outcome.err


# -- many at a time


@one_server
def test_trees_are_printed_in_the_order_of_the_file(live_providers: LiveProviders) -> None:
    shorts = [f"host{number}" for number in range(12)]
    write(*(provider(live_providers, short, inventories={"VCPU": 1}) for short in shorts))
    for jobs in ("8", "1"):
        outcome = apply("--jobs", jobs, "--json")
        names = [tree["tree"] for tree in outcome.json["trees"]]
        assert names == [live_providers.name(short) for short in shorts]
    assert [live_providers.totals(short) for short in shorts] == [{"VCPU": 1}] * 12


def test_trees_that_share_a_provider_and_new_names_are_written_together(
    live_providers: LiveProviders,
) -> None:
    rack = [live_providers.uuid("rack")]
    gold, luts = live_providers.custom("GOLD"), live_providers.custom("LUTS")
    hosts = [f"host{number}" for number in range(8)]
    for total in (100, 200):
        pool = provider(
            *(live_providers, "pool"),
            inventories={"DISK_GB": total},
            aggregates=rack,
            traits=["MISC_SHARES_VIA_AGGREGATE", gold],
        )
        write(
            *(
                provider(
                    live_providers, short, aggregates=rack, traits=[gold], inventories={luts: total}
                )
                for short in hosts
            ),
            pool,
        )
        outcome = apply()
        assert outcome.status == 0, outcome.err
        assert live_providers.totals("pool") == {"DISK_GB": total}
        assert [live_providers.totals(short) for short in hosts] == [{luts: total}] * 8
    assert (apply().out, roost("tree", "diff", "-f", "rack.yaml").status) == ("", 0)


def on_terminal(
    url: str, *arguments: str, with_output: bool
) -> tuple[subprocess.CompletedProcess[bytes], str]:
    """Run `roost` with its errors, and perhaps its output, on a terminal; and what that shows."""
    terminal, theirs = pty.openpty()
    shown: list[bytes] = []

    def read() -> None:
        # The end of a terminal that no process has open is an error.
        with suppress(OSError):
            while text := os.read(terminal, 65536):
                shown.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        done = subprocess.run(
            [str(Path(sys.executable).with_name("roost")), *arguments],
            stdout=theirs if with_output else subprocess.PIPE,
            stderr=theirs,
            check=True,
            timeout=SECONDS_MAX,
            env={**os.environ, "ROOST_URL": url, "TERM": "xterm", "COLUMNS": "200"},
        )
    finally:
        os.close(theirs)
        reader.join()
        os.close(terminal)
    return done, b"".join(shown).decode()


@one_server
@pytest.mark.parametrize("with_output", [False, True], ids=["pipe", "terminal"])
def test_changes_and_the_bar_do_not_mix(
    live_providers: LiveProviders, server: LiveServer, with_output: bool
) -> None:
    write(*(provider(live_providers, short) for short in "abcd"))
    done, shown = on_terminal(
        server.url, "tree", "apply", "-f", "rack.yaml", with_output=with_output
    )
    assert "applying trees" in shown
    # Each line of the terminal, after the codes that move the cursor or erase the bar.
    lines = re.split(r"[\r\n]|\x1b\[[0-9;?]*[A-Za-z]", shown)
    found = lines if with_output else done.stdout.decode().splitlines()
    for short in "abcd":
        assert f"{live_providers.name(short)}: created" in found
        assert with_output or live_providers.name(short) not in shown
