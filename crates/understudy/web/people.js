/* Who is in the document, and where.
 *
 * Guarantees: one entry per person however many tabs; the page is asked once for the picture of each.
 *
 * Does not draw; page.js and the views do.
 */

import * as page from './page.js';

const CURSOR_EVERY_MS = 150;

export class People {
  /** `editor` gives `emit`, `has`, `say`, `markOthers`. */
  constructor(editor) {
    this.editor = editor;
    this.images = new Map();
    this.places = new Map();
    this.tabs = new Map();
    this.known = new Map();
    this.toMention = null;
  }

  /** Who may be mentioned is asked once, when a comment is begun. */
  askWhomToMention() {
    if (this.toMention || !this.editor.has('onRequestUsers')) return;
    this.toMention = [];
    this.editor.emit('onRequestUsers', { c: 'mention' });
  }

  set(participants) {
    this.known = new Map();
    for (const item of participants || []) {
      const before = this.known.get(item.idOriginal);
      if (before && !before.view) continue;
      this.known.set(item.idOriginal, {
        id: item.idOriginal,
        name: item.username,
        view: item.view,
        colour: page.colourOf(item.idOriginal),
        image: this.images.get(item.idOriginal),
      });
    }
    this.tabs = new Map((participants || []).map((item) => [item.id, item]));
    for (const tab of [...this.places.keys()]) if (!this.tabs.has(tab)) this.places.delete(tab);
    page.showPeople([...this.known.values()]);
    this.askForPictures();
    this.editor.markOthers();
  }

  askForPictures() {
    const unknown = [...this.known.keys()].filter((id) => !this.images.has(id));
    for (const id of unknown) this.images.set(id, undefined);
    if (unknown.length && this.editor.has('onRequestUsers')) {
      this.editor.emit('onRequestUsers', { c: 'info', id: unknown });
    }
  }

  /** The page answers. */
  setUsers(data) {
    if (data && data.c === 'mention') {
      this.toMention = data.users || [];
      return;
    }
    for (const user of (data && data.users) || []) this.images.set(String(user.id), user.image);
    for (const person of this.known.values()) person.image = this.images.get(person.id);
    page.showPeople([...this.known.values()]);
  }

  /** A comment names somebody with @ and their name or e-mail address: the page tells them. */
  mention(text) {
    if (!text.includes('@') || !this.editor.has('onRequestSendNotify')) return;
    const named = (this.toMention || []).filter((user) => text.includes(`@${user.name}`) || text.includes(`@${user.email}`));
    const emails = named.map((user) => user.email).filter(Boolean);
    if (emails.length) {
      const actionLink = { action: { type: 'comment', data: this.place || '' } };
      this.editor.emit('onRequestSendNotify', { actionLink, message: text, emails });
    }
  }

  nameOf(tab) {
    const item = this.tabs.get(tab);
    return item ? item.username : 'Somebody';
  }

  /** We moved; the others hear of it, not too often. */
  moved(place) {
    this.place = place;
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.editor.say({ type: 'cursor', cursor: this.place });
    }, CURSOR_EVERY_MS);
  }

  othersMoved(messages) {
    for (const message of messages || []) this.places.set(message.user, message.cursor);
    this.editor.markOthers();
  }

  /** Places of the others, with who is there. */
  marks() {
    const marks = new Map();
    for (const [tab, place] of this.places) {
      const item = this.tabs.get(tab);
      if (place && item) marks.set(place, { name: item.username, colour: page.colourOf(item.idOriginal) });
    }
    return marks;
  }
}
