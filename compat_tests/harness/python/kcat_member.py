"""Members by kcat -G, one kcat a member; its own words are turned into events.

The line `kill` ends every kcat with kill -9. What it wrote before is still reported: it may have been committed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from functools import partial

from member import Orders, Report, orders_and_report, run_in_threads

REBALANCED = re.compile(r"% Group .* rebalanced.*?: (?:incremental )?(assign|revoke)(.*)")
PARTITION = re.compile(r"\[(\d+)\]")


def command(orders: Orders, name: str) -> list[str]:
    settings = {
        "session.timeout.ms": orders.session_ms,
        "heartbeat.interval.ms": orders.heartbeat_ms,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 100,
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 500,
        "client.id": name,
    }
    if orders.assignor:
        settings["partition.assignment.strategy"] = orders.assignor
    if orders.static:
        settings["group.instance.id"] = name
    options = [part for key, value in settings.items() for part in ("-X", f"{key}={value}")]
    return [
        os.environ["KCAT"],
        "-b",
        orders.bootstrap,
        "-G",
        orders.group,
        "-J",
        "-u",
        "-E",  # stay while the broker is away
        *options,
        orders.topic,
    ]


def read_records(kcat: subprocess.Popen[str], report: Report, name: str) -> None:
    assert kcat.stdout is not None
    for line in kcat.stdout:
        record = json.loads(line)
        report.records(name, record["partition"], [(record["offset"], record["payload"])])


def read_words(kcat: subprocess.Popen[str], report: Report, name: str) -> None:
    assert kcat.stderr is not None
    for line in kcat.stderr:
        if found := REBALANCED.search(line):
            tell = report.assigned if found[1] == "assign" else report.revoked
            tell(name, map(int, PARTITION.findall(found[2])))
        elif "ERROR" in line:
            report.trouble(name, line.strip())


def consume(
    running: list[subprocess.Popen[str]], orders: Orders, report: Report, name: str, stop: threading.Event
) -> None:
    kcat = subprocess.Popen(
        command(orders, name),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    running.append(kcat)
    readers = [
        threading.Thread(target=read, args=(kcat, report, name)) for read in (read_records, read_words)
    ]
    for reader in readers:
        reader.start()
    while not stop.wait(0.05) and kcat.poll() is None:
        pass
    if kcat.poll() is None:
        kcat.send_signal(signal.SIGINT)
    for reader in readers:
        reader.join()
    ended = kcat.wait()
    if ended != 0:
        report.trouble(name, f"kcat ended with {ended}")
    report.tell(name, "left")


if __name__ == "__main__":
    kcats: list[subprocess.Popen[str]] = []
    run_in_threads(*orders_and_report(), partial(consume, kcats), lambda: [kcat.kill() for kcat in kcats])
