"""The check of the service account, by a real Keystone."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.api.authentication.keystone_checks import AccountCheck, check_account
from roost.api.authentication.refusals import IdentityUnavailable
from roost.configuration.settings import load_settings
from support.servers.real_keystone import RealKeystone


def checked(directory: Path, keystone: RealKeystone, **changes: str) -> AccountCheck:
    """The verdict about the account of the tests, with these options instead of its own."""
    lines = dict(line.split(" = ") for line in keystone.section.splitlines()[1:]) | changes
    path = directory / "placement.conf"
    options = "".join(f"{name} = {value}\n" for name, value in lines.items())
    path.write_text(f"[api]\nauth_strategy = keystone\n[keystone_authtoken]\n{options}")
    return check_account(load_settings([str(path)]))


def test_the_account_of_a_service_may_look_at_tokens(
    keystone: RealKeystone, tmp_path: Path
) -> None:
    found = checked(tmp_path, keystone)
    assert (found.account, found.roles) == ("placement", ("service",))
    assert found.may_look_at_tokens


def test_a_member_of_a_project_may_not(keystone: RealKeystone, tmp_path: Path) -> None:
    assert not checked(
        tmp_path, keystone, username="member-user", project_name="lab"
    ).may_look_at_tokens


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"password": "wrong"}, "refuses the service account placement"),
        ({"username": "nobody"}, "refuses the service account nobody"),
        ({"project_name": "nowhere"}, "refuses the service account placement"),
        ({"region_name": "nowhere"}, "no identity endpoint of the interface and the region"),
    ],
)
def test_a_wrong_option_is_named(
    keystone: RealKeystone, tmp_path: Path, changes: dict[str, str], words: str
) -> None:
    with pytest.raises(IdentityUnavailable, match=words):
        checked(tmp_path, keystone, **changes)
