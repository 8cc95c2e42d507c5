/* The panel of comments.
 *
 * Guarantees: shows all comments of the session; a new one is about where the writer is.
 *
 * Does not show comments that the file had before.
 */

import * as page from './page.js';

/** `editor` gives `shape`, `mayComment`, `edit(edit)`, `people`. */
export function showComments(editor) {
  const side = page.openSide('Comments', () => {});
  editor.people.askWhomToMention();
  if (editor.mayComment) side.append(...writer(editor));
  const list = document.createElement('ul');
  list.className = 'notes';
  list.id = 'us-comments';
  for (const comment of editor.shape ? editor.shape.comments : []) list.append(entry(comment));
  side.append(list);
}

function writer(editor) {
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
    editor.edit({ op: 'comment', about: editor.people.place || '', text: text.value.trim() });
    editor.people.mention(text.value.trim());
    showComments(editor);
  };
  return [text, add];
}

function entry(comment) {
  const item = document.createElement('li');
  item.className = 'note';
  const who = document.createElement('small');
  who.textContent = comment.author || '';
  const words = document.createElement('p');
  words.textContent = comment.text;
  item.append(who, words);
  return item;
}
