"""A host application: who is signed in, which documents there are, and a page with the editor.

Guarantees: a token is made only for the person in the signed cookie, lives for ten minutes, and never leaves but to their
own page. Does not do: passwords. Choosing a name stands for the login your application has.
"""

import base64
import hashlib
import hmac
import html
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SAVEGUARD = os.environ.get("SAVEGUARD_URL", "http://localhost:8080").rstrip("/")
COMPANY = os.environ.get("COMPANY", "acme")
PORT = int(os.environ.get("PORT", "3000"))
TOKEN_SECONDS = 600

# Your application has a table of users. The role decides what they may do.
USERS = {
    "ann": {"name": "Ann Author", "role": "editor"},
    "ben": {"name": "Ben Binder", "role": "editor"},
    "vera": {"name": "Vera Viewer", "role": "viewer"},
}


def read_secret():
    """The secret shared with Saveguard (`api.secret`), directly or from its file."""
    file = os.environ.get("SAVEGUARD_API_SECRET_FILE")
    secret = Path(file).read_text().strip() if file else os.environ.get("SAVEGUARD_API_SECRET", "")
    if not secret:
        raise SystemExit("Set SAVEGUARD_API_SECRET_FILE or SAVEGUARD_API_SECRET.")
    return secret.encode()


SECRET = read_secret()


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign(text):
    return base64url(hmac.new(SECRET, text.encode(), hashlib.sha256).digest())


def token_for(user):
    """A JWT for this person, as Saveguard wants it: HS256, with id, name, role and companies."""
    claims = {
        "sub": user,
        "name": USERS[user]["name"],
        "role": USERS[user]["role"],
        "companies": [COMPANY],
        "exp": int(time.time()) + TOKEN_SECONDS,
    }
    head = base64url(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    body = base64url(json.dumps(claims).encode())
    return f"{head}.{body}.{sign(f'{head}.{body}')}"


def documents_of(user):
    """The documents this person may see."""
    path = f"/api/v1/companies/{urllib.parse.quote(COMPANY)}/documents"
    request = urllib.request.Request(SAVEGUARD + path, headers={"Authorization": f"Bearer {token_for(user)}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def page(title, body):
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<style>body{{font:1rem/1.5 system-ui,sans-serif;margin:0}}header,main{{padding:.5rem 1rem}}
header{{display:flex;gap:1rem;align-items:center;border-bottom:1px solid #ccc}}
td{{padding:.2rem 1rem .2rem 0}}#editor{{height:calc(100vh - 5rem)}}</style></head><body>{body}</body></html>"""


def sign_in_page():
    names = "".join(
        f'<button name="user" value="{id}">{html.escape(user["name"])} ({user["role"]})</button> '
        for id, user in USERS.items()
    )
    return page("Sign in", f'<main><h1>Who are you?</h1><form method="post" action="/sign-in">{names}</form></main>')


def list_page(user):
    rows = ""
    for document in documents_of(user):
        id, name = urllib.parse.quote(document["id"]), html.escape(document["name"])
        edit = f'<a href="/open/{id}/edit">Edit</a>' if USERS[user]["role"] == "editor" else ""
        rows += (
            f'<tr data-document="{html.escape(document["id"])}"><td>{name}</td><td>version {document["head"]}</td>'
            f'<td>{edit}</td><td><a href="/open/{id}/view">View</a></td></tr>'
        )
    who = html.escape(USERS[user]["name"])
    return page("Documents", f'<header>{who} <a href="/sign-out">Sign out</a></header>'
                f"<main><h1>Documents</h1><table>{rows}</table></main>")


def editor_page(user, document, operation):
    # What goes into a script is JSON in an attribute: no quoting to get wrong.
    data = html.escape(json.dumps({"server": SAVEGUARD, "document": document, "operation": operation}))
    return page(document, f"""<header><a href="/">Documents</a> <span id="status" role="status">Opening …</span></header>
<div id="editor" data-open="{data}"></div>
<script type="module">
const element = document.getElementById("editor");
const status = document.getElementById("status");
const {{ server, document: id, operation }} = JSON.parse(element.dataset.open);
const {{ mount }} = await import(`${{server}}/client/saveguard.js`);
await mount({{
  element, server, document: id, operation,
  getToken: async () => (await fetch("/token", {{ method: "POST" }})).text(),
  on: {{
    ready: () => {{ status.textContent = "Open"; }},
    version: (version) => {{ status.textContent = `Version ${{version.version}} by ${{version.author_name}}`; }},
    error: (error) => {{ status.textContent = error.message; }},
  }},
}});
</script>""")


class Handler(BaseHTTPRequestHandler):
    def user(self):
        """Who is signed in, by the signed cookie."""
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("user")
        user, _, signature = cookie.value.partition(".") if cookie else ("", "", "")
        is_good = user in USERS and hmac.compare_digest(signature, sign(f"cookie:{user}"))
        return user if is_good else None

    def do_GET(self):
        user, path = self.user(), urllib.parse.urlparse(self.path).path
        if path == "/sign-out":
            return self.go("/", "user=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict")
        if user is None:
            return self.send(200, sign_in_page())
        if path == "/":
            try:
                return self.send(200, list_page(user))
            except urllib.error.URLError as trouble:
                return self.send(502, page("Trouble", f"<main>Saveguard: {html.escape(str(trouble))}</main>"))
        parts = [urllib.parse.unquote(part) for part in path.split("/")]
        if len(parts) == 4 and parts[1] == "open" and parts[3] in ("edit", "view"):
            return self.send(200, editor_page(user, parts[2], parts[3]))
        return self.send(404, page("Not found", "<main>There is no such page.</main>"))

    def do_POST(self):
        length = min(int(self.headers.get("Content-Length") or 0), 1000)
        form = urllib.parse.parse_qs(self.rfile.read(length).decode())
        if self.path == "/sign-in" and form.get("user", [""])[0] in USERS:
            user = form["user"][0]
            return self.go("/", f"user={user}.{sign(f'cookie:{user}')}; Path=/; HttpOnly; SameSite=Strict")
        if self.path == "/token" and self.user():
            return self.send(200, token_for(self.user()), "text/plain; charset=utf-8")
        return self.send(403, page("Not allowed", "<main>Sign in first.</main>"))

    def send(self, status, text, kind="text/html; charset=utf-8"):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def go(self, place, cookie):
        self.send_response(303)
        self.send_header("Location", place)
        self.send_header("Set-Cookie", cookie)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Quiet: addresses may carry ids of documents."""


if __name__ == "__main__":
    print(f"http://localhost:{PORT}", flush=True)
    ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
