/* A host application: who is signed in, which documents there are, and a page with the editor.
 *
 * Guarantees: a token is made only for the person in the signed cookie, lives for ten minutes, and never leaves but to
 * their own page. Does not do: passwords. Choosing a name stands for the login your application has.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";

const saveguard = (process.env.SAVEGUARD_URL ?? "http://localhost:8080").replace(/\/$/, "");
const company = process.env.COMPANY ?? "acme";
const port = Number(process.env.PORT ?? 3000);
const TOKEN_SECONDS = 600;

// Your application has a table of users. The role decides what they may do.
const users = {
  ann: { name: "Ann Author", role: "editor" },
  ben: { name: "Ben Binder", role: "editor" },
  vera: { name: "Vera Viewer", role: "viewer" },
};

const { SAVEGUARD_API_SECRET_FILE: file, SAVEGUARD_API_SECRET: given } = process.env;
const secret = file ? readFileSync(file, "utf8").trim() : given;
if (!secret) {
  console.error("Set SAVEGUARD_API_SECRET_FILE or SAVEGUARD_API_SECRET.");
  process.exit(1);
}

const sign = (text) => createHmac("sha256", secret).update(text).digest("base64url");
const base64url = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A JWT for this person, as Saveguard wants it: HS256, with id, name, role and companies. */
const tokenFor = (user) => {
  const exp = Math.floor(Date.now() / 1000) + TOKEN_SECONDS;
  const signed = `${base64url({ alg: "HS256", typ: "JWT" })}.${base64url({ sub: user, ...users[user], companies: [company], exp })}`;
  return `${signed}.${sign(signed)}`;
};

/** The documents this person may see. */
const documentsOf = async (user) => {
  const path = `/api/v1/companies/${encodeURIComponent(company)}/documents`;
  const response = await fetch(saveguard + path, { headers: { authorization: `Bearer ${tokenFor(user)}` } });
  if (!response.ok) throw new Error(`Saveguard answered ${response.status}`);
  return response.json();
};

const escaped = (text) => String(text).replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);

const page = (title, body) => `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;margin:0}header,main{padding:.5rem 1rem}
header{display:flex;gap:1rem;align-items:center;border-bottom:1px solid #ccc}
td{padding:.2rem 1rem .2rem 0}#editor{height:calc(100vh - 5rem)}</style></head><body>${body}</body></html>`;

const signInPage = () => {
  const names = Object.entries(users).map(([id, user]) => `<button name="user" value="${id}">${user.name} (${user.role})</button>`);
  return page("Sign in", `<main><h1>Who are you?</h1><form method="post" action="/sign-in">${names.join(" ")}</form></main>`);
};

const listPage = async (user) => {
  const rows = (await documentsOf(user)).map(({ id, name, head }) => {
    const place = `/open/${encodeURIComponent(id)}`;
    const edit = users[user].role === "editor" ? `<a href="${place}/edit">Edit</a>` : "";
    return `<tr data-document="${escaped(id)}"><td>${escaped(name)}</td><td>version ${escaped(head)}</td><td>${edit}</td>
<td><a href="${place}/view">View</a></td></tr>`;
  });
  return page("Documents", `<header>${escaped(users[user].name)} <a href="/sign-out">Sign out</a></header>
<main><h1>Documents</h1><table>${rows.join("")}</table></main>`);
};

// What goes into the script is JSON in an attribute: no quoting to get wrong.
const editorPage = (id, operation) => page(id, `<header><a href="/">Documents</a> <span id="status" role="status">Opening …</span></header>
<div id="editor" data-open="${escaped(JSON.stringify({ server: saveguard, document: id, operation }))}"></div>
<script type="module" src="/editor.js"></script>`);

const equal = (one, other) => one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

/** Who is signed in, by the signed cookie. */
const signedIn = (request) => {
  const [, user, signature] = /(?:^|; )user=(\w+)\.([\w-]+)/.exec(request.headers.cookie ?? "") ?? [];
  return user && Object.hasOwn(users, user) && equal(signature, sign(`cookie:${user}`)) ? user : null;
};

const bodyOf = async (request) => {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > 1000) throw new Error("too long");
  }
  return new URLSearchParams(text);
};

const script = readFileSync(new URL("editor.js", import.meta.url));

const answer = async (request) => {
  const { pathname } = new URL(request.url, "http://localhost");
  const user = signedIn(request);
  const html = (text, status = 200) => ({ status, kind: "text/html; charset=utf-8", text });
  const go = (cookie) => ({ status: 303, headers: { location: "/", "set-cookie": `${cookie}; Path=/; HttpOnly; SameSite=Strict` }, text: "" });
  if (request.method === "POST") {
    const chosen = pathname === "/sign-in" ? (await bodyOf(request)).get("user") : null;
    if (chosen && Object.hasOwn(users, chosen)) return go(`user=${chosen}.${sign(`cookie:${chosen}`)}`);
    if (pathname === "/token" && user) return { status: 200, kind: "text/plain; charset=utf-8", text: tokenFor(user) };
    return html(page("Not allowed", "<main>Sign in first.</main>"), 403);
  }
  if (pathname === "/editor.js") return { status: 200, kind: "text/javascript; charset=utf-8", text: script };
  if (pathname === "/sign-out") return go("user=; Max-Age=0");
  if (!user) return html(signInPage());
  if (pathname === "/") return html(await listPage(user));
  const [, id, operation] = /^\/open\/([^/]+)\/(edit|view)$/.exec(pathname) ?? [];
  return id ? html(editorPage(decodeURIComponent(id), operation)) : html(page("Not found", "<main>There is no such page.</main>"), 404);
};

const server = createServer(async (request, response) => {
  try {
    const { status, kind, text, headers = {} } = await answer(request);
    response.writeHead(status, { ...(kind ? { "content-type": kind } : {}), "cache-control": "no-store", ...headers }).end(text);
  } catch (error) {
    response.writeHead(502, { "content-type": "text/plain; charset=utf-8" }).end(String(error.message));
  }
});
server.listen(port, "127.0.0.1", () => console.log(`http://localhost:${port}`));
