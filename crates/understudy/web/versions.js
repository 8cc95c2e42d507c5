/* Version history: the list the page gives us, and a look at one version.
 *
 * Guarantees: asks the page for data of a version (`onRequestHistoryData`), shows it through the server like any
 * viewer would, and asks the page to restore it (`onRequestRestore`). Like the real editor it leaves the session while
 * it shows the history, and asks the page for a fresh start afterwards (`onRequestHistoryClose`).
 *
 * Does not highlight what changed between versions.
 */

import { Shape } from './shape.js';
import { Paper } from './paper.js';
import { Grid } from './grid.js';
import { Wire } from './wire.js';
import * as page from './page.js';

export class Versions {
  /** `editor` gives `emit`, `has`, `redraw`, `greeting`. */
  constructor(editor) {
    this.editor = editor;
    this.list = [];
    this.shown = null;
    this.wire = null;
  }

  ask() {
    this.editor.emit('onRequestHistory');
  }

  refresh(data) {
    if (!data) return;
    this.list = Array.isArray(data.history) ? data.history : [];
    const side = page.openSide('Version history', () => this.leave());
    if (data.error) {
      side.append(note(data.error));
      return;
    }
    this.editor.stepAside();
    const list = document.createElement('ul');
    list.className = 'versions';
    list.id = 'us-versions';
    for (const version of [...this.list].reverse()) list.append(this.entry(version, data.currentVersion));
    side.append(list);
  }

  entry(version, current) {
    const item = document.createElement('li');
    const open = document.createElement('button');
    open.type = 'button';
    open.className = 'version';
    open.dataset.version = String(version.version);
    const latest = String(version.version) === String(current) ? ' · current' : '';
    open.append(`Version ${version.version}${latest}`);
    const small = document.createElement('small');
    const who = authorsOf(version);
    small.textContent = [version.created, who].filter(Boolean).join(' · ');
    open.append(small);
    open.onclick = () => {
      for (const other of document.querySelectorAll('.version')) other.removeAttribute('aria-current');
      open.setAttribute('aria-current', 'true');
      this.shown = version.version;
      this.editor.emit('onRequestHistoryData', version.version);
    };
    item.append(open);
    if (this.editor.has('onRequestRestore') && String(version.version) !== String(current)) {
      const restore = document.createElement('button');
      restore.type = 'button';
      restore.dataset.restore = String(version.version);
      restore.textContent = 'Restore';
      restore.onclick = () => this.editor.emit('onRequestRestore', { version: version.version, fileType: this.editor.fileType });
      item.append(restore);
    }
    return item;
  }

  /** The page answers with where the version is. */
  show(data) {
    if (!data || data.error || !data.url) {
      page.banner((data && data.error) || 'This version cannot be shown.');
      return;
    }
    this.close();
    page.setStatus(`Looking at version ${data.version}`, 'busy');
    const greeting = this.editor.greeting({
      docid: data.key,
      mode: 'view',
      documentCallbackUrl: undefined,
      permissions: undefined,
      jwtOpen: data.token,
      openCmd: { c: 'open', id: data.key, url: data.url, format: data.fileType || this.editor.fileType },
    });
    this.wire = new Wire(data.key, data.token ? { token: data.token } : {}, {
      joined: () => this.wire.say(greeting),
      message: (message) => message.type === 'documentOpen' && this.opened(message.data, data),
      ended: () => {},
    });
  }

  async opened(open, data) {
    if (open.status !== 'ok') {
      page.banner('This version cannot be opened.');
      return;
    }
    const shape = new Shape(await this.editor.load(open.data['Editor.bin']));
    const desk = { shape, mayType: false, mayComment: false, edit() {}, moved() {} };
    page.main.replaceChildren();
    if (shape.kind === 'sheets') new Grid(page.main, desk);
    else new Paper(page.main, desk);
    page.main.dataset.version = String(data.version);
    page.setStatus(`Version ${data.version}, read only`, 'good');
    this.close();
  }

  leave() {
    this.close();
    this.shown = null;
    delete page.main.dataset.version;
    this.editor.redraw();
    if (!this.editor.isAside) return;
    if (this.editor.has('onRequestHistoryClose')) this.editor.emit('onRequestHistoryClose');
    else this.editor.start(this.editor.config);
  }

  close() {
    if (this.wire) this.wire.close();
    this.wire = null;
  }
}

function note(text) {
  const box = document.createElement('p');
  box.textContent = text;
  return box;
}

// Everybody who changed something on the way to a version, or whoever saved it.
function authorsOf(version) {
  const users = Array.isArray(version.changes) ? version.changes.map((change) => change.user) : [];
  const names = [...users, version.user].map((user) => user && user.name).filter(Boolean);
  return [...new Set(names)].join(', ');
}
