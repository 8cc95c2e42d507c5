// Opens a document in the editor of the Document Server and tells the truth about what is saved.
"use strict";

const { document: id, mode, apiUrl } = document.body.dataset;
const statusLine = document.getElementById("status");
let editor = null;
let refreshes = 0;
let changed = false;
let head = null;

const say = (text) => { statusLine.textContent = text; };

const trouble = (text) => {
  document.getElementById("frame").hidden = true;
  document.getElementById("trouble").hidden = false;
  document.getElementById("trouble-text").textContent = text;
  say("Not open");
};

const configuration = async () => {
  const response = await fetch(`/api/v1/documents/${encodeURIComponent(id)}/editor-config`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ mode }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${answer.detail ?? response.status} ${answer.next ?? ""}`);
  return answer;
};

// The key is spent or its link expired: a fresh configuration opens the newest version.
const refresh = async () => {
  refreshes += 1;
  if (refreshes > 5) return trouble("The document kept changing while it was being opened.");
  try {
    await open();
  } catch (error) {
    trouble(error.message);
  }
};

const events = {
  onAppReady: () => say("Opening …"),
  onDocumentReady: () => { refreshes = 0; say(mode === "edit" ? "Open" : "Open, read only"); },
  onDocumentStateChange: (event) => { changed = event.data; show(); },
  onRequestRefreshFile: refresh,
  onOutdatedVersion: refresh,
  onError: (event) => {
    const code = event.data?.errorCode;
    // -4: the source could not be fetched; -21: the configuration expired.
    if (code === -4 || code === -21) refresh();
    else say(`The editor reports: ${event.data?.errorDescription ?? code}`);
  },
  onWarning: (event) => say(event.data?.warningDescription ?? "The editor warns"),
  onRequestClose: () => { editor?.destroyEditor(); location.href = `/document/${encodeURIComponent(id)}`; },
};

const open = async () => {
  const { config } = await configuration();
  editor?.destroyEditor();
  const frame = document.getElementById("frame");
  frame.replaceChildren(Object.assign(document.createElement("div"), { id: "editor" }));
  editor = new DocsAPI.DocEditor("editor", { ...config, width: "100%", height: "100%", events });
};

const ago = (iso) => {
  const seconds = Math.max(0, Math.round((Date.now() - new Date(iso).getTime()) / 1000));
  return seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
};

const show = () => {
  if (!head) return;
  const saved = `version ${head.head}, saved ${ago(head.changed_at)}`;
  say(changed ? `Not yet saved · ${saved}` : `In the vault: ${saved}`);
};

const watch = async () => {
  try {
    const response = await fetch(`/api/v1/documents/${encodeURIComponent(id)}`);
    if (response.ok) {
      head = await response.json();
      show();
    }
  } catch {
    say("Saveguard cannot be reached");
  }
  setTimeout(watch, 2000);
};

document.getElementById("again").addEventListener("click", () => location.reload());

const script = document.createElement("script");
script.src = apiUrl;
script.onload = () => open().then(() => setTimeout(watch, 1000)).catch((error) => trouble(error.message));
script.onerror = () => trouble("The Document Server cannot be reached. Saveguard itself is running; nothing is lost.");
document.head.append(script);
