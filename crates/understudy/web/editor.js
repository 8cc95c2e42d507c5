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
import { Wire } from './wire.js';
import { Versions } from './versions.js';
import * as page from './page.js';

const SEND_AFTER_MS = 350;
const CURSOR_EVERY_MS = 150;
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
    this.places = new Map();
    this.images = new Map();
    window.addEventListener('message', (event) => this.command(event));
    window.addEventListener('keydown', (event) => this.shortcut(event));
    window.addEventListener('pagehide', () => this.sendNow());
    this.emit('onFrameReady');
  }

  /* Between the page and us. */

  emit(event, data) {
    window.parent.postMessage({ frame: this.frame, event, data }, this.origin);
  }

  has(event) {
    return this.events.includes(event);
  }

  say(what) {
    const [code, text] = SAID[what];
    return { code, text };
  }

  warn(what) {
    const { code, text } = this.say(what);
    page.banner(text);
    this.emit('onWarning', { warningCode: code, warningDescription: text });
  }

  fail(what) {
    const { code, text } = this.say(what);
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
      setUsers: () => this.setUsers(data),
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
    this.shape = null;
    this.view = null;
    this.earlier = [];
    this.pending = [];
    this.sending = null;
    this.index = 0;
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
        this.wire.say({ type: 'authChangesAck' });
        this.take(message.changes);
      },
      auth: () => this.authorised(message),
      refreshToken: () => { if (this.session) this.session.token = message.messages; },
      connectState: () => this.setPeople(message.participants),
      documentOpen: () => this.opened(message.data),
      saveLock: () => (message.saveLock ? this.later() : this.send()),
      unSaveLock: () => this.sent(message),
      saveChanges: () => {
        this.index = message.syncChangesIndex;
        this.take(message.changes);
      },
      forceSaveStart: () => this.forceSaveBegan(message.messages),
      forceSave: () => this.forceSaveEnded(message.messages),
      cursor: () => this.moveOthers(message.messages),
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
    if (Number.isInteger(message.syncChangesIndex)) this.index = message.syncChangesIndex;
    this.setPeople(message.participants || []);
    if (returned) {
      page.banner('');
      page.setState('ready');
      if (this.sending) this.pending = [...this.sending.splice(0), ...this.pending];
      this.sending = null;
      this.settleStatus();
      this.later();
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
    page.button('save', this.edits ? () => this.save() : null);
    page.button('comment', this.mayComment ? () => this.comments() : null);
    page.button('submit', this.mayFill || (custom.submitForm && this.edits) ? () => this.submit() : null);
    page.button('history', this.has('onRequestHistory') ? () => this.versions.ask() : null);
    page.button('save-as', this.has('onRequestSaveAs') ? () => this.saveAs() : null);
    page.button('download', this.permissions.download === false ? null : () => this.download());
    page.button('close', this.has('onRequestClose') ? () => this.requestClose() : null);
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
    const last = this.pending[this.pending.length - 1];
    if (edit.op === 'text' && last && last.p === edit.p && ['text', 'insert', 'append'].includes(last.op)) {
      last.text = edit.text;
    } else {
      this.pending.push(edit);
    }
    this.emit('onDocumentStateChange', true);
    this.settleStatus();
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), SEND_AFTER_MS);
  }

  ask() {
    if (this.sending || !this.pending.length || !this.session) return;
    this.wire.say({ type: 'isSaveLock', syncChangesIndex: this.index });
  }

  send() {
    if (this.sending || !this.pending.length) {
      this.wire.say({ type: 'unSaveLock' });
      return;
    }
    this.sending = this.pending.splice(0);
    this.wire.say({
      type: 'saveChanges',
      changes: JSON.stringify(this.sending),
      startSaveChanges: true,
      endSaveChanges: true,
      isCoAuthoring: true,
      isExcel: this.shape.kind === 'sheets',
      deleteIndex: null,
      excelAdditionalInfo: null,
      unlock: false,
      releaseLocks: true,
    });
    this.settleStatus();
  }

  /** The window goes: what is left is sent without asking whether it is our turn. */
  sendNow() {
    if (this.wire && this.pending.length && !this.sending) this.send();
  }

  sent(message) {
    if (!this.sending || message.index === -1 && message.time === -1) return;
    this.sending = null;
    this.index = message.syncChangesIndex;
    if (this.pending.length) {
      this.later();
    } else {
      this.emit('onDocumentStateChange', false);
      if (this.saveWhenSent) this.forceSave();
    }
    this.settleStatus();
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
      const mine = this.pending.some((own) => own.op === 'text' && own.p === edit.p);
      const touched = mine && edit.op === 'text' ? {} : this.shape.apply(edit, this.nameOf(change.user));
      if (touched.comment && page.isSideOpen()) this.comments();
      else if (this.view && page.main.dataset.version === undefined) this.view.show(touched);
    }
    this.markOthers();
  }

  settleStatus() {
    if (page.main.dataset.version !== undefined) return;
    if (!this.edits) page.setStatus('Viewing', 'good');
    else if (this.pending.length || this.sending) page.setStatus('Saving changes…', 'busy');
    else page.setStatus(this.savedText || 'All changes saved', 'good');
    if (this.pending.length) this.savedText = null;
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
    if (this.pending.length || this.sending) {
      this.saveWhenSent = force;
      this.ask();
    } else if (force) {
      this.forceSave();
    }
  }

  forceSave() {
    this.saveWhenSent = false;
    page.setStatus('Saving to storage…', 'busy');
    this.wire.say({ type: 'forceSaveStart' });
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
    this.sendNow();
    this.rpc('copy', { type: 'saveRelativeFromChanges', docId: this.config.document.key });
  }

  rpc(responseKey, data) {
    this.wire.say({ type: 'rpc', responseKey, data });
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
      setTimeout(() => this.copyThen && this.copy(this.copyThen), SEND_AFTER_MS);
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

  setPeople(participants) {
    this.people = new Map();
    for (const item of participants || []) {
      const known = this.people.get(item.idOriginal);
      if (known && !known.view) continue;
      this.people.set(item.idOriginal, {
        id: item.idOriginal,
        name: item.username,
        view: item.view,
        colour: page.colourOf(item.idOriginal),
        image: this.images.get(item.idOriginal),
      });
    }
    this.tabs = new Map((participants || []).map((item) => [item.id, item]));
    for (const tab of [...this.places.keys()]) if (!this.tabs.has(tab)) this.places.delete(tab);
    page.showPeople([...this.people.values()]);
    this.markOthers();
    const unknown = [...this.people.keys()].filter((id) => !this.images.has(id));
    for (const id of unknown) this.images.set(id, undefined);
    if (unknown.length && this.has('onRequestUsers')) this.emit('onRequestUsers', { c: 'info', id: unknown });
  }

  setUsers(data) {
    for (const user of (data && data.users) || []) this.images.set(String(user.id), user.image);
    for (const person of (this.people || new Map()).values()) person.image = this.images.get(person.id);
    page.showPeople([...(this.people || new Map()).values()]);
  }

  nameOf(tab) {
    const item = this.tabs && this.tabs.get(tab);
    return item ? item.username : 'Somebody';
  }

  moved(place) {
    this.place = place;
    if (this.cursorTimer || !this.wire) return;
    this.cursorTimer = setTimeout(() => {
      this.cursorTimer = null;
      this.wire.say({ type: 'cursor', cursor: this.place });
    }, CURSOR_EVERY_MS);
  }

  moveOthers(messages) {
    for (const message of messages || []) this.places.set(message.user, message.cursor);
    this.markOthers();
  }

  markOthers() {
    if (!this.view) return;
    const marks = new Map();
    for (const [tab, place] of this.places) {
      const item = this.tabs && this.tabs.get(tab);
      if (place && item) marks.set(place, { name: item.username, colour: page.colourOf(item.idOriginal) });
    }
    this.view.mark(marks);
  }

  comments() {
    const side = page.openSide('Comments', () => {});
    const text = document.createElement('textarea');
    text.id = 'us-comment-text';
    text.setAttribute('aria-label', 'New comment');
    const add = document.createElement('button');
    add.type = 'button';
    add.id = 'us-comment-add';
    add.className = 'strong';
    add.textContent = 'Add comment';
    add.onclick = () => {
      if (!text.value.trim()) return;
      this.edit({ op: 'comment', about: this.place || '', text: text.value.trim() });
      this.comments();
    };
    const list = document.createElement('ul');
    list.className = 'notes';
    list.id = 'us-comments';
    for (const comment of (this.shape ? this.shape.comments : [])) {
      const item = document.createElement('li');
      item.className = 'note';
      const who = document.createElement('small');
      who.textContent = comment.author || '';
      const words = document.createElement('p');
      words.textContent = comment.text;
      item.append(who, words);
      list.append(item);
    }
    if (this.mayComment) side.append(text, add);
    side.append(list);
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
      this.stopTyping(this.say('lost').text);
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
      this.stopTyping(this.say('lost').text);
      this.warn('lost');
      return;
    }
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.connect(), this.attempts === 1 ? ATTEMPT_EVERY_MS / 4 : ATTEMPT_EVERY_MS);
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
    this.sendNow();
    this.wire.say({ type: 'close' });
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
    this.sendNow();
    this.emit('onRequestClose');
  }

  destroy() {
    this.sendNow();
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
