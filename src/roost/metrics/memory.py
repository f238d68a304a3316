"""The memory that all processes of a server share for their counts.

Each process counts in a slot of its own, so no process waits for another. A slot outlives its
process: the next process that takes the slot counts on from there, so no count is lost.

A slot is a header of integers, then entries one after another: the length of the key, the number
of values, the key, the values. A process appends entries and never moves one.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
import stat
import struct
import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roost.metrics.processes import command_line, process_namespace, start_ticks

_LOG = logging.getLogger(__name__)

SLOT_BYTES = 1024 * 1024
SLOTS_MAX = 512
_WORD = 8
# Process id, start of the process, whether it answers requests, end of the entries.
_HEADER = struct.Struct("qqqq")
_ENTRY = struct.Struct("qq")
# After the header: values that no scrape shows, for entries that found no room.
_SPARE_WORDS = 64
_ENTRIES_START = _HEADER.size + _SPARE_WORDS * _WORD
# The header ends with the last word that a writer changes.
_SERVES_WORD, _END_WORD = 2, 3
_FILE_PREFIX = "roost-metrics-"
# The bytes of the memory whose locks stand for something.
_CLAIM_BYTE, _LEADER_BYTE = 0, 1


@dataclass(frozen=True, slots=True)
class SlotContent:
    """What a slot says: its process, and the values by key."""

    number: int
    process_id: int
    is_alive: bool
    serves: bool
    values: dict[bytes, list[float]]


class ProcessSlot:
    """The slot of this process: places of values by key. For one thread at a time."""

    def __init__(self, memory: mmap.mmap, number: int) -> None:
        self.number = number
        # Every word of the slot, as a number with a fraction.
        self.values = memoryview(memory).cast("d")
        # Keys that found no room.
        self.lost = 0
        self._memory = memory
        self._words = memoryview(memory).cast("q")
        self.places = {key: place for key, place, _ in _entries(memory, self._words[_END_WORD])}

    def mark_as_serving(self) -> None:
        """Say that the process answers requests."""
        self._words[_SERVES_WORD] = 1

    def place(self, key: bytes, width: int) -> int:
        """The index of the first of the values of this key; new values are zero.

        A key that finds no room gets values that no scrape shows.
        """
        found = self.places.get(key)
        if found is not None:
            return found
        begin = self._words[_END_WORD] or _ENTRIES_START
        first = begin + _ENTRY.size + _padded(len(key))
        end = first + width * _WORD
        if end > SLOT_BYTES:
            self.lost += 1
            self.places[key] = place = _HEADER.size // _WORD
            return place
        _ENTRY.pack_into(self._memory, begin, len(key), width)
        self._memory[begin + _ENTRY.size : begin + _ENTRY.size + len(key)] = key
        # Readers see the entry from now on, with its values.
        self._words[_END_WORD] = end
        self.places[key] = place = first // _WORD
        return place


class SharedMemory:
    """The slots of a server. Forked processes share it, each with a slot of its own."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def anonymous(cls) -> SharedMemory:
        """Memory that only this process and those that it forks can see."""
        return cls(os.memfd_create("roost-metrics", os.MFD_CLOEXEC))

    @classmethod
    def of_server(cls) -> SharedMemory:
        """Memory for this process and its siblings.

        A server may load the application in each of its workers, after it forked them. Such a
        worker and its parent have the same command line, and the id of the parent names a file.
        """
        parent = os.getppid()
        if command_line(parent) != command_line(os.getpid()):
            return cls.anonymous()
        directory = Path("/dev/shm")
        if not directory.is_dir():
            directory = Path(tempfile.gettempdir())
        _remove_remains(directory)
        try:
            return cls(_open_private(directory / _file_name(parent)))
        except OSError as error:
            _LOG.warning(
                "The workers of this server cannot share their metrics, because %s. Each worker "
                "shows its own.",
                error,
            )
            return cls.anonymous()

    def claim(self) -> ProcessSlot:
        """A slot for this process: that of a process that has ended, or a new one."""
        own, ticks = os.getpid(), start_ticks(os.getpid()) or 0
        with self._locked():
            number = self._free_number()
            begin = number * SLOT_BYTES
            if os.fstat(self._descriptor).st_size < begin + SLOT_BYTES:
                os.ftruncate(self._descriptor, begin + SLOT_BYTES)
            memory = mmap.mmap(self._descriptor, SLOT_BYTES, offset=begin)
            memory[: 3 * _WORD] = _HEADER.pack(own, ticks, 0, 0)[: 3 * _WORD]
        return ProcessSlot(memory, number)

    def read(self) -> Iterator[SlotContent]:
        """What all slots say."""
        for number in range(os.fstat(self._descriptor).st_size // SLOT_BYTES):
            begin = number * SLOT_BYTES
            process_id, ticks, serves, end = _HEADER.unpack(
                os.pread(self._descriptor, _HEADER.size, begin)
            )
            data = os.pread(self._descriptor, end, begin)
            yield SlotContent(
                number,
                process_id,
                process_id != 0 and start_ticks(process_id) == ticks,
                bool(serves),
                {
                    key: array("d", data[place * _WORD : (place + width) * _WORD]).tolist()
                    for key, place, width in _entries(data, end)
                },
            )

    def _free_number(self) -> int:
        number = -1
        for number in range(os.fstat(self._descriptor).st_size // SLOT_BYTES):
            header = os.pread(self._descriptor, _HEADER.size, number * SLOT_BYTES)
            process_id, ticks, _, _ = _HEADER.unpack(header)
            if process_id == 0 or start_ticks(process_id) != ticks:
                return number
        # More processes than slots: the last ones share a slot, and may lose a count.
        return min(number + 1, SLOTS_MAX - 1)

    def may_lead(self) -> bool:
        """Whether this process does what one process of the server does for all.

        The first that asks leads until it ends; then the next one that asks does.
        """
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _LEADER_BYTE)
        except (BlockingIOError, PermissionError):
            return False
        return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX, 1, _CLAIM_BYTE)
        try:
            yield
        finally:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _CLAIM_BYTE)


def _entries(data: mmap.mmap | bytes, end: int) -> Iterator[tuple[bytes, int, int]]:
    """The key, the index of the first value, and the number of values of each entry."""
    begin = _ENTRIES_START
    while begin < end:
        length, width = _ENTRY.unpack_from(data, begin)
        key_begin = begin + _ENTRY.size
        first = key_begin + _padded(length)
        yield bytes(data[key_begin : key_begin + length]), first // _WORD, width
        begin = first + width * _WORD


def _padded(length: int) -> int:
    """The length of a key with what follows it, up to the next whole word."""
    return -(-length // _WORD) * _WORD


def _own_prefix() -> str:
    """The beginning of the names of this user and of this namespace of process ids.

    Containers may share the directory. Each container gives the same ids to other processes.
    """
    return f"{_FILE_PREFIX}{os.getuid()}-{process_namespace()}-"


def _file_name(process_id: int) -> str:
    return f"{_own_prefix()}{process_id}-{start_ticks(process_id)}"


def _open_private(path: Path) -> int:
    """A descriptor of a file that only this user can open; `OSError` if it is another user's."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    found = os.fstat(descriptor)
    if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise PermissionError(f"{path} belongs to another user")
    return descriptor


def _remove_remains(directory: Path) -> None:
    """Remove the files of servers of this user that have ended, in this namespace."""
    prefix = _own_prefix()
    for path in directory.glob(f"{prefix}*-*"):
        process_id = path.name.removeprefix(prefix).split("-")[0]
        if process_id.isdigit() and path.name != _file_name(int(process_id)):
            path.unlink(missing_ok=True)
