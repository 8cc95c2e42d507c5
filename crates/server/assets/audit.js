// Search in the audit trail: who did what, when, from where.
import { act, el, fill, get, particulars, t, table, time } from "/assets/page.js";

const form = document.getElementById("filters");

const query = (after) => {
  const wish = new URLSearchParams({ limit: "200", newest: "true" });
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
  time(entry.at), entry.actor, act(entry.action),
  entry.chain.includes(":") ? entry.chain : el("a", { href: `/document/${encodeURIComponent(entry.chain)}` }, entry.chain),
  particulars(entry.details), entry.from || "—"]);

const show = async (after) => {
  if (!place()) return fill("entries", el("p", { class: "quiet" }, t("audit.choose")));
  const found = await get(`/api/v1/${place()}/audit?${query(after)}`);
  const parts = [found.entries.length
    ? table([[t("document.when")], [t("audit.user")], [t("audit.action")], [t("audit.chain")], [t("audit.details")], [t("audit.address")]], rows(found.entries), { caption: t("audit.title") })
    : el("p", { class: "quiet" }, t("audit.none"))];
  if (found.next) parts.push(el("button", { class: "button plain", onclick: () => start(found.next) }, t("audit.older")));
  return fill("entries", parts);
};

const start = (after) => show(after).catch((error) => fill("entries", el("p", { class: "bad", role: "alert" }, error.message)));

form.addEventListener("submit", (event) => {
  event.preventDefault();
  start();
});
start();
