/* The editor: opens a document with the page's configuration, lets people type, keeps the server up to date.
 *
 * Speaks the real editor's messages (auth, isSaveLock, saveChanges, forceSaveStart, close …); what is inside a
 * change is our own (shape.js). Tells the page what the real editor tells it, with the same codes.
 *
 * Guarantees: a change is sent soon after it was made and shown as saved only when the server has it; after a
 * lost connection the session goes on with what was not sent yet; a spent key asks the page for a new
 * configuration.
 *
 * Does not lay out pages or calculate cells.
 */

import { Shape, freshId } from './shape.js';
import { Paper } from './paper.js';
import { Grid } from './grid.js';
import { Outbox } from './outbox.js';
import { People } from './people.js';
import { Versions } from './versions.js';
import { Wire } from './wire.js';
import { showComments } from './comments.js';
import * as page from './page.js';

const ASK_AGAIN_MS = 350;
const ATTEMPTS_MAX = 50;
const ATTEMPT_EVERY_MS = 2000;

/* What the real editor says to the page, by what happened. */
const SAID = {
  subscription: [-101, 'The document could not be saved. Please check connection settings or contact your administrator.'],
  forgotten: [-104, 'This file is opened from a server backup copy and is not saved to storage.'],
  forceSave: [-331, 'An error occurred while saving the file. Please use the \'Download\' option to keep your work.'],
  lost: [-18, 'Connection is lost. You can still view the document.'],
  download: [-4, 'Download failed.'],
  open: [-82, 'An error has occurred while opening the file.'],
  expired: [-21, 'The document security token has expired.'],
  token: [-20, 'The document security token is not correctly formed.'],
  denied: [-23, 'You are trying to perform an action you do not have rights for.'],
};

class Editor {
  constructor() {
    const query = new URLSearchParams(window.location.search);
    this.frame = query.get('frame');
    this.origin = query.get('parent') || '*';
    this.events = [];
    this.versions = new Versions(this);
    this.people = new People(this);
    window.addEventListener('message', (event) => this.command(event));
    window.addEventListener('keydown', (event) => this.shortcut(event));
    window.addEventListener('pagehide', () => this.outbox && this.outbox.sendNow());
    this.emit('onFrameReady');
  }

  /* Between the page and us. */

  emit(event, data) {
    window.parent.postMessage({ frame: this.frame, event, data }, this.origin);
  }

  has(event) {
    return this.events.includes(event);
  }

  /** To the server. */
  say(message) {
    if (this.wire) this.wire.say(message);
  }

  warn(what) {
    const [code, text] = SAID[what];
    page.banner(text);
    this.emit('onWarning', { warningCode: code, warningDescription: text });
  }

  fail(what) {
    const [code, text] = SAID[what];
    page.setState('failed');
    page.setStatus(text, 'bad');
    page.notice('The document cannot be opened', text);
    this.emit('onError', { errorCode: code, errorDescription: text });
  }

  command(event) {
    const message = event.data;
    if (event.source !== window.parent || !message || message.frame !== this.frame) return;
    const data = message.data;
    const commands = {
      init: () => this.init(data),
      refreshFile: () => data && this.start(data),
      showMessage: () => page.banner([data.title, data.text].filter(Boolean).join(': ')),
      denyEditingRights: () => this.stopTyping(data.text || 'You may only view this document now.'),
      refreshHistory: () => this.versions.refresh(data),
      setHistoryData: () => this.versions.show(data),
      setUsers: () => this.people.setUsers(data),
      requestClose: () => this.requestClose(),
      downloadAs: () => this.copy((url) => this.emit('onDownloadAs', { url, fileType: this.fileType })),
      grabFocus: () => page.main.focus(),
      destroy: () => this.destroy(),
    };
    if (commands[message.command]) commands[message.command]();
  }

  init(data) {
    this.events = data.has || [];
    this.emit('onAppReady');
    this.start(data.config);
  }

  /* Opening. */

  start(config) {
    if (this.wire) this.wire.close();
    this.config = config;
    const doc = config.document || {};
    const edit = config.editorConfig || {};
    this.fileType = doc.fileType || '';
    this.customization = edit.customization || {};
    this.permissions = doc.permissions || {};
    this.user = { id: String((edit.user && edit.user.id) || freshId()), name: (edit.user && edit.user.name) || 'Anonymous' };
    this.session = null;
    this.isAside = false;
    delete page.main.dataset.version;
    this.shape = null;
    this.view = null;
    this.earlier = [];
    this.outbox = new Outbox((message) => this.say(message), () => this.allSent());
    this.attempts = 0;
    this.lastOther = -1;
    this.setRights(edit.mode);
    page.banner('');
    page.closeSide();
    page.setTitle(doc.title || 'Document');
    page.setState('opening');
    page.setStatus('Opening…', 'busy');
    page.notice('Opening the document', doc.title || '');
    this.connect();
  }

