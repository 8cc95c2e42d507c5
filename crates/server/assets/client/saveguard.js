/* Saveguard in a host page: mounts the editor and keeps it right.
 *
 *   import { mount } from "https://files.example.org/client/saveguard.js";
 *   const mounted = await mount({ element: "#editor", document: "12345", operation: "edit", getToken });
 *
 * Guarantees: an editor with unsaved changes is never reloaded; a viewer follows the newest version; a spent key or an
 * expired configuration leads to a fresh one, a bounded number of times; trouble is shown in the page, with what to do.
 * Works under a strict content security policy: no inline style or script. Needs no other code.
 *
 * Does not sign tokens: `getToken` asks your own server. Types are in saveguard.d.ts.
 */

/** The address this module came from is the address of Saveguard. */
const HOME = new URL("..", import.meta.url).href.replace(/\/$/, "");
const REOPENINGS_MAX = 5;
const REOPENINGS_WITHIN_MS = 60_000;
const PATIENCE_MS = 60_000;
const LISTEN_AGAIN_MAX_MS = 30_000;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

/** What Saveguard answered instead of what was asked for. */
export class SaveguardError extends Error {
  constructor(status, problem = {}) {
    super(problem.detail ?? `Saveguard answered ${status}.`);
    this.name = "SaveguardError";
    this.status = status;
    /** `DOC_001` and so on; each has a page in the documentation. */
    this.code = problem.code ?? null;
    this.next = problem.next ?? "";
    this.instance = problem.instance ?? null;
    this.retryAfterSeconds = 0;
  }
}

/** The HTTP interface, as far as pages need it. */
export class Client {
  constructor({ server = HOME, token, getToken } = {}) {
    this.server = String(server).replace(/\/$/, "");
    this.getToken = getToken ?? (token ? () => token : null);
    this.canRenew = Boolean(getToken);
  }

  configuration(document, operation = "edit") {
    return this.post(`${path(document)}/editor-config`, { mode: operation });
  }
  find(document) { return this.get(path(document)); }
  history(document) { return this.get(`${path(document)}/history`); }
  historyData(document, version) { return this.get(`${path(document)}/history/${encodeURIComponent(version)}`); }
  restore(document, version, whileEditing = false) {
    return this.post(`${path(document)}/versions/${encodeURIComponent(version)}/restore`, { while_editing: whileEditing });
  }
  rename(document, name) { return this.post(`${path(document)}/rename`, { name }); }
  saveAs(document, { url, title, fileType }) {
    return this.post(`${path(document)}/save-as`, { url, title, file_type: fileType });
  }
  users(document, kind) { return this.get(`${path(document)}/users?kind=${encodeURIComponent(kind)}`); }
  mention(document, { emails, message, actionLink }) {
    return this.post(`${path(document)}/mentions`, { emails, message, action_link: actionLink });
  }
  sessions(document) { return this.get(`${path(document)}/sessions`); }

  get(path) { return this.ask("GET", path); }
  post(path, body) { return this.ask("POST", path, body); }

  /** Asks, once more with a new token if the first was refused. */
  async ask(method, path, body) {
    let response = await this.send(method, path, { body });
    if (response.status === 401 && this.canRenew) response = await this.send(method, path, { body });
    const text = await response.text();
    const answer = parsed(text);
    if (response.ok) return answer;
    const error = new SaveguardError(response.status, answer ?? {});
    error.retryAfterSeconds = Number(response.headers.get("retry-after")) || 0;
    throw error;
  }

  async send(method, path, { body, headers = {}, signal } = {}) {
    const token = this.getToken ? await this.getToken() : null;
    if (token) headers.authorization = `Bearer ${token}`;
    if (body !== undefined) headers["content-type"] = "application/json";
    const text = body === undefined ? undefined : JSON.stringify(body);
    // Saveguard's own pages have a cookie instead of a token.
    return fetch(`${this.server}${path}`, { method, headers, body: text, signal, credentials: token ? "omit" : "same-origin" });
  }

  /** Tells what happens to a document until `close` is called; comes back by itself and misses nothing. */
  events(document, heard) {
    const ending = new AbortController();
    listen(this, document, heard, ending.signal);
    return { close: () => ending.abort() };
  }
}

