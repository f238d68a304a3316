"""A program that passes the write gate of a database: `GATE LOG NAME THREADS PASSES`.

Each thread writes the name into the log inside the gate, as often as PASSES says. With 0 passes the
process enters the gate, prints `inside`, and stays there.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from roost.store.databases.sqlite.write_gate import WriteGate


def main() -> None:
    path, log, name, threads, passes = sys.argv[1:]
    gate = WriteGate(path, 600)
    if passes == "0":
        print("waiting", flush=True)
        with gate.passed():
            print("inside", flush=True)
            time.sleep(600)
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    crew = [
        threading.Thread(target=pass_often, args=(gate, file, name, int(passes)))
        for _ in range(int(threads))
    ]
    print("waiting", flush=True)
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()


def pass_often(gate: WriteGate, file: int, name: str, passes: int) -> None:
    for _ in range(passes):
        with gate.passed():
            os.write(file, name.encode())
            time.sleep(0.002)


if __name__ == "__main__":
    main()
