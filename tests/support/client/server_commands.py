"""A call of every command that talks to a server, for `WordStub`."""

from __future__ import annotations

import json
from pathlib import Path

from support.roost_command import all_commands, roost
from support.stubs.word_stub import AGGREGATE, CONSUMER, ROOT, SHARING, WordStub

CALLS: tuple[tuple[str, str], ...] = (
    ("tree show", "--details"),
    ("tree export", ""),
    ("tree apply", "-f tree.yaml --owner rack"),
    ("tree diff", "-f tree.yaml --owner rack"),
    ("agent", "--driver file --option path=tree.yaml --name {host} --once -v"),
    ("agent", "--driver file --option path=tree.yaml --name {host} --dry-run"),
    ("top", "--once --interval 0.1"),
    ("candidates", "VCPU=4"),
    ("candidates", "VCPU=4 --order pack"),
    ("explain", "VCPU=4"),
    ("why", f"{ROOT} VCPU=4"),
    ("capacity", "VCPU=4 --by-root"),
    ("whatif", f"--drain {ROOT} explain VCPU=4"),
    ("fragmentation", "VCPU=4"),
    ("resilience", ""),
    ("provider list", ""),
    ("provider show", ROOT),
    ("provider tree", ROOT),
    ("provider create", f"new --parent {ROOT} --inventory CUSTOM_OLD=4 --trait CUSTOM_OLD"),
    ("provider set", f"{ROOT} --rename new --remove-trait CUSTOM_NO --add-trait CUSTOM_OLD"),
    ("provider set", f"{ROOT} --add-aggregate {AGGREGATE} --remove-inventory CUSTOM_NO --dry-run"),
    ("provider delete", ROOT),
    ("provider delete", f"{ROOT} --with-children"),
    ("provider adopt", f"{ROOT} --uuid {AGGREGATE}"),
    ("provider rename", f"{ROOT} new --descendants"),
    ("provider merge", f"{ROOT} --into {SHARING}"),
    ("provider merge", f"{ROOT} --into {SHARING} --dry-run"),
    ("changes", "--since eNo"),
    ("changes", f"--provider {ROOT} --root {ROOT} --kind usage"),
    ("audit", ""),
    ("audit", "--against known.txt --delete"),
    ("consumer list", ""),
    ("consumer show", CONSUMER),
    ("claim", f"CUSTOM_OLD=4 --consumer {AGGREGATE}"),
    ("claim", f"--on {ROOT} CUSTOM_OLD=4 --consumer {AGGREGATE}"),
    ("claim", f"--on {ROOT} CUSTOM_OLD=4 --dry-run"),
    ("move", f"{CONSUMER} --off {AGGREGATE[:-1]}2 CUSTOM_OLD=4"),
    ("move", f"{CONSUMER} --to {ROOT} CUSTOM_OLD=4"),
    ("release", CONSUMER),
    ("usage", ""),
    ("usage", "--by-project"),
    ("usage", "--project shop"),
    ("aggregate list", ""),
    ("aggregate show", AGGREGATE),
    ("aggregate add", f"{AGGREGATE} {SHARING} {ROOT}"),
    ("aggregate remove", f"{AGGREGATE} {ROOT} {SHARING}"),
    ("trait list", ""),
    ("trait show", "CUSTOM_OLD"),
    ("trait create", "CUSTOM_NEW CUSTOM_NEWER"),
    ("trait delete", "CUSTOM_OLD"),
    ("class list", ""),
    ("class show", "CUSTOM_OLD"),
    ("class create", "CUSTOM_NEW CUSTOM_NEWER"),
    ("class delete", "CUSTOM_OLD"),
    ("doctor", ""),
    ("owner list", "--check"),
    ("owner show", "rack --check"),
    ("owner rebind", "rack --from {url} --dry-run"),
    ("import", "--db sqlite:///copy.db --work-dir work --dry-run"),
)
"""The words of commands, and their arguments without the address."""


def commands_without_a_call() -> set[str]:
    """The commands that talk to a server, and are not in `CALLS`."""
    talking = {
        name
        for name, command in all_commands().items()
        if any(option.name in ("url", "from_url") for option in command.params)
    }
    # It keeps an address in a file, and asks no server.
    keeping = {"context add"}
    # It serves until it is stopped.
    serving = {"ui"}
    return talking - keeping - serving - {name for name, _ in CALLS}


def arguments_of(name: str, arguments: str, stub: WordStub) -> list[str]:
    """The whole call."""
    words = [word.format(host=f"host{stub.word}", url=stub.url) for word in arguments.split()]
    address = "--from-url" if name == "import" else "--url"
    return [*name.split(), *words, address, stub.url, "--token", "x"]


def write_files(stub: WordStub) -> None:
    """The tree file of the calls, and a record of the owner `rack`."""
    host = {"name": f"host{stub.word}", "inventories": {"VCPU": 4}}
    Path("known.txt").write_text(f"{CONSUMER}\n")
    Path("tree.yaml").write_text(json.dumps({"providers": [host]}))
    with WordStub(stub.word) as other:
        words = ("tree", "apply", "-f", "tree.yaml", "--owner", "rack", "--url", other.url)
        assert roost(*words).status == 0
    # The record was made at another server, which the calls must leave as it is.
    bound = roost("owner", "rebind", "rack", "--from", other.url, "--url", stub.url)
    assert bound.status == 0