  setRights(mode) {
    const rights = this.permissions;
    const views = mode === 'view';
    this.mayType = !views && (rights.edit !== false || rights.review === true);
    this.mayComment = !views && (this.mayType || rights.comment === true);
    this.mayFill = !views && !this.mayType && rights.fillForms === true;
    this.edits = this.mayType || this.mayComment || this.mayFill;
  }

  connect() {
    const token = this.config.token;
    const auth = this.session ? { session: this.session.token } : token ? { token } : {};
    const wire = new Wire(this.config.document.key, auth, {
      joined: () => wire.say(this.session ? this.returning() : this.greeting({})),
      message: (message) => this.hear(message),
      ended: (reason) => this.ended(reason),
    });
    this.wire = wire;
  }

  /** What the real editor says first. */
  greeting(other) {
    const { document: doc = {}, editorConfig: edit = {} } = this.config;
    return {
      type: 'auth',
      docid: doc.key,
      documentCallbackUrl: edit.callbackUrl,
      token: 'understudy',
      user: { id: this.user.id, username: this.user.name, indexUser: -1 },
      editorType: { cell: 1, slide: 2 }[this.config.documentType] || 0,
      lastOtherSaveTime: -1,
      block: [],
      sessionTimeIdle: 0,
      isCloseCoAuthoring: false,
      openCmd: { c: 'open', id: doc.key, userid: this.user.id, format: doc.fileType, url: doc.url, title: doc.title },
      lang: edit.lang || 'en',
      mode: edit.mode,
      permissions: doc.permissions,
      coEditingMode: (edit.coEditing && edit.coEditing.mode) || 'fast',
      jwtOpen: this.config.token,
      supportAuthChangesAck: true,
      ...other,
    };
  }

  returning() {
    const greeting = this.greeting({
      jwtOpen: undefined,
      openCmd: undefined,
      jwtSession: this.session.token,
      sessionId: this.session.id,
      sessionTimeConnect: this.session.since,
      lastOtherSaveTime: this.lastOther,
    });
    greeting.user.indexUser = this.session.index;
    return greeting;
  }

  hear(message) {
    const handlers = {
      authChanges: () => {
        this.say({ type: 'authChangesAck' });
        this.take(message.changes);
      },
      auth: () => this.authorised(message),
      refreshToken: () => { if (this.session) this.session.token = message.messages; },
      connectState: () => this.people.set(message.participants),
      documentOpen: () => this.opened(message.data),
      saveLock: () => this.outbox.turn(message),
      unSaveLock: () => {
        this.outbox.sent(message);
        this.settleStatus();
      },
      saveChanges: () => {
        this.outbox.index = message.syncChangesIndex;
        this.take(message.changes);
      },
      forceSaveStart: () => this.forceSaveBegan(message.messages),
      forceSave: () => this.forceSaveEnded(message.messages),
      cursor: () => this.people.othersMoved(message.messages),
      warning: () => this.warn(message.code === -201 ? 'forgotten' : 'subscription'),
      meta: () => this.renamed(message.messages),
      drop: () => this.dropped(),
      rpc: () => this.answered(message),
      error: () => this.sessionLost(message.code),
      updateVersion: () => {},
    };
    if (handlers[message.type]) handlers[message.type]();
  }

  authorised(message) {
    const returned = this.session !== null;
    this.session = {
      id: message.sessionId,
      since: message.sessionTimeConnect,
      index: message.indexUser,
      token: message.jwt || (this.session && this.session.token),
      me: `${this.user.id}${message.indexUser}`,
    };
    this.attempts = 0;
    if (Number.isInteger(message.syncChangesIndex)) this.outbox.index = message.syncChangesIndex;
    this.people.set(message.participants || []);
    if (returned) {
      page.banner('');
      page.setState('ready');
      this.outbox.again();
      this.settleStatus();
    }
  }

  async opened(open) {
    if (open.type !== 'open' || this.shape) return;
    if (open.status === 'updateversion') {
      this.refresh();
      return;
    }
    if (open.status !== 'ok') {
      this.fail(open.data === -81 ? 'download' : 'open');
      return;
    }
    this.originUrl = open.data['origin'];
    this.shape = new Shape(await this.load(open.data['Editor.bin']));
    this.take(this.earlier.splice(0));
    this.ready();
  }

  /** Always from our own origin: the link may carry another name for this server. */
  async load(url) {
    const link = new URL(url, window.location.href);
    const response = await fetch(link.pathname + link.search);
    return response.json();
  }

