/* A page that signs its tokens itself, for trying things out. A real application does that on its server: README.md. */
const users = {
  ann: { name: "Ann Author", role: "editor" },
  ben: { name: "Ben Binder", role: "editor" },
  vera: { name: "Vera Viewer", role: "viewer" },
};
const form = document.getElementById("who");
const list = document.getElementById("documents");
const say = (text) => { document.getElementById("status").textContent = text; };
let mounted = null;

const base64url = (bytes) => btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const bytes = (text) => new TextEncoder().encode(text);

/** A JWT for the chosen person, as Saveguard wants it: HS256, with id, name, role and companies. */
const getToken = async () => {
  const { secret, user, company } = Object.fromEntries(new FormData(form));
  const claims = { sub: user, ...users[user], companies: [company], exp: Math.floor(Date.now() / 1000) + 600 };
  const parts = [{ alg: "HS256", typ: "JWT" }, claims].map((part) => base64url(bytes(JSON.stringify(part))));
  const key = await crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", key, bytes(parts.join(".")));
  return [...parts, base64url(new Uint8Array(signature))].join(".");
};

const open = async (id, operation) => {
  const { server } = Object.fromEntries(new FormData(form));
  const { mount } = await import(`${server}/client/saveguard.js`);
  mounted?.destroy();
  mounted = await mount({
    element: "#editor", server, document: id, operation, getToken,
    on: {
      version: (version) => say(`Version ${version.version} by ${version.author_name}`),
      error: (error) => say(error.message),
    },
  });
};

const row = ({ id, name, head }) => {
  const line = document.createElement("tr");
  line.dataset.document = id;
  const operations = users[form.user.value].role === "editor" ? ["edit", "view"] : ["view"];
  const buttons = operations.map((operation) => {
    const button = Object.assign(document.createElement("button"), { textContent: operation, className: operation });
    button.onclick = () => open(id, operation);
    return button;
  });
  for (const content of [name, `version ${head}`, ...buttons]) {
    const cell = document.createElement("td");
    cell.append(content);
    line.append(cell);
  }
  return line;
};

form.onsubmit = async (event) => {
  event.preventDefault();
  const { server, company } = Object.fromEntries(new FormData(form));
  try {
    const { Client } = await import(`${server}/client/saveguard.js`);
    const documents = await new Client({ server, getToken }).get(`/api/v1/companies/${encodeURIComponent(company)}/documents`);
    list.replaceChildren(...documents.map(row));
    say(`${documents.length} documents`);
  } catch (error) {
    say(error.message);
  }
};
