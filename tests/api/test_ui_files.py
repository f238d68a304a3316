"""The files of the pages: open to all, small, and strict about what a browser may do."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.api.application import Application
from roost.store.database import Database
from roost.web.files import PAGES, static_files
from support.api_client import ApiClient, application_client, in_process_client, settings_for

pytestmark = pytest.mark.parametrize("kind", ["sqlite"], indirect=True)


@pytest.mark.parametrize("name", [*PAGES])
def test_a_page_needs_no_token_and_lets_a_browser_run_only_its_own_scripts(
    api: ApiClient, name: str
) -> None:
    answer = ApiClient(api.send, None, None).get(f"/ui/{name}")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert "set-cookie" not in answer.headers
    assert PAGES[name] in answer.body.decode()


def test_a_page_says_whether_the_reader_has_to_type_a_token(
    database: Database, tmp_path: Path, api: ApiClient
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text("")
    configuration = f"[api]\nauth_strategy = tokens\n[roost]\ntokens_file = {tokens}\n"
    strict = in_process_client(database, tmp_path, configuration)
    assert b'name="roost-token" content=""' in ApiClient(strict.send, None, None).get("/ui/").body
    assert b'name="roost-token" content="admin"' in api.get("/ui/").body


def test_every_file_has_a_type_and_a_tag_and_a_second_look_costs_nothing(api: ApiClient) -> None:
    nobody = ApiClient(api.send, None, None)
    for name in static_files():
        answer = nobody.get(f"/ui/static/{name}")
        assert answer.status == 200
        assert answer.headers["cache-control"] == "no-cache"
        again = nobody.get(f"/ui/static/{name}", if_none_match=answer.headers["etag"])
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("path", ["/ui/none", "/ui/static/none.js", "/ui/static/..%2ffiles.py"])
def test_an_unknown_page_or_file_is_404_with_the_place_of_the_pages(
    api: ApiClient, path: str
) -> None:
    answer = api.get(path)
    assert answer.status == 404
    if "%2f" not in path:
        assert "The pages begin at /ui/." in answer.detail


def test_ui_without_a_slash_leads_to_the_pages_below_a_prefix_too(
    api: ApiClient, database: Database, tmp_path: Path
) -> None:
    assert api.get("/ui").status == 308
    mounted = application_client(
        Application(settings_for(database, tmp_path), database), script_name="/placement"
    )
    assert mounted.get("/ui").headers["location"].endswith("/placement/ui/")
