// The page of a document: compare, restore, kept copies, receipts, audit, and what became of it as a submission.
import { act, count, dialog, el, formDialog, get, notice, particulars, post, size, t, table, tag, time, tried, word } from "/assets/page.js";
import { remove, rename, undelete } from "/assets/documents.js";
import { share } from "/assets/share.js";

const { document: id, name } = document.body.dataset;
const here = `/api/v1/documents/${encodeURIComponent(id)}`;

/* Comparing. */

const button = document.getElementById("compare");
const chosen = () => [...document.querySelectorAll("#versions input[name=version]:checked")].map((box) => box.value);

document.getElementById("versions").addEventListener("change", (event) => {
  const boxes = [...document.querySelectorAll("#versions input[name=version]:checked")];
  // A third one takes the place of the one chosen first.
  if (boxes.length > 2) boxes.find((box) => box !== event.target).checked = false;
  button.disabled = chosen().length !== 2;
});

const place = (change) => {
  if (change.address) return `${change.sheet}!${change.address}`;
  if (change.sheet) return change.sheet;
  if (change.slide) return t("compare.slide", { slide: change.slide, n: change.paragraph });
  if (change.line) return t("compare.line", { n: change.line });
  return t("compare.paragraph", { n: change.paragraph });
};

const shown = (text, formula) => (text === undefined || text === null ? "" : formula ? `${text}  =${formula}` : text);

const compare = tried(async () => {
  const [newer, older] = chosen();
  const section = document.getElementById("comparison");
  const body = document.getElementById("comparison-body");
  section.hidden = false;
  body.replaceChildren(el("p", { class: "quiet" }, t("frame.loading")));
  section.focus();
  try {
    const found = await get(`${here}/diff?from=${encodeURIComponent(older)}&to=${encodeURIComponent(newer)}`);
    const rows = found.changes.map((change) => ({
      attributes: { class: `change ${change.kind}` },
      cells: [tag(word("change", change.kind), change.kind), place(change),
        el("del", {}, shown(change.old, change.old_formula)), el("ins", {}, shown(change.new, change.new_formula))],
    }));
    body.replaceChildren(
      el("p", { id: "compare-counts" }, t("compare.counts", { from: found.from, to: found.to, added: count(found.added), removed: count(found.removed), changed: count(found.changed) })),
      rows.length ? table([[t("compare.what")], [t("compare.where")], [t("compare.before")], [t("compare.after")]], rows, { caption: t("document.comparison") })
        : el("p", {}, t("compare.same")));
    if (found.is_cut) body.append(el("p", { class: "quiet" }, t("compare.cut")));
  } catch (error) {
    body.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
  }
});
button.addEventListener("click", compare);

/* What the buttons do. */

const restore = (version) => formDialog(t("document.restore-title", { version }), [el("p", {}, t("document.restore-words", { version }))], {
  submit: t("document.restore"),
  act: async () => {
    await post(`${here}/versions/${encodeURIComponent(version)}/restore`, { while_editing: false });
    notice(t("document.restored", { version }));
  },
});

const receipt = tried(async (version) => {
  const found = await get(`${here}/versions/${encodeURIComponent(version)}/receipt`);
  const line = (words, value) => [el("dt", {}, words), el("dd", {}, value)];
  dialog(t("document.receipt-title", { version }), (body) => {
    body.append(el("p", { class: "quiet" }, t("document.receipt-words")), el("dl", { class: "receipt" },
      line(t("document.receipt-document"), `${name} (${found.document})`),
      line(t("document.when"), time(found.committed_at)),
      line(t("documents.size"), `${size(found.size_bytes)} (${count(found.size_bytes)} B)`),
      line("SHA-256", el("code", {}, found.sha256)),
      line(t("document.receipt-stored"), `${found.stored.vault}: ${found.stored.locator}`),
      line(t("document.receipt-read"), found.stored.read_back_at ? time(found.stored.read_back_at) : t("document.receipt-not-read")),
      line(t("document.receipt-entry"), found.audit ? el("code", {}, `${found.audit.chain} #${found.audit.sequence} ${found.audit.hash.slice(0, 16)}…`) : "—")),
    el("div", { class: "acts" }, el("a", {
      class: "button",
      download: `receipt-${id}-${version}.json`,
      href: URL.createObjectURL(new Blob([JSON.stringify(found, null, 2)], { type: "application/json" })),
    }, t("document.receipt-save"))));
  });
});

const settle = (number, act, words) => formDialog(t(`document.${act}-title`), [el("p", {}, t(`document.${act}-words`))], {
  submit: words,
  act: async () => {
    await post(`${here}/kept/${number}/${act}`);
    location.reload();
  },
});

document.querySelector("main").addEventListener("click", (event) => {
  const pressed = event.target.closest("[data-act]");
  if (!pressed) return;
  const version = pressed.closest("tr[data-version]")?.dataset.version;
  const kept = pressed.closest("tr[data-kept]")?.dataset.kept;
  const acts = {
    share: () => share(id, document.body.dataset.name),
    rename: () => rename(id, document.body.dataset.name, () => location.reload()),
    delete: () => remove(id, document.body.dataset.name, () => location.reload()),
    undelete: () => undelete(id, () => location.reload()),
    restore: () => restore(version),
    receipt: () => receipt(version),
    "use-kept": () => settle(kept, "use", t("document.use-this")),
    "dismiss-kept": () => settle(kept, "dismiss", t("document.dismiss")),
  };
  acts[pressed.dataset.act]?.();
});

/* Who did what. */

const showAudit = async (entries = [], after = "") => {
  const body = document.getElementById("audit-body");
  if (!entries.length) body.replaceChildren(el("p", { class: "quiet" }, t("frame.loading")));
  const found = await get(`${here}/audit?newest=true&limit=200${after}`);
  const all = [...entries, ...found.entries];
  const rows = all.map((entry) => [time(entry.at), entry.actor, act(entry.action), particulars(entry.details), entry.from || "—"]);
  body.replaceChildren(table([[t("document.when")], [t("audit.user")], [t("audit.action")], [t("audit.details")], [t("audit.address")]], rows, { caption: t("document.audit") }));
  if (found.next) body.append(el("button", { class: "button plain", onclick: tried(() => showAudit(all, `&after=${encodeURIComponent(found.next)}`)) }, t("audit.older")));
};
document.getElementById("audit")?.addEventListener("toggle", (event) => { if (event.target.open) tried(showAudit)(); });

/* What became of it as a submission. */

if (name.endsWith(".xlsx")) {
  get(`${here}/summary-logs`).then((found) => {
    const logs = found.logs ?? found;
    if (!logs?.length) return;
    document.getElementById("logs").hidden = false;
    document.getElementById("logs-body").replaceChildren(table([[t("submissions.state")], [t("documents.version")], [t("document.when")]], logs.map((log) => [
      el("a", { href: `/submissions/${encodeURIComponent(log.organisation)}/${encodeURIComponent(log.registration)}/logs/${encodeURIComponent(log.id)}` }, word("log-state", log.state)),
      log.document?.[1], time(log.uploaded_at)])));
  }).catch(() => {});
}