const path = (document) => `/api/v1/documents/${encodeURIComponent(document)}`;

const parsed = (text) => {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
};

const listen = async (client, document, heard, signal) => {
  let last = null;
  let wait = 1000;
  while (!signal.aborted) {
    try {
      const headers = { accept: "text/event-stream", ...(last ? { "last-event-id": last } : {}) };
      const response = await client.send("GET", `${path(document)}/events`, { headers, signal });
      // Gone or not ours any more: nothing will come.
      if (response.status === 403 || response.status === 404) return;
      if (response.ok) {
        wait = 1000;
        await readEvents(response.body, (event) => {
          last = event.id ?? last;
          heard(event.name, event.data);
        });
      }
    } catch {
      // The connection broke, or the page ended it.
    }
    if (signal.aborted) return;
    await pause(wait * (0.5 + Math.random() / 2));
    wait = Math.min(wait * 2, LISTEN_AGAIN_MAX_MS);
  }
};

/** Server-sent events out of a stream of bytes. */
const readEvents = async (body, told) => {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const blocks = text.split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const event = {};
      for (const line of block.split("\n")) {
        const [, field, content] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
        if (field) event[field] = content;
      }
      if (event.event) told({ id: event.id, name: event.event, data: parsed(event.data) });
    }
  }
};

/** Loads the Document Server's script, once per address. */
const scripts = new Map();
const loadScript = (url) => {
  if (!scripts.has(url)) {
    scripts.set(url, new Promise((loaded, failed) => {
      const script = Object.assign(document.createElement("script"), { src: url });
      script.onload = loaded;
      script.onerror = () => {
        scripts.delete(url);
        script.remove();
        failed(new Error("The Document Server cannot be reached. Saveguard itself is running; nothing is lost."));
      };
      document.head.append(script);
    }));
  }
  return scripts.get(url);
};

/** Mounts the editor for a document. Trouble is shown in the element and told to `on.error`. */
export const mount = async (options) => {
  const client = options.client ?? new Client(options);
  const source = (mounted) => client.configuration(options.document, mounted.operation);
  const mounted = new Mounted({ ...options, client, source });
  await mounted.open();
  return mounted;
};

/** Mounts the editor from a configuration that your page has already, of a share link for example. `refresh` gives a fresh
 * one when that is needed; without it the page is asked to be reloaded. */
export const mountConfiguration = async (options) => {
  let ready = options.configuration;
  const source = async () => {
    const given = ready ?? (options.refresh ? await options.refresh() : null);
    ready = null;
    if (!given) throw new Error("This document was changed meanwhile. Reload the page to go on with the newest version.");
    return given;
  };
  const operation = ready?.config?.editorConfig?.mode === "view" ? "view" : "edit";
  const mounted = new Mounted({ operation, ...options, source });
  await mounted.open();
  return mounted;
};

/** An editor in a page. */
class Mounted {
  constructor(options) {
    const { element, operation = "edit", client = null, on = {}, features = {} } = options;
    this.host = typeof element === "string" ? document.querySelector(element) : element;
    if (!this.host) throw new Error(`There is no element ${element} to mount the editor in.`);
    Object.assign(this, { options, operation, client, on });
    this.id = options.document ?? null;
    this.features = { history: true, restore: true, rename: true, saveAs: true, users: true, events: true, ...features };
    this.editor = null;
    this.isDirty = false;
    this.isDestroyed = false;
    this.version = null;
    this.openings = [];
    this.whenClean = [];
    this.panel = null;
  }

  /* Opening. */

  async open() {
    this.hidePanel();
    try {
      const configuration = await this.configuration();
      await loadScript(configuration.api_url);
      if (this.isDestroyed) return;
      this.show(configuration);
      if (this.features.events && this.client && this.id && !this.listening) {
        this.listening = this.client.events(this.id, (name, data) => this.heard(name, data));
      }
    } catch (error) {
      this.trouble(error);
    }
  }

