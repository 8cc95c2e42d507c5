/* The frame around the document: title, status, people, banner, buttons.
 *
 * Guarantees: everything that comes from outside is set as text, never as markup.
 *
 * Does not know the protocol.
 */

const byId = (id) => document.getElementById(id);

export const main = byId('us-main');

export function setTitle(text) {
  byId('us-title').textContent = text;
  document.title = text;
}

/** The title can be edited if the page wants to hear of it. */
export function allowRenaming(renamed) {
  const title = byId('us-title');
  title.contentEditable = 'plaintext-only';
  title.tabIndex = 0;
  title.setAttribute('role', 'textbox');
  title.setAttribute('aria-label', 'Title');
  let before = '';
  title.onfocus = () => { before = title.textContent; };
  title.onkeydown = (event) => {
    if (event.key === 'Escape') title.textContent = before;
    if (event.key === 'Enter' || event.key === 'Escape') {
      event.preventDefault();
      title.blur();
    }
  };
  title.onblur = () => {
    const text = title.textContent.trim();
    if (text && text !== before) renamed(text.replace(/\.[^.]*$/, ''));
    else title.textContent = before;
  };
}

export function setStatus(text, mood) {
  const status = byId('us-status');
  status.textContent = text;
  status.dataset.mood = mood || '';
}

export function setState(state) {
  document.body.dataset.state = state;
}

export function setKind(kind) {
  document.body.dataset.kind = kind;
  byId('us-mark').textContent = { text: 'W', sheets: 'X' }[kind] || '●';
}

export function setFoot(text) {
  byId('us-foot').textContent = text;
}

export function button(name, action) {
  const element = byId(`us-${name}`);
  element.hidden = !action;
  element.onclick = action || null;
  return element;
}

export function banner(text) {
  byId('us-banner').hidden = !text;
  byId('us-banner-text').textContent = text || '';
  byId('us-banner-ok').onclick = () => banner('');
}

export function notice(title, text) {
  const box = document.createElement('div');
  box.className = 'notice';
  box.id = 'us-notice';
  const head = document.createElement('h2');
  head.textContent = title;
  const body = document.createElement('p');
  body.textContent = text;
  box.append(head, body);
  byId('us-formula').hidden = true;
  byId('us-tabs').hidden = true;
  main.replaceChildren(box);
}

export function showPeople(people) {
  const items = people.map((person) => {
    const item = document.createElement('li');
    item.className = 'user';
    item.dataset.user = person.id;
    item.dataset.view = String(person.view);
    item.title = person.view ? `${person.name} (viewing)` : person.name;
    item.style.setProperty('--who', person.colour);
    item.textContent = initials(person.name);
    if (person.image) {
      const image = document.createElement('img');
      image.src = person.image;
      image.alt = '';
      image.onerror = () => image.remove();
      item.append(image);
    }
    item.setAttribute('aria-label', item.title);
    return item;
  });
  byId('us-users').replaceChildren(...items);
}

export function colourOf(id) {
  const colours = ['#2b6cb0', '#b83280', '#2f855a', '#c05621', '#6b46c1', '#c53030', '#2c7a7b', '#97702a'];
  let hash = 0;
  for (const letter of String(id)) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return colours[hash % colours.length];
}

function initials(name) {
  const words = name.trim().split(/\s+/u).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : words;
  return letters.map((word) => [...word][0]).join('').toUpperCase() || '?';
}

/* The side panel. */

export function closeSide() {
  byId('us-side').hidden = true;
  byId('us-side').replaceChildren();
}

export function openSide(title, closed) {
  const side = byId('us-side');
  const head = document.createElement('h2');
  head.textContent = title;
  const close = document.createElement('button');
  close.type = 'button';
  close.id = 'us-side-close';
  close.textContent = 'Close';
  close.onclick = () => {
    closeSide();
    closed();
  };
  head.append(close);
  side.hidden = false;
  side.replaceChildren(head);
  return side;
}

export function isSideOpen() {
  return !byId('us-side').hidden;
}
