// A guest of a share link: asks for a name and a password, opens the editor, and comes back under the same name when it must.
import { t } from "/assets/page.js";

const { token, apiUrl, allows } = document.body.dataset;
const api = `/api/v1/shares/${encodeURIComponent(token)}`;
const field = (id) => document.getElementById(id);
let editor = null;
let ticket = null;
let refreshes = 0;

const say = (text) => { field("status").textContent = text; };

// Back to the door: whoever comes again is a new guest, unless the ticket still counts.
const trouble = (text) => {
  editor?.destroyEditor();
  editor = null;
  field("frame").hidden = true;
  field("door").hidden = false;
  field("enter").disabled = false;
  field("trouble-text").textContent = text;
  say("");
};

const configuration = async () => {
  const wish = ticket ? { ticket } : { name: field("guest-name").value };
  const password = field("password")?.value;
  if (password) wish.password = password;
  const response = await fetch(`${api}/open`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(wish),
  });
  const answer = await response.json();
  if (response.ok) return answer;
  const words = response.status === 404 ? t("guest.gone") : `${answer.detail ?? response.status} ${answer.next ?? ""}`;
  throw new Error(words);
};

// The key is spent or its link expired: a fresh configuration opens the newest version.
const refresh = async () => {
  refreshes += 1;
  if (refreshes > 5) return trouble(t("guest.changing"));
  try {
    await open();
  } catch (error) {
    trouble(error.message);
  }
};

const events = {
  onAppReady: () => say(t("editor.opening")),
  onDocumentReady: () => { refreshes = 0; say(allows === "view" ? t("editor.reading") : t("editor.open")); },
  onDocumentStateChange: (event) => say(event.data ? t("editor.unsaved") : t("guest.handed-over")),
  onRequestRefreshFile: refresh,
  onOutdatedVersion: refresh,
  onError: (event) => {
    const code = event.data?.errorCode;
    // -4: the source could not be fetched; -21: the configuration expired.
    if (code === -4 || code === -21) refresh();
    else say(`${t("editor.warns")}: ${event.data?.errorDescription ?? code}`);
  },
  onWarning: (event) => say(event.data?.warningDescription ?? t("editor.warns")),
  onRequestClose: () => trouble(""),
};

const open = async () => {
  const answer = await configuration();
  ticket = answer.ticket;
  field("name").textContent = answer.config.document.title;
  const download = field("download");
  if (download) {
    download.href = `${api}/download?ticket=${encodeURIComponent(ticket)}`;
    download.hidden = false;
  }
  editor?.destroyEditor();
  field("door").hidden = true;
  field("frame").hidden = false;
  field("frame").replaceChildren(Object.assign(document.createElement("div"), { id: "editor" }));
  editor = new DocsAPI.DocEditor("editor", { ...answer.config, width: "100%", height: "100%", events });
};

const load = () => new Promise((done, failed) => {
  if (window.DocsAPI) return done();
  const script = document.createElement("script");
  script.src = apiUrl;
  script.onload = done;
  script.onerror = () => failed(new Error(t("editor.away-words")));
  document.head.append(script);
});

field("door").addEventListener("submit", (event) => {
  event.preventDefault();
  field("enter").disabled = true;
  field("trouble-text").textContent = "";
  load().then(open).catch((error) => trouble(error.message));
});
