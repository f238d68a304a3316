"""The files of the pages, with the names of their bytes, and the document that all pages share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

# The pages by the last part of their path, in the order of the header.
PAGES: Mapping[str, str] = {
    "": "Cloud",
    "ask": "Ask",
    "tree": "Tree",
    "consumers": "Consumers",
    "changes": "Changes",
}

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HTML = "text/html; charset=utf-8"

# Types and explanations are for readers of the source. `/**` stands nowhere else in the scripts.
_COMMENTS = re.compile(rb"/\*\*(?s:.*?)\*/[ \n]*|^ *//.*\n", re.MULTILINE)

# A browser loads nothing from elsewhere, and runs nothing that data brings.
SECURITY_HEADERS = (
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
)


@dataclass(frozen=True, slots=True)
class WebFile:
    """A file as a browser gets it."""

    body: bytes
    media_type: str
    # The value of its ETag.
    tag: str

    @classmethod
    def of(cls, body: bytes, media_type: str) -> WebFile:
        """The file with these bytes."""
        return cls(body, media_type, f'"{sha256(body).hexdigest()[:32]}"')


@cache
def static_files() -> Mapping[str, WebFile]:
    """Scripts, styles and pictures by name."""
    directory = files("roost.web") / "static"
    found = {}
    for path in directory.iterdir():
        media_type = _MEDIA_TYPES.get(f".{path.name.rpartition('.')[2]}")
        if media_type is not None:
            body = path.read_bytes()
            if path.name.endswith(".js"):
                body = _COMMENTS.sub(b"", body)
            found[path.name] = WebFile.of(body, media_type)
    return found


@cache
def page(name: str, *, token: str) -> WebFile:
    """The document of a page. Links are relative, so a prefix of the service changes nothing.

    Its scripts send the token, unless it is empty: then the reader types one.
    """
    template = Template((files("roost.web") / "static" / "page.html").read_text())
    links = "\n".join(
        f'        <a href="./{path}"{" aria-current=page" if path == name else ""}>{title}</a>'
        for path, title in PAGES.items()
    )
    text = template.substitute(title=escape(PAGES[name]), links=links, token=escape(token))
    return WebFile.of(text.encode(), HTML)
