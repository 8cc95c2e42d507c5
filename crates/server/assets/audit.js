// Search in the audit trail: who did what, when, from where.
import { el, fill, get, t, table, time, word } from "/assets/page.js";

const form = document.getElementById("filters");

const query = (after) => {
  const wish = new URLSearchParams({ limit: "200" });
  for (const name of ["user", "action"]) {
    const value = form.elements[name].value.trim();
    if (value) wish.set(name, value);
  }
  for (const name of ["from", "to"]) if (form.elements[name].value) wish.set(name, new Date(form.elements[name].value).toISOString());
  if (after) wish.set("after", after);
  return wish;
};

const place = () => {
  const organisation = form.elements.organisation?.value.trim();
  return organisation ? `organisations/${encodeURIComponent(organisation)}` : form.elements.of.value;
};

const rows = (entries) => entries.map((entry) => [
  time(entry.at), entry.actor, word("act", entry.action),
  entry.chain.includes(":") ? entry.chain : el("a", { href: `/document/${encodeURIComponent(entry.chain)}` }, entry.chain),
  el("code", { class: "details" }, JSON.stringify(entry.details)), entry.from || "—"]);

const show = async (after) => {
  if (!place()) return fill("entries", el("p", { class: "quiet" }, t("audit.choose")));
  const found = await get(`/api/v1/${place()}/audit?${query(after)}`);
  const parts = [found.entries.length
    ? table([[t("document.when")], [t("audit.user")], [t("audit.action")], [t("audit.chain")], [t("audit.details")], [t("audit.address")]], rows(found.entries), { caption: t("audit.title") })
    : el("p", { class: "quiet" }, t("audit.none"))];
  if (found.next) parts.push(el("button", { class: "button plain", onclick: () => start(found.next) }, t("audit.later")));
  return fill("entries", parts);
};

const start = (after) => show(after).catch((error) => fill("entries", el("p", { class: "bad", role: "alert" }, error.message)));

// Entries come oldest first: those of the last day, unless somebody says otherwise.
const dayAgo = new Date(Date.now() - 24 * 60 * 60 * 1000);
form.elements.from.value = new Date(dayAgo - dayAgo.getTimezoneOffset() * 60000).toISOString().slice(0, 16);

form.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
start();