  /** While a save is on its way Saveguard asks to come again; so we do, for a while. */
  async configuration() {
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.options.source(this);
      } catch (error) {
        if (!error.retryAfterSeconds || Date.now() > until) throw error;
        this.tell("waiting", error);
        await pause(error.retryAfterSeconds * 1000);
      }
    }
  }

  show(configuration) {
    this.editor?.destroyEditor();
    this.version = configuration.base ?? null;
    this.title = configuration.config.document?.title ?? "";
    this.isDirty = false;
    const place = Object.assign(document.createElement("div"), { id: `saveguard-${crypto.randomUUID?.() ?? Date.now()}` });
    this.host.replaceChildren(place);
    const { width = "100%", height = "100%" } = this.options;
    this.editor = new window.DocsAPI.DocEditor(place.id, { ...configuration.config, width, height, events: this.events() });
  }

  /** What the editor may ask for. A handler that is there makes its button appear. */
  events() {
    const { features, client } = this;
    const edits = this.operation !== "view";
    const tried = (act) => (event) => act.call(this, event?.data).catch((error) => this.complain(error));
    const opened = (act) => () => act.call(this).catch((error) => this.trouble(error));
    const events = {
      onAppReady: () => this.tell("loading"),
      onDocumentReady: () => this.tell("ready"),
      onDocumentStateChange: (event) => this.stateChanged(Boolean(event.data)),
      onRequestRefreshFile: opened(this.refresh),
      onOutdatedVersion: opened(this.reopen),
      onError: (event) => this.failed(event.data ?? {}),
      onWarning: (event) => this.tell("warning", event.data),
    };
    if (this.on.close) events.onRequestClose = () => this.on.close(this);
    if (!client || !this.id) return events;
    if (features.history) {
      events.onRequestHistory = tried(this.showHistory);
      events.onRequestHistoryData = tried(this.showHistoryData);
      events.onRequestHistoryClose = opened(this.reopen);
      if (features.restore && edits) events.onRequestRestore = tried(this.restore);
    }
    if (features.rename && edits) events.onRequestRename = tried(this.rename);
    if (features.saveAs) events.onRequestSaveAs = tried(this.saveAs);
    if (features.users) {
      events.onRequestUsers = tried(this.giveUsers);
      events.onRequestSendNotify = tried(this.notify);
    }
    if (!edits && features.edit) events.onRequestEditRights = opened(this.startEditing);
    return events;
  }

  tell(name, data) {
    this.on[name]?.(data, this);
  }

  /* What the editor asks for. */

  stateChanged(isDirty) {
    this.isDirty = isDirty;
    this.tell("change", isDirty);
    if (!isDirty) this.whenClean.splice(0).forEach((done) => done());
  }

  /** Waits until the editor has given everything to its server. */
  clean() {
    return this.isDirty ? new Promise((done) => this.whenClean.push(done)) : Promise.resolve();
  }

  /** The key is spent or the link expired: a fresh configuration, without a new frame if the editor can do that. */
  async refresh() {
    this.bound();
    const configuration = await this.configuration();
    if (!this.editor?.refreshFile) return this.show(configuration);
    this.version = configuration.base ?? null;
    this.editor.refreshFile(configuration.config);
  }

  async reopen() {
    await this.clean();
    if (this.isDestroyed) return;
    this.bound();
    this.show(await this.configuration());
  }

  /** Something that fails each time must not be tried for ever. */
  bound() {
    const now = Date.now();
    this.openings = [...this.openings.filter((at) => now - at < REOPENINGS_WITHIN_MS), now];
    if (this.openings.length > REOPENINGS_MAX) throw new Error("The document kept changing while it was being opened.");
  }

  failed({ errorCode, errorDescription }) {
    // -4: the source could not be fetched; -21: the configuration expired. Both mean that the key is an old one.
    if (errorCode === -4 || errorCode === -21) this.reopen().catch((error) => this.trouble(error));
    else this.tell("error", Object.assign(new Error(errorDescription ?? `The editor reports ${errorCode}.`), { errorCode }));
  }

  async showHistory() {
    try {
      this.editor.refreshHistory(await this.client.history(this.id));
    } catch (error) {
      this.editor.refreshHistory({ error: words(error) });
    }
  }

  async showHistoryData(version) {
    try {
      this.editor.setHistoryData(await this.client.historyData(this.id, version));
    } catch (error) {
      this.editor.setHistoryData({ version, error: words(error) });
    }
  }

  async restore({ version, url }) {
    // With a link a single change inside a version is meant, which is no version of ours.
    if (url) throw new Error("Only whole versions can be restored.");
    await this.client.restore(this.id, version, true);
    await this.showHistory();
  }

  async rename(title) {
    const extension = /\.[^.]*$/.exec(this.title)?.[0] ?? "";
    const name = title.endsWith(extension) ? title : `${title}${extension}`;
    await this.client.rename(this.id, name);
    this.title = name;
  }

  async saveAs(copy) {
    const saved = await this.client.saveAs(this.id, copy);
    this.editor.showMessage(`Saved a copy: ${saved?.name ?? copy.title}`);
    this.tell("copy", saved);
  }

  async giveUsers({ c = "mention", id } = {}) {
    // The editor asks by itself; nobody waits for the answer, so nobody is told that there is none.
    const answer = await this.client.users(this.id, c).catch(() => null);
    const users = answer?.users ?? answer ?? [];
    const wanted = id && c === "info" ? users.filter((user) => id.includes(user.id)) : users;
    this.editor.setUsers({ c, users: wanted });
  }

  async notify(mention) {
    await this.client.mention(this.id, mention);
  }

  async startEditing() {
    this.operation = "edit";
    await this.reopen();
  }

  /* What Saveguard tells. */

  heard(name, data) {
    this.tell(name, data);
    if (name === "version") this.versionCame(data).catch((error) => this.trouble(error));
    if (name === "deleted") this.trouble(new Error("This document was deleted. It can be restored by those who may."));
  }

  /** A viewer follows; an editor has the newest changes anyway and is left alone. */
  async versionCame({ version }) {
    if (this.operation !== "view" || !this.editor || version === this.version) return;
    this.wanted = version;
    // One at a time: an older configuration must not come after a newer one.
    if (this.isFollowing) return;
    this.isFollowing = true;
    try {
      while (this.wanted !== this.version && !this.isDestroyed) {
        const wanted = this.wanted;
        const configuration = await this.configuration();
        if (this.editor?.refreshFile) this.editor.refreshFile(configuration.config);
        else this.show(configuration);
        this.version = wanted === this.wanted ? wanted : configuration.base;
      }
    } finally {
      this.isFollowing = false;
    }
  }

  /* Trouble. */

  /** Something the person asked for did not work; the editor goes on. */
  complain(error) {
    this.tell("error", error);
    if (this.editor?.showMessage) this.editor.showMessage(words(error));
    else this.trouble(error);
  }

  /** The editor cannot go on. One with unsaved changes stays where it is. */
  trouble(error) {
    this.tell("error", error);
    if (this.isDirty || this.isDestroyed) return;
    this.hidePanel();
    const panel = Object.assign(document.createElement("div"), { className: "saveguard-trouble" });
    panel.setAttribute("role", "alert");
    Object.assign(panel.style, { padding: "2rem", font: "1rem/1.5 system-ui, sans-serif" });
    const title = Object.assign(document.createElement("h2"), { textContent: "The document cannot be shown" });
    const text = Object.assign(document.createElement("p"), { textContent: words(error) });
    const again = Object.assign(document.createElement("button"), { type: "button", textContent: "Try again" });
    again.onclick = () => {
      this.openings = [];
      this.open();
    };
    panel.append(title, text, again);
    this.editor?.destroyEditor();
    this.editor = null;
    this.panel = panel;
    this.host.replaceChildren(panel);
  }

  hidePanel() {
    this.panel?.remove();
    this.panel = null;
  }

  /** Takes the editor out of the page. What was typed is with the Document Server and will be saved. */
  destroy() {
    this.isDestroyed = true;
    this.listening?.close();
    this.editor?.destroyEditor();
    this.editor = null;
    this.host.replaceChildren();
  }
}

const words = (error) => [error.message, error.next].filter(Boolean).join(" ");
