// Records of a registration: found, as they were at any time, taken away as files; and the history of one.
import { count, el, fill, get, t, table, tag, time } from "/assets/page.js";

const PAGE = 100;
/* As many records as the service looks at for one page of a search by value. */
const LOOKED_AT = 3000;

const { organisation, registration, kind, key } = document.body.dataset;
const scope = `/submissions/${encodeURIComponent(organisation)}/${encodeURIComponent(registration)}`;
const api = `/api/v1/organisations/${encodeURIComponent(organisation)}/registrations/${encodeURIComponent(registration)}`;

const failed = (place) => (error) => fill(place, el("p", { class: "bad", role: "alert" }, error.message));
const logLink = (log, words) => el("a", { href: `${scope}/logs/${encodeURIComponent(log)}` }, words);

/* All of them. */

const form = document.getElementById("filters");

const wish = () => {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (String(value).trim()) query.set(name, String(value).trim());
  return query;
};

const showExports = () => {
  const query = wish();
  query.delete("ended");
  document.getElementById("exports").replaceChildren(...["csv", "xlsx", "jsonl"].map((format) =>
    el("a", { class: "button plain small", download: true, href: `${api}/records/export?format=${format}&${query}` }, format.toUpperCase())));
};

const beyond = ({ kind: afterKind, key: afterKey }, asOf) => `&as_of=${asOf}&after_kind=${encodeURIComponent(afterKind)}&after_key=${encodeURIComponent(afterKey)}`;

/** The newest search; an older one that is still looking gives up. */
let search = 0;

/** A page of records. What is looked for by value comes in short pages: they are asked for until there is something to show. */
const find = async (after) => {
  const mine = (search += 1);
  const query = wish();
  query.delete("as_of");
  const asOf = wish().get("as_of");
  let found = await get(`${api}/records?limit=${PAGE}&${query}${after || (asOf ? `&as_of=${encodeURIComponent(asOf)}` : "")}`);
  const records = [...found.records];
  for (let looked = LOOKED_AT; found.next && records.length < PAGE / 2 && mine === search; looked += LOOKED_AT) {
    fill("records", el("p", { class: "quiet", role: "status" }, t("records.looked-at", { n: count(looked) })));
    found = await get(`${api}/records?limit=${PAGE}&${query}${beyond(found.next, found.as_of)}`);
    records.push(...found.records);
  }
  return mine === search ? { ...found, records } : null;
};

const show = async (after = "") => {
  const found = await find(after);
  if (!found) return;
  const columns = [...new Set(found.records.flatMap((record) => Object.keys(record.values)))];
  const rows = found.records.map((record) => [
    el("a", { href: `${scope}/records/${encodeURIComponent(record.kind)}/${encodeURIComponent(record.key)}` }, `${record.kind} ${record.key}`),
    record.outcome ? tag(record.outcome, record.outcome === "included" ? "good" : "") : tag(t("records.is-ended")),
    logLink(record.log, t("submissions.number", { n: record.submission })),
    ...columns.map((column) => record.values[column] ?? ""),
  ]);
  const parts = [el("p", { class: "quiet", id: "as-of" }, t("records.standing", { n: found.as_of })), rows.length
    ? table([[t("records.record")], [t("log.counts")], [t("submissions.submission")], ...columns.map((column) => [column])], rows, { caption: t("records.title") })
    : el("p", {}, t("records.none"))];
  if (found.next) parts.push(el("button", { class: "button plain", onclick: () => show(beyond(found.next, found.as_of)).catch(failed("records")) }, t("log.more")));
  fill("records", parts);
  showExports();
};

if (form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show().catch(failed("records"));
  });
  show().catch(failed("records"));
}

/* One of them. */

const showHistory = async () => {
  const { versions } = await get(`${api}/records/${encodeURIComponent(kind)}/${encodeURIComponent(key)}?limit=500`);
  const rows = [...versions].reverse().map((version) => {
    const record = version.record ?? version;
    return [
      logLink(record.log, t("submissions.number", { n: record.submission })), time(record.submitted_at), record.submitted_by,
      tag(t(`log.${record.change}`), record.change),
      el("ul", { class: "cells" }, version.changes.map((cell) => el("li", {}, el("span", { class: "quiet" }, cell.column), " ",
        cell.old === null ? null : el("del", {}, cell.old), cell.old !== null && cell.new !== null ? " → " : null, cell.new === null ? null : el("ins", {}, cell.new),
        version.cells?.[cell.column] ? el("span", { class: "quiet" }, ` ${record.sheet ?? ""}!${version.cells[cell.column]}`) : null))),
      [record.outcome ?? t("records.is-ended"), record.reason ? el("div", { class: "quiet" }, record.reason) : null],
    ];
  });
  fill("history", table([[t("submissions.submission")], [t("document.when")], [t("document.author")], [t("log.change")], [t("log.cells")], [t("log.counts")]], rows, { caption: t("records.history") }));
};

if (key !== undefined) showHistory().catch(failed("history"));
