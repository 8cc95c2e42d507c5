// What every page needs: words, requests, elements, dialogs, times. No framework, no outside service.
// Elements are built from text only; nothing here ever writes markup.

const texts = (await import(`/assets/texts-${document.documentElement.lang}.js`)).default;

/** The words under a key, with values in their places. */
export const t = (key, values = {}) =>
  (texts[key] ?? key).replace(/\{(\w+)\}/g, (place, name) => String(values[name] ?? place));

/** The words for one of a closed set; the word itself if there are none. */
export const word = (group, name) => texts[`${group}.${name}`] ?? name;

const locale = document.documentElement.lang;

export const count = (number) => new Intl.NumberFormat(locale).format(number);

export const size = (bytes) =>
  bytes < 1024 ? `${bytes} B` : bytes < 1048576 ? `${Math.ceil(bytes / 1024)} KiB` : `${(Math.floor(bytes * 10 / 1048576) / 10).toFixed(1)} MiB`;

export const ago = (iso) => {
  const seconds = Math.max(0, Math.round((Date.now() - new Date(iso).getTime()) / 1000));
  if (seconds < 10) return t("time.now");
  if (seconds < 120) return t("time.seconds", { n: seconds });
  if (seconds < 7200) return t("time.minutes", { n: Math.round(seconds / 60) });
  return new Date(iso).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });
};

/** An element. Attributes beginning with `on` are handlers; children are elements or text. */
export const el = (name, attributes = {}, ...children) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

export const time = (iso) => (iso ? el("time", { datetime: iso, title: new Date(iso).toLocaleString(locale) }, ago(iso)) : "—");

export const tag = (text, kind = "") => el("span", { class: `tag ${kind}`.trim() }, text);

const shortened = (value) => {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (/^[0-9a-f]{32,}$/.test(text)) return `${text.slice(0, 12)}…`;
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
};

/** What an entry of the audit trail did: in words, with its own name below. */
export const act = (name) => [word("act", name), el("div", { class: "quiet" }, el("code", {}, name))];

const saysNothing = (value) => value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);

/** The particulars of an entry that say something, one by one; what is long is whole in its title. */
export const particulars = (details) => (details === null || typeof details !== "object" ? shortened(details)
  : el("ul", { class: "particulars" }, Object.entries(details).filter(([, value]) => !saysNothing(value)).map(([name, value]) =>
    el("li", { title: typeof value === "string" ? value : JSON.stringify(value) }, el("span", { class: "quiet" }, name), " ", shortened(value)))));

/** A table: columns are `[words, class]`, rows are lists of cells; on phones each cell says what it is. */
export const table = (columns, rows, { caption } = {}) => {
  const heads = columns.map(([words, kind]) =>
    el("th", { class: kind, scope: "col" }, kind === "acts" ? el("span", { class: "hidden" }, words) : words));
  const body = rows.map((cells) => {
    const row = Array.isArray(cells) ? { cells } : cells;
    return el("tr", row.attributes ?? {}, row.cells.map((cell, index) =>
      el("td", { class: columns[index][1], "data-label": columns[index][0] }, cell ?? "—")));
  });
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption ?? columns[0][0] },
    el("table", { class: "list" }, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, body)));
};

export const fill = (place, ...children) => {
  const element = typeof place === "string" ? document.getElementById(place) : place;
  element.replaceChildren(...children.flat(4).filter((child) => child !== null && child !== undefined && child !== false));
  element.removeAttribute("aria-busy");
  return element;
};

/** What the service answered instead of what was asked for. */
export class Refused extends Error {
  constructor(status, problem) {
    super([problem.detail, problem.next].filter(Boolean).join(" ") || t("trouble.status", { status }));
    this.status = status;
    this.code = problem.code ?? "";
  }
}

const parsed = (text) => {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
};

/** Asks the API with the cookie of the page. */
export const ask = async (method, path, body) => {
  const headers = { accept: "application/json" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error(t("trouble.unreachable"));
  }
  const answer = parsed(await response.text());
  if (response.ok) return answer;
  // The cookie ran out: the door leads back here.
  if (response.status === 401) location.reload();
  throw new Refused(response.status, answer ?? {});
};

