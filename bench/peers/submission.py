"""The same job as people write it in Python: read the workbook, check it, stage it, tell what it would change; then submit what is staged.

    python3 -c SCRIPT sqlite|postgres FOLDER WORKBOOK

The store lies in FOLDER, an absolute path, and is used again by the next call. PostgreSQL is started there for the call and loaded by COPY;
its own time counts, its memory and its start do not. Prints one line of JSON. What it leaves out, in its favour: problems are not
collected but end it, nothing is fenced, audited or announced, and nobody asks over HTTP.
"""

import contextlib
import datetime
import decimal
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import openpyxl

MARKER = "__SG_TABLE_LOADS"
KEY, REQUIRED, MEASURE = "C0", "C1", "C29"
THOUSANDTH = decimal.Decimal("0.001")
TABLES = """
    CREATE TABLE IF NOT EXISTS records (key text PRIMARY KEY, hash text NOT NULL, cells text NOT NULL);
    CREATE TABLE IF NOT EXISTS versions (key text, number integer, hash text NOT NULL, cells text NOT NULL, measure text,
        PRIMARY KEY (key, number));
    CREATE TABLE IF NOT EXISTS staged (key text PRIMARY KEY, hash text NOT NULL, cells text NOT NULL, measure text);
"""
STATS = """SELECT count(*) FILTER (WHERE r.key IS NULL), count(*) FILTER (WHERE r.hash <> s.hash)
           FROM staged s LEFT JOIN records r ON r.key = s.key"""
SUBMIT = """
    INSERT INTO versions SELECT s.key, coalesce((SELECT max(number) FROM versions v WHERE v.key = s.key), 0) + 1, s.hash, s.cells, s.measure
        FROM staged s LEFT JOIN records r ON r.key = s.key WHERE r.key IS NULL OR r.hash <> s.hash;
    INSERT INTO records SELECT key, hash, cells FROM staged WHERE true
        ON CONFLICT (key) DO UPDATE SET hash = excluded.hash, cells = excluded.cells WHERE records.hash <> excluded.hash;
    DELETE FROM staged;
"""


