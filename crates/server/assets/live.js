// Keeps a page current: asks for it again and puts what changed in its place. What somebody is using at the moment stays.
import { every, showTimes } from "/assets/page.js";

const EVERY_MS = 1500;
const ROWS = "tr[data-document], tr[data-version], tr[data-kept]";
const keyOf = (row) => row.dataset.document ?? row.dataset.version ?? row.dataset.kept;

/** An element as the service wrote it: without what scripts and people changed. */
const plain = (element) => {
  const copy = element.cloneNode(true);
  for (const time of [...copy.querySelectorAll("time")]) {
    time.textContent = "";
    time.removeAttribute("title");
  }
  for (const menu of copy.querySelectorAll("details")) menu.removeAttribute("open");
  return copy.outerHTML;
};

/** An open menu or a chosen version: somebody is in the middle of something. */
const isInUse = (element) => Boolean(element.querySelector("details[open], input:checked"));

const REACHED = "a, button, summary, input";

/** Puts the fresh element in the place of the old one; whoever had the focus in a row has it again. */
const put = (old, fresh) => {
  if (plain(old) === plain(fresh) || isInUse(old)) return;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const row = focused?.closest(ROWS);
  const place = row ? [...row.querySelectorAll(REACHED)].indexOf(focused) : -1;
  old.replaceWith(document.adoptNode(fresh));
  if (place < 0) return;
  const rows = fresh.matches(ROWS) ? [fresh] : [...fresh.querySelectorAll(ROWS)];
  rows.find((each) => keyOf(each) === keyOf(row))?.querySelectorAll(REACHED)[place]?.focus();
};

const refresh = async () => {
  const response = await fetch(location.href, { headers: { accept: "text/html" } });
  if (response.status === 401) return location.reload();
  if (!response.ok) throw new Error(`${response.status}`);
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  for (const old of document.querySelectorAll("[data-live]")) {
    const now = fresh.querySelector(`[data-live="${old.dataset.live}"]`);
    if (!now) continue;
    const [rows, others] = [[...old.querySelectorAll(ROWS)], [...now.querySelectorAll(ROWS)]];
    const isSame = rows.length > 0 && rows.map(keyOf).join("\n") === others.map(keyOf).join("\n");
    // The same rows: each by itself, so that one in use holds back no other.
    if (isSame) rows.forEach((row, index) => put(row, others[index]));
    else put(old, now);
  }
  showTimes();
  return undefined;
};

every(EVERY_MS, refresh);
