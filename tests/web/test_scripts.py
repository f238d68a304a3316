"""The scripts of the pages, without a browser."""

from __future__ import annotations

from roost.web.files import static_files

JAVASCRIPT_BYTES_MAX = 120 * 1024


def test_the_scripts_are_small() -> None:
    scripts = [file.body for name, file in static_files().items() if name.endswith(".js")]
    assert scripts
    assert sum(map(len, scripts)) <= JAVASCRIPT_BYTES_MAX


def test_nothing_is_loaded_from_elsewhere() -> None:
    for name, file in static_files().items():
        text = file.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in [text[i + 1 : i + 3] for i in range(len(text)) if text[i] == '"'], name
        assert "innerHTML" not in text, name
