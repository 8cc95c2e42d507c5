/* The page: paragraphs that can be typed into.
 *
 * Guarantees: each paragraph is one element with `data-p`; typing, Enter, Backspace and pasting become edits;
 * what others do appears without disturbing the caret.
 *
 * Does not format.
 */

import { freshId } from './shape.js';

export class Paper {
  /** `desk` gives `shape`, `mayType`, `edit(edit)`, `moved(place)`. */
  constructor(root, desk) {
    this.desk = desk;
    this.page = document.createElement('article');
    this.page.className = 'page';
    this.page.id = 'us-page';
    this.page.setAttribute('aria-label', 'Page');
    root.replaceChildren(this.page);
    this.page.addEventListener('input', (event) => this.typed(event));
    this.page.addEventListener('keydown', (event) => this.key(event));
    this.page.addEventListener('paste', (event) => this.paste(event));
    this.page.addEventListener('focusin', (event) => this.desk.moved(event.target.dataset.p || null));
    this.draw();
  }

  draw() {
    const active = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.p : null;
    const caret = active ? caretOf(document.activeElement) : 0;
    const shown = this.desk.shape.paragraphs.filter((item) => !item.removed);
    const old = new Map([...this.page.children].map((element) => [element.dataset.p, element]));
    const elements = shown.map((item, number) => this.element(item, number, old.get(item.p)));
    this.page.replaceChildren(...elements);
    if (active) this.focus(active, caret);
  }

  element(item, number, old) {
    const element = old || document.createElement('p');
    element.className = 'paragraph';
    element.dataset.p = item.p;
    if (item.style) element.dataset.style = item.style;
    element.dataset.hint = 'Start typing…';
    element.setAttribute('aria-label', `Paragraph ${number + 1}`);
    if (this.desk.mayType) {
      element.setAttribute('role', 'textbox');
      element.setAttribute('aria-multiline', 'true');
      element.contentEditable = 'plaintext-only';
      element.tabIndex = 0;
    } else {
      element.removeAttribute('role');
      element.removeAttribute('contenteditable');
      element.tabIndex = this.desk.mayComment ? 0 : -1;
    }
    if (element.textContent !== item.text) element.textContent = item.text;
    return element;
  }

  /** Somebody else changed something. */
  show(touched) {
    if (touched.order) this.draw();
    const element = this.find(touched.p);
    if (!element) return;
    const item = this.desk.shape.paragraphs[this.desk.shape.find(touched.p)];
    if (element.textContent !== item.text) {
      const caret = document.activeElement === element ? caretOf(element) : null;
      element.textContent = item.text;
      if (caret !== null) this.focus(touched.p, Math.min(caret, item.text.length));
    }
    element.dataset.fresh = '';
    element.addEventListener('animationend', () => delete element.dataset.fresh, { once: true });
  }

  /** Who else is in which paragraph. */
  mark(places) {
    for (const element of this.page.children) {
      const who = places.get(element.dataset.p);
      if (who) {
        element.dataset.taken = who.name;
        element.style.setProperty('--who', who.colour);
      } else if (element.dataset.taken) {
        delete element.dataset.taken;
        element.style.removeProperty('--who');
      }
    }
  }

  find(p) {
    return [...this.page.children].find((element) => element.dataset.p === p) || null;
  }

  typed(event) {
    const element = event.target.closest('[data-p]');
    if (!element) return;
    this.setText(element.dataset.p, element.textContent);
  }

  setText(p, text) {
    this.desk.edit({ op: 'text', p, text });
  }

  key(event) {
    const element = event.target.closest('[data-p]');
    if (!element || !this.desk.mayType) return;
    const caret = caretOf(element);
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.split(element, caret, ['']);
    } else if (event.key === 'Backspace' && caret === 0 && getSelection().isCollapsed) {
      const before = element.previousElementSibling;
      if (!before) return;
      event.preventDefault();
      const at = before.textContent.length;
      this.setText(before.dataset.p, before.textContent + element.textContent);
      this.desk.edit({ op: 'remove', p: element.dataset.p });
      this.draw();
      this.focus(before.dataset.p, at);
    } else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      this.step(event, element, caret);
    }
  }

  /** Up from the first and down from the last line goes to the neighbour. */
  step(event, element, caret) {
    const up = event.key === 'ArrowUp';
    const neighbour = up ? element.previousElementSibling : element.nextElementSibling;
    const line = parseFloat(getComputedStyle(element).lineHeight) || 20;
    const oneLine = element.clientHeight < line * 1.8;
    const atEnd = up ? caret === 0 : caret === element.textContent.length;
    if (!neighbour || !(oneLine || atEnd)) return;
    event.preventDefault();
    this.focus(neighbour.dataset.p, Math.min(caret, neighbour.textContent.length));
  }

  paste(event) {
    const element = event.target.closest('[data-p]');
    if (!element || !this.desk.mayType) return;
    const lines = event.clipboardData.getData('text/plain').replace(/\r\n?/g, '\n').split('\n');
    if (lines.length < 2) return;
    event.preventDefault();
    getSelection().deleteFromDocument();
    this.split(element, caretOf(element), lines);
  }

  /** Cuts a paragraph at the caret and puts lines between; the last joins the tail. */
  split(element, caret, lines) {
    const text = element.textContent;
    const [first, ...more] = lines.length > 1 ? lines : ['', ...lines];
    this.setText(element.dataset.p, text.slice(0, caret) + first);
    let after = element.dataset.p;
    more.forEach((line, number) => {
      const p = freshId();
      const last = number === more.length - 1;
      this.desk.edit({ op: 'insert', p, after, text: last ? line + text.slice(caret) : line });
      after = p;
    });
    this.draw();
    this.focus(after, more[more.length - 1].length);
  }

  focus(p, caret) {
    const element = this.find(p);
    if (!element) return;
    element.focus({ preventScroll: false });
    if (!this.desk.mayType) return;
    const range = document.createRange();
    const node = element.firstChild;
    if (node) range.setStart(node, Math.min(caret, node.length));
    else range.setStart(element, 0);
    range.collapse(true);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }
}

function caretOf(element) {
  const selection = getSelection();
  if (!selection.rangeCount || !element.contains(selection.anchorNode)) return 0;
  const range = selection.getRangeAt(0).cloneRange();
  range.setStart(element, 0);
  return range.toString().length;
}