export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);

/** Sends a file and tells how far it is. */
export const send = (path, file, progressed) => new Promise((done, failed) => {
  const request = new XMLHttpRequest();
  request.open("POST", path);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.upload.addEventListener("progress", (event) => progressed(event.loaded / Math.max(1, event.total)));
  request.addEventListener("load", () => {
    const answer = parsed(request.responseText);
    if (request.status < 300) done(answer);
    else failed(new Refused(request.status, answer ?? {}));
  });
  request.addEventListener("error", () => failed(new Error(t("trouble.unreachable"))));
  request.send(file);
});

/** A line at the foot of the page, read out too. */
export const notice = (words, kind = "") => {
  const line = el("p", { class: `notice ${kind}`.trim() }, words,
    el("button", { class: "close", "aria-label": t("frame.close"), onclick: () => line.remove() }, "×"));
  document.getElementById("notices").append(line);
  if (kind !== "bad") setTimeout(() => line.remove(), 8000);
  return line;
};

/** Does something and tells if it did not work. */
export const tried = (act) => async (...given) => {
  try {
    return await act(...given);
  } catch (error) {
    notice(error.message, "bad");
    return undefined;
  }
};

let dialogs = 0;

/** A dialog; `close` is given to whoever fills it. Focus comes back to where it was. */
export const dialog = (title, fillIn, { wide = false } = {}) => {
  const id = `dialog-${(dialogs += 1)}`;
  const body = el("div", { class: "dialog-body" });
  const shown = el("dialog", { "aria-labelledby": id, class: wide ? "wide" : null },
    el("div", { class: "dialog-head" }, el("h2", { id }, title),
      el("button", { class: "close", type: "button", "aria-label": t("frame.close"), onclick: () => shown.close() }, "×")), body);
  shown.addEventListener("close", () => shown.remove());
  shown.addEventListener("click", (event) => { if (event.target === shown) shown.close(); });
  fillIn(body, () => shown.close());
  document.body.append(shown);
  shown.showModal();
  return shown;
};

/** A form in a dialog: fields are elements; `act` gets the form's data and may refuse with an error, which is shown. */
export const formDialog = (title, fields, { submit, danger = false, act, wide }) => dialog(title, (body, close) => {
  const trouble = el("p", { class: "bad", role: "alert" });
  const button = el("button", { class: danger ? "button danger-button" : "button" }, submit);
  body.append(el("form", {
    class: "stack",
    onsubmit: async (event) => {
      event.preventDefault();
      button.disabled = true;
      trouble.textContent = "";
      try {
        await act(new FormData(event.target));
        close();
      } catch (error) {
        trouble.textContent = error.message;
        button.disabled = false;
      }
    },
  }, fields, trouble, el("div", { class: "acts" },
    el("button", { class: "button plain", type: "button", onclick: close }, t("frame.cancel")), button)));
}, { wide });

export const field = (words, input) => el("label", { class: "field" }, words, input);

/** Times are said anew now and then. */
const showTimes = () => {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const words = ago(each.dateTime);
    if (each.textContent !== words) each.textContent = words;
    if (!each.title) each.title = new Date(each.dateTime).toLocaleString(locale);
  }
};
showTimes();
setInterval(showTimes, 5000);
export { showTimes };

/** One open menu at a time; a click elsewhere or Escape closes it. */
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target) || event.target.closest(".choices")) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

/** Looks again every so often, as long as somebody looks at the page. */
export const every = (milliseconds, act) => {
  let failures = 0;
  const turn = async () => {
    if (!document.hidden) {
      try {
        await act();
        failures = 0;
      } catch (error) {
        failures += 1;
        console.warn("the page could not be refreshed", error);
      }
    }
    setTimeout(turn, milliseconds * Math.min(8, 1 + failures));
  };
  setTimeout(turn, milliseconds);
};