  ready() {
    page.setKind(this.shape.kind);
    this.redraw();
    this.buttons();
    page.setState('ready');
    this.settleStatus();
    this.emit('onInfo', { mode: this.edits ? 'edit' : 'view' });
    this.emit('onDocumentReady');
  }

  redraw() {
    if (!this.shape) return;
    page.main.replaceChildren();
    document.getElementById('us-formula').hidden = true;
    document.getElementById('us-tabs').hidden = true;
    if (this.shape.kind === 'text') this.view = new Paper(page.main, this);
    else if (this.shape.kind === 'sheets') this.view = new Grid(page.main, this);
    else {
      this.view = null;
      page.notice('This format is only passed through', `.${this.fileType} files can be opened, commented and saved here, but not shown.`);
    }
    this.markOthers();
    this.settleStatus();
  }

  buttons() {
    const custom = this.customization;
    const edit = this.config.editorConfig || {};
    page.button('save', this.edits ? () => this.save() : null);
    page.button('comment', this.mayComment ? () => showComments(this) : null);
    page.button('submit', this.mayFill || (custom.submitForm && this.edits) ? () => this.submit() : null);
    page.button('history', this.has('onRequestHistory') ? () => this.versions.ask() : null);
    page.button('save-as', this.has('onRequestSaveAs') ? () => this.saveAs() : null);
    page.button('download', this.permissions.download === false ? null : () => this.download());
    page.button('close', this.has('onRequestClose') ? () => this.requestClose() : null);
    const mayAsk = edit.mode === 'view' && this.permissions.edit !== false && this.has('onRequestEditRights');
    page.button('edit', mayAsk ? () => this.emit('onRequestEditRights') : null);
    if (this.has('onRequestRename') && this.mayType) {
      page.allowRenaming((title) => this.emit('onRequestRename', title));
    }
  }

  /* Changes. */

  /** Something changed here. */
  edit(change) {
    if (!this.edits || !this.shape) return;
    const edit = { id: freshId(), ...change };
    this.shape.apply(edit, this.user.name);
    this.outbox.add(edit);
    this.emit('onDocumentStateChange', true);
    this.settleStatus();
  }

  moved(place) {
    this.people.moved(place);
  }

  allSent() {
    this.emit('onDocumentStateChange', false);
    if (this.saveWhenSent) this.forceSave();
    if (this.isAside) this.leaveSession();
  }

  /** Changes of others. */
  take(changes) {
    for (const change of changes || []) {
      this.lastOther = change.time;
      if (!this.shape) {
        this.earlier.push(change);
        continue;
      }
      const edit = parsed(change.change);
      if (!edit) continue;
      const touched = this.outbox.overrides(edit) ? {} : this.shape.apply(edit, this.people.nameOf(change.user));
      if (touched.comment && page.isSideOpen()) showComments(this);
      else if (this.view && page.main.dataset.version === undefined) this.view.show(touched);
    }
    this.markOthers();
  }

  settleStatus() {
    if (page.main.dataset.version !== undefined) return;
    if (!this.edits) page.setStatus('Viewing', 'good');
    else if (!this.outbox.isEmpty) page.setStatus('Saving changes…', 'busy');
    else page.setStatus(this.savedText || 'All changes saved', 'good');
    if (!this.outbox.isEmpty) this.savedText = null;
    page.setFoot(this.shape && this.shape.kind === 'text' ? `${this.shape.paragraphs.filter((item) => !item.removed).length} paragraphs` : '');
  }

  /* Saving. */

