/* What is edited: paragraphs or cells, and how edits change them.
 *
 * Guarantees: the same edits in the same order give the same text here as in the server (office/shape.rs).
 *
 * Does not draw.
 */

export class Shape {
  constructor(base) {
    this.kind = base.kind;
    this.paragraphs = (base.paragraphs || []).map((item) => ({ style: '', removed: false, ...item }));
    this.sheets = (base.sheets || []).map((sheet) => ({ name: sheet.name, cells: new Map(Object.entries(sheet.cells)) }));
    this.comments = [];
  }

  find(p) {
    return this.paragraphs.findIndex((item) => item.p === p);
  }

  /** Applies one edit; says what it touched: `{p}`, `{sheet, cell}`, `{comment}` or `{order: true}`. */
  apply(edit, author) {
    if (edit.op === 'comment') {
      this.comments.push({ id: edit.id, about: edit.about, text: edit.text, author });
      return { comment: edit.id };
    }
    if (this.kind === 'sheets') return this.applyToSheets(edit);
    if (this.kind === 'text') return this.applyToText(edit);
    return {};
  }

  applyToText(edit) {
    const fresh = { p: edit.p, text: edit.text, style: '', removed: false };
    const place = this.find(edit.p);
    switch (edit.op) {
      case 'append':
        this.paragraphs.push(fresh);
        return { order: true, p: edit.p };
      case 'insert': {
        const anchor = edit.after === null ? -1 : this.find(edit.after);
        const at = edit.after !== null && anchor < 0 ? this.paragraphs.length : anchor + 1;
        this.paragraphs.splice(at, 0, fresh);
        return { order: true, p: edit.p };
      }
      case 'text':
        if (place < 0) {
          this.paragraphs.push(fresh);
          return { order: true, p: edit.p };
        } else {
          const item = this.paragraphs[place];
          const back = item.removed;
          item.text = edit.text;
          item.removed = false;
          return { p: edit.p, order: back };
        }
      case 'remove':
        if (place >= 0) this.paragraphs[place].removed = true;
        return { order: true };
      case 'cell':
        this.paragraphs.push({ ...fresh, p: edit.cell, text: edit.value });
        return { order: true };
      default:
        return {};
    }
  }

  applyToSheets(edit) {
    let { sheet, cell, value } = edit;
    if (edit.op !== 'cell') {
      if (edit.op === 'remove' || !this.sheets.length) return {};
      const rows = [...this.sheets[0].cells.keys()].map((place) => /^A(\d+)$/.exec(place)).filter(Boolean);
      cell = `A${Math.max(0, ...rows.map((match) => Number(match[1]))) + 1}`;
      sheet = '';
      value = edit.text;
    }
    const place = Math.max(0, this.sheets.findIndex((known) => known.name === sheet));
    if (!this.sheets[place]) return {};
    this.sheets[place].cells.set(cell.toUpperCase(), value);
    return { sheet: place, cell: cell.toUpperCase() };
  }
}

/** A name for a change or a paragraph that nobody else makes. */
export function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `e${[...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
