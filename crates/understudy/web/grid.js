/* The grid: cells of the chosen sheet.
 *
 * Guarantees: each cell is one element with `data-cell`; typing and Enter, Tab, arrows and Delete work as in any
 * spreadsheet; what others do appears at once.
 *
 * Does not calculate, and shows a limited number of rows and columns at a time.
 */

const ROWS_MIN = 40;
const COLUMNS_MIN = 12;
const ROWS_STEP = 200;

export class Grid {
  /** `desk` gives `shape`, `mayType`, `edit(edit)`, `moved(place)`. */
  constructor(root, desk) {
    this.desk = desk;
    this.root = root;
    this.sheet = 0;
    this.rowsMax = ROWS_STEP;
    this.tabs = document.getElementById('us-tabs');
    this.input = document.getElementById('us-formula-input');
    this.place = document.getElementById('us-formula-place');
    document.getElementById('us-formula').hidden = false;
    this.tabs.hidden = false;
    this.input.readOnly = !desk.mayType;
    this.input.onchange = () => this.selected && this.set(this.selected, this.input.value);
    this.input.onkeydown = (event) => {
      if (event.key === 'Enter') this.focus(this.selected);
    };
    this.draw();
  }

  get cells() {
    const sheet = this.desk.shape.sheets[this.sheet];
    return sheet ? sheet.cells : new Map();
  }

  draw() {
    const used = [...this.cells.keys()].map(position).filter(Boolean);
    const rows = Math.min(this.rowsMax, Math.max(ROWS_MIN, ...used.map((at) => at.row + 10)));
    const columns = Math.min(60, Math.max(COLUMNS_MIN, ...used.map((at) => at.column + 2)));
    const table = document.createElement('table');
    table.className = 'grid';
    table.id = 'us-grid';
    table.setAttribute('role', 'grid');
    const head = table.createTHead().insertRow();
    head.append(header('', 'col'));
    for (let column = 1; column <= columns; column++) head.append(header(letters(column), 'col'));
    const body = table.createTBody();
    for (let row = 1; row <= rows; row++) {
      const line = body.insertRow();
      line.append(header(String(row), 'row'));
      for (let column = 1; column <= columns; column++) line.append(this.cell(`${letters(column)}${row}`));
    }
    table.addEventListener('focusin', (event) => this.select(event.target));
    table.addEventListener('click', (event) => this.clicked(event.target));
    table.addEventListener('keydown', (event) => this.key(event));
    table.addEventListener('input', (event) => { this.input.value = event.target.textContent; });
    table.addEventListener('focusout', (event) => this.leave(event.target));
    this.root.replaceChildren(table);
    this.drawTabs();
  }

  cell(place) {
    const cell = document.createElement('td');
    cell.className = 'cell';
    cell.dataset.cell = place;
    cell.tabIndex = 0;
    cell.setAttribute('role', 'gridcell');
    cell.setAttribute('aria-label', place);
    if (this.desk.mayType) cell.contentEditable = 'plaintext-only';
    this.fill(cell);
    return cell;
  }

  fill(cell) {
    const value = this.cells.get(cell.dataset.cell) || '';
    if (cell.textContent !== value) cell.textContent = value;
    cell.toggleAttribute('data-number', value !== '' && !Number.isNaN(Number(value)));
  }

  drawTabs() {
    const buttons = this.desk.shape.sheets.map((sheet, number) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = sheet.name;
      button.setAttribute('role', 'tab');
      button.setAttribute('aria-selected', String(number === this.sheet));
      button.dataset.sheet = sheet.name;
      button.onclick = () => {
        this.sheet = number;
        this.draw();
      };
      return button;
    });
    this.tabs.replaceChildren(...buttons);
  }

  /** Somebody else changed something. */
  show(touched) {
    if (touched.sheet !== this.sheet) return;
    const cell = this.find(touched.cell);
    if (!cell) this.draw();
    else if (document.activeElement !== cell) this.fill(cell);
  }

  mark(places) {
    for (const cell of this.root.querySelectorAll('[data-taken]')) {
      delete cell.dataset.taken;
      cell.style.removeProperty('--who');
    }
    for (const [place, who] of places) {
      const [sheet, name] = place.split('!');
      const cell = Number(sheet) === this.sheet ? this.find(name) : null;
      if (!cell) continue;
      cell.dataset.taken = who.name;
      cell.title = who.name;
      cell.style.setProperty('--who', who.colour);
    }
  }

  find(place) {
    return this.root.querySelector(`[data-cell="${CSS.escape(place || '')}"]`);
  }

  /** The first click selects what is there, so that typing replaces it; the second places the caret. */
  clicked(cell) {
    if (cell.dataset.cell && this.fresh && this.desk.mayType) getSelection().selectAllChildren(cell);
    this.fresh = false;
  }

  select(cell) {
    if (!cell.dataset.cell) return;
    this.fresh = true;
    this.selected = cell.dataset.cell;
    this.place.textContent = this.selected;
    this.input.value = this.cells.get(this.selected) || '';
    this.desk.moved(`${this.sheet}!${this.selected}`);
  }

  leave(cell) {
    if (cell.dataset.cell && this.desk.mayType) this.set(cell.dataset.cell, cell.textContent);
  }

  set(place, value) {
    if ((this.cells.get(place) || '') === value) return;
    const sheet = this.desk.shape.sheets[this.sheet].name;
    this.desk.edit({ op: 'cell', sheet, cell: place, value });
    const cell = this.find(place);
    if (cell) this.fill(cell);
  }

  key(event) {
    const at = position(event.target.dataset.cell || '');
    if (!at) return;
    const edits = getSelection().toString() === '' && event.target.textContent !== (this.cells.get(event.target.dataset.cell) || '');
    const moves = { Enter: [1, 0], Tab: [0, event.shiftKey ? -1 : 1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    if (!edits) Object.assign(moves, { ArrowLeft: [0, -1], ArrowRight: [0, 1] });
    if ((event.key === 'Delete' || event.key === 'Backspace') && !edits && this.desk.mayType && event.target.textContent) {
      if (event.key === 'Delete') {
        event.preventDefault();
        event.target.textContent = '';
        this.leave(event.target);
      }
      return;
    }
    const move = moves[event.key];
    if (!move || event.isComposing) return;
    event.preventDefault();
    this.focus(`${letters(at.column + move[1])}${at.row + move[0]}`);
  }

  focus(place) {
    const cell = this.find(place);
    if (!cell) return;
    cell.focus();
    if (this.desk.mayType) getSelection().selectAllChildren(cell);
  }
}

function header(text, scope) {
  const cell = document.createElement('th');
  cell.textContent = text;
  cell.scope = scope;
  return cell;
}

function letters(column) {
  let text = '';
  for (let rest = column; rest > 0; rest = Math.floor((rest - 1) / 26)) text = String.fromCharCode(65 + ((rest - 1) % 26)) + text;
  return text;
}

function position(place) {
  const match = /^([A-Z]+)(\d+)$/.exec(place);
  if (!match) return null;
  const column = [...match[1]].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0);
  return { row: Number(match[2]), column };
}
