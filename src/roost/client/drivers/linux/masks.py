"""Random digits for the ids in a capture, which otherwise tell a machine apart from all others."""

from __future__ import annotations

import re
from hashlib import blake2b
from secrets import token_bytes

from roost.client.drivers.linux.captures import Capture, CapturedPath

# What precedes an id tells the driver its kind, so it stays.
_IDS = {
    re.compile(r".*/wwid"): re.compile(r"(?:[a-z0-9]+\.)?"),
    re.compile(r".*/serial"): re.compile(r""),
    re.compile(r".*/dm/uuid"): re.compile(r"(?:part\d+-)?(?:[A-Za-z0-9]+-)?"),
}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SAYS = re.compile(r"[^0f-]")  # an id of zeros only is none
_DIGEST_BYTES = 8


def mask_ids(capture: Capture) -> Capture:
    """The capture with other ids: the same for the same id, and different for different ones."""
    key = token_bytes(16)
    return Capture(
        {
            _without_uuids(path, key): _masked(path, entry, key)
            for path, entry in capture.entries.items()
        }
    )


def _without_uuids(path: str, key: bytes) -> str:
    # The reader knows the directory of a file system by the hyphen in its name.
    return _UUID.sub(lambda match: f"uuid-{_digest(match[0], key)}", path)


def _masked(path: str, entry: CapturedPath, key: bytes) -> CapturedPath:
    if entry.kind == "->":
        return CapturedPath("->", _without_uuids(entry.text, key))
    return CapturedPath("=", _masked_text(path, entry.text, key)) if entry.kind == "=" else entry


def _masked_text(path: str, text: str, key: bytes) -> str:
    for paths, beginning in _IDS.items():
        if text and paths.fullmatch(path):
            kept = beginning.match(text)
            start = kept.end() if kept else 0
            return text[:start] + (_digest(text[start:], key) if _SAYS.search(text, start) else "0")
    return text


def _digest(text: str, key: bytes) -> str:
    return blake2b(text.encode(), digest_size=_DIGEST_BYTES, key=key).hexdigest()
