"""A submission as people write it in Python: read the workbook, compare with what is stored, write one transaction.

    python3 -c SCRIPT sqlite|postgres FOLDER WORKBOOK

The store lies in FOLDER and is used again by the next call. PostgreSQL is started there for the call and loaded by COPY; its own time and
memory count. Prints one line of JSON. Rows are dictionaries, compared value by value; there are no checks besides a required id.
"""

import contextlib
import datetime
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


def cpu_s():
    """Processor time of this process and of those it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def canonical(value):
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, datetime.datetime):
        return value.date().isoformat()
    if isinstance(value, float):
        return repr(round(value, 3))
    return str(value).strip()


def read(workbook):
    """The rows below the marker, by their id."""
    book = openpyxl.load_workbook(workbook, read_only=True, data_only=True)
    headers, rows = None, {}
    for line in book.worksheets[0].iter_rows(values_only=True):
        if headers is None:
            if line and line[0] == MARKER:
                headers = line[1:]
            continue
        values = {name: canonical(value) for name, value in zip(headers, line[1:]) if value is not None}
        if "C0" not in values or values["C0"] in rows:
            raise SystemExit("a row without an id, or an id twice")
        rows[values["C0"]] = values
    return rows


def changes(known, rows):
    created = [key for key in rows if key not in known]
    updated = [key for key, values in rows.items() if key in known and known[key] != values]
    return created, updated


class Sqlite:
    def __init__(self, folder):
        self.connection = sqlite3.connect(folder / "peer.sqlite")
        self.connection.executescript(
            """PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
               CREATE TABLE IF NOT EXISTS records (key TEXT PRIMARY KEY, cells TEXT NOT NULL);
               CREATE TABLE IF NOT EXISTS versions (key TEXT, number INTEGER, cells TEXT NOT NULL, PRIMARY KEY (key, number));"""
        )

    def known(self):
        return {key: json.loads(cells) for key, cells in self.connection.execute("SELECT key, cells FROM records")}

    def write(self, rows):
        with self.connection:
            self.connection.executemany(
                "INSERT INTO records VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET cells = excluded.cells", rows
            )
            self.connection.executemany(
                "INSERT INTO versions SELECT ?1, coalesce(max(number), 0) + 1, ?2 FROM versions WHERE key = ?1", rows
            )

    def close(self):
        self.connection.close()


class Postgres:
    """A server of our own; root may not run one, so it runs as `postgres` then."""

    def __init__(self, folder):
        programs = self.programs()
        self.folder = folder / "postgres"
        self.who = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if self.who:
            # The folder is ours; those above it are left as they are, and then it does not work.
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
        self.psql = [programs / "psql", "-h", self.folder, "-U", "postgres", "-X", "-q", "-v", "ON_ERROR_STOP=1"]
        for _ in range(200):
            ready = subprocess.run([programs / "pg_isready", "-q", "-h", self.folder], check=False)
            if ready.returncode == 0:
                break
            time.sleep(0.05)
        self.call(
            [
                *self.psql,
                "-c",
                """SET client_min_messages = warning;
                   CREATE TABLE IF NOT EXISTS records (key text PRIMARY KEY, cells text NOT NULL);
                   CREATE TABLE IF NOT EXISTS versions (key text, number integer, cells text NOT NULL, PRIMARY KEY (key, number))""",
            ]
        )

    @staticmethod
    def programs():
        found = shutil.which("initdb")
        if found:
            return pathlib.Path(found).resolve().parent
        folders = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"))
        if not folders:
            raise SystemExit("PostgreSQL is not installed")
        return folders[-1]

    def call(self, command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **self.who)

    def known(self):
        command = [*self.psql, "-c", "COPY records TO STDOUT"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as asked:
            lines = (line.rstrip("\n").split("\t", 1) for line in asked.stdout)
            return {key: json.loads(cells.replace("\\\\", "\\")) for key, cells in lines}

    def write(self, rows):
        command = [*self.psql, "-1", "-f", "-"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as told:
            told.stdin.write("CREATE TEMP TABLE new (key text, cells text) ON COMMIT DROP;\nCOPY new FROM STDIN;\n")
            for key, cells in rows:
                told.stdin.write(f"{key}\t{cells.replace(chr(92), chr(92) * 2)}\n")
            told.stdin.write("\\.\n")
            told.stdin.write(
                """INSERT INTO versions SELECT n.key, coalesce((SELECT max(number) FROM versions v WHERE v.key = n.key), 0) + 1, n.cells
                     FROM new n;
                   INSERT INTO records SELECT key, cells FROM new ON CONFLICT (key) DO UPDATE SET cells = excluded.cells;\n"""
            )
        if told.returncode:
            raise SystemExit("psql failed")

    def close(self):
        self.server.send_signal(signal.SIGINT)
        self.server.wait()


def main():
    kind, folder, workbook = sys.argv[1:]
    store = {"sqlite": Sqlite, "postgres": Postgres}[kind](pathlib.Path(folder))
    with contextlib.closing(store):
        began, cpu_before = time.monotonic(), cpu_s()
        rows = read(workbook)
        created, updated = changes(store.known(), rows)
        preview_s, preview_cpu_s = time.monotonic() - began, cpu_s() - cpu_before
        began, cpu_before = time.monotonic(), cpu_s()
        store.write([(key, json.dumps(rows[key], sort_keys=True)) for key in [*created, *updated]])
        submit_s = time.monotonic() - began
    # The time of a server is known when it has ended.
    submit_cpu_s = cpu_s() - cpu_before
    memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    figures = {
        "preview_s": preview_s,
        "preview_cpu_s": preview_cpu_s,
        "submit_s": submit_s,
        "submit_cpu_s": submit_cpu_s,
        "memory_bytes": memory_bytes,
        "created": len(created),
        "updated": len(updated),
    }
    print(json.dumps(figures))


main()