def cpu_s():
    """Processor time of this process and of those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def integer(value):
    if not isinstance(value, int):
        raise ValueError("must be a whole number")
    return str(value)


def text(value):
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value.strip()


def day(value):
    if not isinstance(value, datetime.datetime):
        raise ValueError("must be a date")
    return value.date().isoformat()


def flag(value):
    if not isinstance(value, bool):
        raise ValueError("must be yes or no")
    return "Yes" if value else "No"


def number(value):
    if not isinstance(value, (int, float)):
        raise ValueError("must be a number")
    exact = decimal.Decimal(repr(value)).quantize(THOUSANDTH)
    if exact < 0:
        raise ValueError("must not be below 0")
    return str(exact)


KINDS = {"C0": integer}
KINDS |= {f"C{column}": text for column in range(1, 13)}
KINDS |= {f"C{column}": day for column in range(13, 16)}
KINDS |= {f"C{column}": flag for column in range(16, 18)}
KINDS |= {f"C{column}": number for column in range(18, 30)}


def read(workbook):
    """The rows below the marker as they are staged, one after the other."""
    book = openpyxl.load_workbook(workbook, read_only=True, data_only=True)
    columns, keys = None, set()
    for at, line in enumerate(book.worksheets[0].iter_rows(values_only=True), 1):
        if columns is None:
            if line and line[0] == MARKER:
                columns = [(name, KINDS[name]) for name in line[1:]]
            continue
        values = {}
        for (name, kind), value in zip(columns, line[1:]):
            if value is not None:
                try:
                    values[name] = kind(value)
                except ValueError as cause:
                    raise SystemExit(f"row {at}, {name}: {cause}") from cause
        key = values.get(KEY)
        if key is None or key in keys or not values.get(REQUIRED):
            raise SystemExit(f"row {at}: no id, an id twice, or something that is required is missing")
        keys.add(key)
        cells = json.dumps(values, sort_keys=True, separators=(",", ":"))
        yield key, hashlib.sha256(cells.encode()).hexdigest(), cells, values.get(MEASURE)


class Sqlite:
    def __init__(self, folder):
        self.connection = sqlite3.connect(folder / "peer.sqlite")
        self.connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; {TABLES}")

    def stage(self, rows):
        with self.connection:
            self.connection.executemany("INSERT INTO staged VALUES (?, ?, ?, ?)", rows)
        return self.connection.execute(STATS).fetchone()

    def submit(self):
        self.connection.executescript(f"BEGIN; {SUBMIT} COMMIT")

    def close(self):
        self.connection.close()


class Postgres:
    """A server of our own; root may not run one, so it runs as `postgres` then."""

    def __init__(self, folder):
        programs = self.programs()
        self.folder = folder / "postgres"
        self.who = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if self.who:
            # The folder is ours; those above it are left as they are.
            folder.chmod(0o711)
        if not self.folder.exists():
            self.folder.mkdir()
            if self.who:
                shutil.chown(self.folder, "postgres", "postgres")
            self.call([programs / "initdb", "-D", self.folder, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-locale"])
        arguments = [programs / "postgres", "-D", self.folder, "-k", self.folder, "-h", ""]
        self.server = subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder, **self.who
        )
        try:
            self.psql = [programs / "psql", "-h", self.folder, "-U", "postgres", "-X", "-q", "-v", "ON_ERROR_STOP=1"]
            for _ in range(200):
                ready = subprocess.run([programs / "pg_isready", "-q", "-h", self.folder], check=False)
                if ready.returncode == 0:
                    break
                time.sleep(0.05)
            self.call([*self.psql, "-c", f"SET client_min_messages = warning; {TABLES}"])
        except BaseException:
            self.close()
            raise

    @staticmethod
    def programs():
        folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        found = folders[-1] if folders else shutil.which("initdb")
        if not found:
            raise SystemExit("PostgreSQL is not installed")
        return pathlib.Path(found).resolve().parent

    def call(self, command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.who)

    def stage(self, rows):
        with subprocess.Popen([*self.psql, "-f", "-"], stdin=subprocess.PIPE, text=True) as told:
            told.stdin.write("COPY staged FROM STDIN;\n")
            for key, digest, cells, measure in rows:
                cells = cells.replace("\\", "\\\\")
                told.stdin.write(f"{key}\t{digest}\t{cells}\t{measure}\n")
            told.stdin.write("\\.\n")
        if told.returncode:
            raise SystemExit("psql failed")
        asked = subprocess.run([*self.psql, "-At", "-c", STATS], check=True, stdout=subprocess.PIPE, text=True)
        return tuple(int(count) for count in asked.stdout.split("|"))

    def submit(self):
        self.call([*self.psql, "-1", "-c", SUBMIT])

    def close(self):
        self.server.send_signal(signal.SIGINT)
        self.server.wait()


def main():
    kind, folder, workbook = sys.argv[1:]
    store = {"sqlite": Sqlite, "postgres": Postgres}[kind](pathlib.Path(folder))
    with contextlib.closing(store):
        began, cpu_before = time.monotonic(), cpu_s()
        created, updated = store.stage(read(workbook))
        preview_s, preview_cpu_s = time.monotonic() - began, cpu_s() - cpu_before
        began, cpu_before = time.monotonic(), cpu_s()
        store.submit()
        submit_s = time.monotonic() - began
    # The time of a server is known when it has ended.
    submit_cpu_s = cpu_s() - cpu_before
    figures = {
        "preview_s": preview_s,
        "preview_cpu_s": preview_cpu_s,
        "submit_s": submit_s,
        "submit_cpu_s": submit_cpu_s,
        "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "created": created,
        "updated": updated,
    }
    print(json.dumps(figures))


main()
