/* Changes on their way to the server.
 *
 * Guarantees: in order, nothing twice; a change counts as sent only when the server said so, and what it did not
 * say so about is sent again after a reconnection. Waits for its turn (the save lock) like the real editor.
 *
 * Does not apply changes; editor.js does.
 */

const SEND_AFTER_MS = 350;

export class Outbox {
  /** `say` talks to the server; `done` is called when everything was sent. */
  constructor(say, done) {
    this.say = say;
    this.done = done;
    this.pending = [];
    this.sending = null;
    this.index = 0;
  }

  get isEmpty() {
    return !this.pending.length && !this.sending;
  }

  /** Typing on in one paragraph is one change, until it is sent. */
  add(edit) {
    const last = this.pending[this.pending.length - 1];
    if (edit.op === 'text' && last && last.p === edit.p && ['text', 'insert', 'append'].includes(last.op)) {
      last.text = edit.text;
    } else {
      this.pending.push(edit);
    }
    this.later();
  }

  /** Whether we are about to set the text of a paragraph ourselves: then ours comes last. */
  overrides(edit) {
    return edit.op === 'text' && this.pending.some((own) => own.op === 'text' && own.p === edit.p);
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), SEND_AFTER_MS);
  }

  ask() {
    if (!this.sending && this.pending.length) this.say({ type: 'isSaveLock', syncChangesIndex: this.index });
  }

  /** The server said whether it is our turn. */
  turn(message) {
    if (message.saveLock) this.later();
    else if (this.sending || !this.pending.length) this.say({ type: 'unSaveLock' });
    else this.send();
  }

  send() {
    this.sending = this.pending.splice(0);
    this.say({
      type: 'saveChanges',
      changes: JSON.stringify(this.sending),
      startSaveChanges: true,
      endSaveChanges: true,
      isCoAuthoring: true,
      isExcel: false,
      deleteIndex: null,
      excelAdditionalInfo: null,
      unlock: false,
      releaseLocks: true,
    });
  }

  /** The window goes: what is left is sent without asking whether it is our turn. */
  sendNow() {
    if (this.pending.length && !this.sending) this.send();
  }

  sent(message) {
    if (!this.sending || (message.index === -1 && message.time === -1)) return;
    this.sending = null;
    this.index = message.syncChangesIndex;
    if (this.pending.length) this.later();
    else this.done();
  }

  /** A new connection: what was not confirmed goes again. */
  again() {
    this.pending = [...(this.sending || []), ...this.pending];
    this.sending = null;
    this.later();
  }
}