  shortcut(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 's') {
      event.preventDefault();
      if (this.edits) this.save();
    }
  }

  /** Like the real editor: to the storage if the page wants that, else only to the server. */
  save() {
    if (this.view && this.view.leave && document.activeElement) this.view.leave(document.activeElement);
    const force = this.customization.forcesave === true;
    if (!this.outbox.isEmpty) {
      this.saveWhenSent = force;
      this.outbox.ask();
    } else if (force) {
      this.forceSave();
    }
  }

  forceSave() {
    this.saveWhenSent = false;
    page.setStatus('Saving to storage…', 'busy');
    this.say({ type: 'forceSaveStart' });
  }

  forceSaveBegan(answer) {
    if (answer.code === 4) this.savedText = 'Saved';
    if (answer.code === 4 || answer.code === 0 && answer.time === null) this.settleStatus();
    else if (answer.code !== 0) this.warn('forceSave');
  }

  forceSaveEnded(outcome) {
    if (outcome.start) return;
    if (outcome.success) {
      this.savedText = 'Saved';
      this.settleStatus();
    } else {
      this.settleStatus();
      this.warn('forceSave');
    }
  }

  submit() {
    this.rpc('submit', { type: 'sendForm', formdata: [{ key: 'user', value: this.user.name }] });
    page.setStatus('Submitting…', 'busy');
  }

  /** A link to the document as it is now. */
  copy(then) {
    this.copyThen = then;
    this.outbox.sendNow();
    this.rpc('copy', { type: 'saveRelativeFromChanges', docId: this.config.document.key });
  }

  rpc(responseKey, data) {
    this.say({ type: 'rpc', responseKey, data });
  }

  answered(message) {
    const data = message.data || {};
    if (message.responseKey === 'submit') {
      if (data.code === 0) {
        this.emit('onSubmit');
        page.setStatus('Submitted', 'good');
      } else {
        this.warn('forceSave');
      }
    }
    if (message.responseKey === 'copy' && data.inProgress) {
      setTimeout(() => this.copyThen && this.copy(this.copyThen), ASK_AGAIN_MS);
    } else if (message.responseKey === 'copy') {
      const url = data.url || this.originUrl;
      if (url && this.copyThen) this.copyThen(url);
      this.copyThen = null;
    }
  }

  saveAs() {
    const title = document.getElementById('us-title').textContent;
    this.copy((url) => this.emit('onRequestSaveAs', { title, fileType: this.fileType, url }));
  }

  download() {
    this.copy((url) => {
      const link = document.createElement('a');
      const from = new URL(url, window.location.href);
      link.href = from.pathname + from.search;
      link.download = document.getElementById('us-title').textContent;
      link.click();
    });
  }

  /* People. */

  markOthers() {
    if (this.view) this.view.mark(this.people.marks());
  }

  renamed(meta) {
    if (meta && meta.title) page.setTitle(meta.title);
    this.emit('onMetaChange', meta);
  }

  /* Endings. */

  ended(reason) {
    const code = reason && reason.code;
    const fatal = { 4004: 'denied', 4005: 'expired', 4006: 'token' }[code];
    if (fatal && !this.shape) {
      this.fail(fatal);
    } else if (code === 4001 || fatal) {
      this.stopTyping(SAID.lost[1]);
      this.warn('lost');
    } else if (this.session) {
      this.comeBack();
    } else {
      this.fail('open');
    }
  }

  comeBack() {
    page.setState('offline');
    page.setStatus('Connection lost. Trying again…', 'bad');
    this.attempts += 1;
    if (this.attempts > ATTEMPTS_MAX) {
      this.stopTyping(SAID.lost[1]);
      this.warn('lost');
      return;
    }
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), this.attempts === 1 ? ATTEMPT_EVERY_MS / 4 : ATTEMPT_EVERY_MS);
  }

  /** While the history is shown we are not in the session; what was typed is sent first. */
  stepAside() {
    if (this.isAside) return;
    this.isAside = true;
    if (this.outbox.isEmpty) this.leaveSession();
    else this.outbox.ask();
    this.mayType = this.mayComment = this.mayFill = this.edits = false;
    page.setState('history');
    this.redraw();
    this.buttons();
    page.setStatus('Version history', 'good');
  }

  leaveSession() {
    this.say({ type: 'close' });
    if (this.wire) this.wire.close();
  }

  /** The key is spent: the page has a newer one. */
  refresh() {
    page.setState('outdated');
    page.setStatus('A newer version is available', 'busy');
    if (this.has('onRequestRefreshFile')) {
      this.emit('onRequestRefreshFile');
      return;
    }
    page.notice('The file has been changed', 'Reload the page to get the current version.');
    this.emit('onOutdatedVersion');
  }

  sessionLost(code) {
    if (code === 4008 || code === 4009) {
      this.refresh();
      return;
    }
    this.stopTyping('The document was changed while you were away. Reload the page to go on.');
    this.warn('lost');
  }

  dropped() {
    this.outbox.sendNow();
    this.say({ type: 'close' });
    this.stopTyping('The file cannot be accessed right now.');
  }

  stopTyping(text) {
    this.mayType = this.mayComment = this.mayFill = this.edits = false;
    page.setState('read-only');
    page.banner(text);
    this.redraw();
    if (this.shape) this.buttons();
    page.setStatus('Read only', 'bad');
  }

  requestClose() {
    if (this.outbox) this.outbox.sendNow();
    this.emit('onRequestClose');
  }

  destroy() {
    if (this.outbox) this.outbox.sendNow();
    if (this.wire) this.wire.close();
    this.versions.close();
  }
}

function parsed(text) {
  try {
    const edit = JSON.parse(text);
    return edit && typeof edit === 'object' && edit.op ? edit : null;
  } catch {
    return null;
  }
}

window.understudy = new Editor();
