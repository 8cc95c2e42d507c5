"""The stage for `cargo xtask schema`: the real server, the understudy beside it, one of everything inside, and schemathesis.

Guarantees: everything listens on loopback and lies in a temporary folder; what was started is stopped. Exit code 0: no
finding, and nothing is left behind. Otherwise there are findings, or a server died, or the run could not be made.
Does not do: install or build anything; `xtask/src/schema.rs` does.
"""

import argparse
import base64
import hashlib
import hmac
import io
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
API_SECRET = "the secret of the host application in this run"
EDITOR_SECRET = "the secret of the Document Server in this run"
STARTED_WITHIN_SECONDS = 60
# Longer than any run.
LIFE_SECONDS = 86400
# Documents that may be deleted, so that the others stay.
EXPENDABLE = 20


def signed(claims, secret):
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=")

    claims = {"exp": int(time.time()) + LIFE_SECONDS, **claims}
    head = part(b'{"alg":"HS256","typ":"JWT"}') + b"." + part(json.dumps(claims).encode())
    return (head + b"." + part(hmac.new(secret.encode(), head, hashlib.sha256).digest())).decode()


def workbook(rows):
    """A workbook as small as one can be."""

    def cells(number, row):
        places = zip("ABCDEFGH", row)
        texts = (f'<c r="{letter}{number}" t="inlineStr"><is><t>{text}</t></is></c>' for letter, text in places if text)
        return f'<row r="{number}">{"".join(texts)}</row>'

    office = "http://schemas.openxmlformats.org"
    head, main = '<?xml version="1.0" encoding="UTF-8"?>', f"{office}/spreadsheetml/2006/main"
    relation = f"{office}/officeDocument/2006/relationships"
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    data = "".join(cells(number, row) for number, row in enumerate(rows, 1))

    def relations(target, what):
        named = f'<Relationship Id="r1" Type="{relation}/{what}" Target="{target}"/>'
        return f'{head}<Relationships xmlns="{office}/package/2006/relationships">{named}</Relationships>'

    parts = {
        "[Content_Types].xml": f'{head}<Types xmlns="{office}/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/>'
        f'<Override PartName="/xl/sheet1.xml" ContentType="{kind}.worksheet+xml"/></Types>',
        "_rels/.rels": relations("xl/workbook.xml", "officeDocument"),
        "xl/workbook.xml": f'{head}<workbook xmlns="{main}" xmlns:r="{relation}">'
        '<sheets><sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": relations("sheet1.xml", "worksheet"),
        "xl/sheet1.xml": f'{head}<worksheet xmlns="{main}"><sheetData>{data}</sheetData></worksheet>',
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return content.getvalue()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Stage:
    """The two servers and what is in them."""

    def __init__(self, arguments, folder):
        self.ours = f"http://127.0.0.1:{free_port()}"
        self.editor = f"http://127.0.0.1:{free_port()}"
        # Any file that the understudy serves is content enough for a save.
        self.file = self.editor + "/web-apps/apps/api/documents/api.js"
        self.keys = []
        claims = {"sub": "schema", "name": "Schema", "role": "admin", "companies": "*"}
        self.token = signed(claims, API_SECRET)
        self.log = open(folder / "log.txt", "wb")
        settings = {
            "SERVER_LISTEN": self.ours.removeprefix("http://"),
            "SERVER_PUBLIC_URL": self.ours,
            "SERVER_INTERNAL_URL": self.ours,
            "SERVER_DATA": str(folder / "data"),
            "SERVER_ENVIRONMENT": "schema",
            "DOCUMENT_SERVER_PUBLIC_URL": self.editor,
            "DOCUMENT_SERVER_SECRET": EDITOR_SECRET,
            "API_SECRET": API_SECRET,
            # Made-up callbacks name links that lead nowhere.
            "SAVING_ANSWER_SECONDS": "1",
            "SAVING_FETCH_ATTEMPTS": "1",
            "SAVING_DOWNLOAD_SECONDS": "1",
        }
        environment = os.environ | {f"SAVEGUARD_{name}": value for name, value in settings.items()}
        understudy = [arguments.understudy, "serve", "--listen", self.editor.removeprefix("http://"), "--secret", EDITOR_SECRET]
        self.processes = [
            subprocess.Popen([*understudy, "--time-scale", "20"], stdout=self.log, stderr=self.log),
            subprocess.Popen([arguments.server, "serve"], env=environment, cwd=folder, stdout=self.log, stderr=self.log),
        ]

    def ask(self, method, path, body=None, headers=()):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        url = path if path.startswith("http") else self.ours + path
        request = urllib.request.Request(url, data, {"Content-Type": kind, **dict(headers)}, method=method)
        # A callback has a token of its own, and the Document Server's header for it is the same one.
        if not url.startswith(self.ours + "/callback/"):
            request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            content = answer.read()
            return json.loads(content) if "json" in answer.headers.get("Content-Type", "") else content

    def wait(self):
        deadline = time.monotonic() + STARTED_WITHIN_SECONDS
        for url in (self.editor + "/healthcheck", self.ours + "/readyz"):
            while True:
                try:
                    self.ask("GET", url)
                    break
                except OSError:
                    if time.monotonic() > deadline or self.dead():
                        raise SystemExit("schema: the servers did not start; see " + self.log.name)
                    time.sleep(0.1)

    def dead(self):
        return [each.args[0] for each in self.processes if each.poll() is not None]

    def stop(self):
        for each in reversed(self.processes):
            each.terminate()
        for each in reversed(self.processes):
            try:
                each.wait(20)
            except subprocess.TimeoutExpired:
                each.kill()

    def call_back(self, key, status):
        """Says that a key was saved."""
        claims = {"key": key, "status": status, "url": self.file, "users": ["schema"]}
        try:
            self.ask("POST", "/callback/schema", {"token": signed(claims, EDITOR_SECRET)})
        except urllib.error.HTTPError as refused:
            # An orphan is kept, and the server is asked to repeat.
            if refused.code != 503:
                raise

    def fill(self):
        """One of everything. Returns the ids, by the name of their dictionary."""
        for company in ("acme", "limited"):
            self.ask("POST", "/api/v1/companies", {"id": company, "name": company})
            self.ask("POST", f"/api/v1/companies/{company}/projects", {"id": "plans", "name": "Plans"})
        documents = ["notes", "draft"]
        expendable = [f"expendable-{number}" for number in range(EXPENDABLE)]
        for document in documents + expendable:
            query = f"?id={document}&name={document}.txt"
            self.ask("POST", "/api/v1/companies/acme/projects/plans/documents" + query, b"It begins.\n")
        keys = [self.open(each) for each in documents]
        for document in documents:
            seen = self.ask("GET", f"/api/v1/documents/{document}")["sha256"]
            second = b"It begins.\nIt goes on.\n"
            self.ask("PUT", f"/api/v1/documents/{document}/content", second, {"If-Match": f'"{seen}"'})
        # What was opened before the second version may not replace it: conflict copies. Then one in quarantine, and an orphan.
        for key in keys:
            self.call_back(key, 2)
        self.keys = [self.open(each) for each in documents]
        self.call_back(self.keys[0], 3)
        self.call_back("another_place_edit_1", 2)
        kept = [each["number"] for each in self.ask("GET", "/api/v1/documents/notes/kept")]
        orphans = [each["number"] for each in self.ask("GET", "/api/v1/operations/orphans")]
        wish = {"name": "expendable", "role": "viewer", "companies": ["acme"]}
        tokens = [self.ask("POST", "/api/v1/tokens", wish)["details"]["number"] for _ in range(5)]
        heads = [f'"{self.ask("GET", f"/api/v1/documents/{each}")["sha256"]}"' for each in documents]
        return self.invite(expendable[:5]) | self.register() | {
            "company": ["acme"],
            "limited": ["limited"],
            "project": ["plans"],
            "document": documents,
            "notes": ["notes"],
            "expendable": expendable,
            "name": ["report.txt", "R\u00e9sum\u00e9 2026.txt"],
            "version": ["1", "2"],
            "head": heads,
            "kept": kept,
            "orphan": orphans,
            "token": tokens,
        }

    def register(self):
        """Somebody who hands in, and what by."""
        organisation = "/api/v1/organisations/o1"
        crates = pathlib.Path(__file__).parents[2] / "crates"
        self.ask("POST", "/api/v1/templates", (crates / "sheets/templates/waste-records.toml").read_bytes())
        loads = (crates / "server/tests/it/loads.toml").read_text()
        self.ask("POST", "/api/v1/templates", loads.replace('"one-active"', '"parallel"').encode())
        self.ask("PUT", organisation, {"name": "One"})
        self.ask("PUT", organisation + "/registrations/r1", {"number": "R/1", "template": "waste-records"})
        self.ask("PUT", organisation + "/registrations/r1/accreditations/a1", {"from": "2026-01-01"})
        self.ask("PUT", organisation + "/registrations/r1/deadlines/Q1", {"due": "2026-04-28"})
        self.ask("PUT", organisation + "/registrations/r2", {"number": "R/2", "template": "loads"})
        return self.hand_in(organisation + "/registrations/r2") | {
            "organisation": ["o1"],
            "registration": ["r1", "r2"],
            "accreditation": ["a1"],
            "period": ["Q1", "2026 Q2"],
            "template": ["waste-records", "loads"],
            "template_version": ["2.1", "1.0.0"],
        }

    def hand_in(self, registration):
        """Summary logs in every state that stays: two submitted, one to be confirmed, one that is wrong."""
        links = [registration + "/summary-logs/" + self.bring(registration, each) for each in ("1.5", "2", "3", "much")]
        for link in links[:2]:
            try:
                self.ask("POST", link + "/submit")
            except urllib.error.HTTPError:
                # The second preview is computed again, because the first was submitted.
                self.until(link, lambda log: not log["is_stale"])
                self.ask("POST", link + "/submit")
            self.until(link, lambda log: log["state"] == "submitted")
        return {
            "log": [link.rpartition("/")[2] for link in links],
            "submission": ["1", "2"],
            "load": ["load"],
            "load_key": ["1000", "1001"],
            "workbook_registration": ["r2"],
        }

    def bring(self, registration, tonnes):
        rows = [
            ["__T_META_REGISTRATION", "R/2"],
            ["__T_META_VERSION", "1.0.0"],
            ["__T_TABLE_LOADS", "ID", "SITE", "TONNES"],
            ["", "1000", "North", tonnes],
            ["", "1001", "South", "2"],
        ]
        log = self.ask("POST", registration + "/summary-logs?name=loads.xlsx", workbook(rows))["id"]
        self.until(f"{registration}/summary-logs/{log}", lambda log: log["state"] in ("validated", "invalid"))
        return log

    def until(self, link, holds):
        deadline = time.monotonic() + STARTED_WITHIN_SECONDS
        while True:
            found = self.ask("GET", link)
            if holds(found):
                return found
            if time.monotonic() > deadline:
                raise SystemExit(f"schema: it stays so: {found}")
            time.sleep(0.05)

    def invite(self, expendable):
        """Share links, what a guest has, and what the Document Server has."""
        link = self.share("notes", {"allows": "edit"})["token"]
        password = self.share("notes", {"allows": "view", "password": "secret"})["token"]
        viewed = self.ask("POST", "/api/v1/documents/notes/editor-config", {"mode": "view"})
        source = urllib.parse.urlsplit(viewed["config"]["document"]["url"])
        return {
            "link": [link, password],
            "share": [self.share(each, {"allows": "view"})["details"]["number"] for each in expendable],
            "ticket": [self.ask("POST", f"/api/v1/shares/{link}/open", {})["ticket"]],
            "stream": urllib.parse.parse_qs(source.query)["token"],
        }

    def open(self, document):
        return self.ask("POST", f"/api/v1/documents/{document}/editor-config", {"mode": "edit"})["key"]

    def share(self, document, wish):
        return self.ask("POST", f"/api/v1/documents/{document}/shares", wish)


def configuration(ids):
    """`schemathesis.toml`, with the ids that exist."""
    lines = [(HERE / "schemathesis.toml").read_text()]
    for name, values in ids.items():
        if not values:
            raise SystemExit(f"schema: there is no {name}")
        lines.append(f"[dictionaries.{name}]\nvalues = {json.dumps(values)}\n")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--understudy", required=True)
    parser.add_argument("rest", nargs="*")
    arguments = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="saveguard-schema-"))
    stage = Stage(arguments, folder)
    try:
        stage.wait()
        (folder / "schemathesis.toml").write_text(configuration(stage.fill()))
        program = pathlib.Path(sys.executable).parent / "schemathesis"
        command = [program, "--config-file", folder / "schemathesis.toml", "run", stage.ours + "/api/openapi.json"]
        settings = {
            "SCHEMA_TOKEN": stage.token,
            "SCHEMA_KEYS": json.dumps(stage.keys),
            "SCHEMA_FILE": stage.file,
            "SCHEMATHESIS_HOOKS": "hooks",
            "PYTHONPATH": str(HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NO_PROXY": "127.0.0.1",
        }
        code = subprocess.run([*command, *arguments.rest], cwd=folder, env=os.environ | settings).returncode
        dead = stage.dead()
        if dead:
            print(f"schema: died meanwhile: {dead}")
            code = code or 1
    finally:
        stage.stop()
    if code:
        print(f"schema: logs and data are in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
