// The share dialog: links with rights, expiry and password; copied once, listed, revoked.
import { ask, dialog, el, field, get, notice, post, t, table, tag, time, tried, word } from "/assets/page.js";

const HOURS = [["24", "share.day"], ["168", "share.week"], ["720", "share.month"], ["", "share.never"]];

const copy = async (input) => {
  input.select();
  try {
    await navigator.clipboard.writeText(input.value);
  } catch {
    document.execCommand("copy");
  }
  notice(t("share.copied"));
};

export const share = (id, name) => dialog(t("share.title", { name }), (body) => {
  const links = `/api/v1/documents/${encodeURIComponent(id)}/shares`;
  const list = el("div", { class: "share-list" });
  const made = el("div", { class: "share-made" });

  const state = (link) => {
    if (link.revoked_at) return tag(t("share.revoked"));
    if (link.expires_at && new Date(link.expires_at) < new Date()) return tag(t("share.expired"));
    return tag(t("share.active"), "good");
  };

  const refresh = tried(async () => {
    const all = await get(links);
    const rows = all.map((link) => [
      [link.label || t("share.no-label"), " ", link.has_password ? tag(t("share.with-password")) : null],
      word("rights", link.allows),
      state(link),
      link.expires_at ? time(link.expires_at) : t("share.never"),
      String(link.uses),
      link.revoked_at ? "" : el("button", {
        class: "button plain small danger",
        type: "button",
        onclick: tried(async () => {
          await ask("DELETE", `${links}/${link.number}`);
          notice(t("share.was-revoked"));
          await refresh();
        }),
      }, t("share.revoke")),
    ]);
    list.replaceChildren(all.length
      ? table([[t("share.label")], [t("share.rights")], [t("share.state")], [t("share.expires")], [t("share.uses"), "number"], [t("documents.acts"), "acts"]], rows)
      : el("p", { class: "quiet" }, t("share.none")));
  });

  const trouble = el("p", { class: "bad", role: "alert" });
  const form = el("form", {
    class: "stack",
    onsubmit: async (event) => {
      event.preventDefault();
      trouble.textContent = "";
      const data = new FormData(form);
      const wish = { allows: data.get("allows"), label: String(data.get("label")).trim(), may_download: data.get("download") === "on" };
      if (data.get("hours")) wish.expires_hours = Number(data.get("hours"));
      if (data.get("password")) wish.password = String(data.get("password"));
      try {
        const link = await post(links, wish);
        const input = el("input", { readonly: true, value: link.url, class: "link", "aria-label": t("share.link"), id: "share-link" });
        made.replaceChildren(el("p", {}, t("share.once")),
          el("div", { class: "row" }, input, el("button", { class: "button", type: "button", onclick: () => copy(input) }, t("share.copy"))));
        form.reset();
        await refresh();
        input.focus();
        input.select();
      } catch (error) {
        trouble.textContent = error.message;
      }
    },
  },
  el("div", { class: "grid" },
    field(t("share.rights"), el("select", { name: "allows" }, ["view", "comment", "edit"].map((right) => el("option", { value: right }, word("rights", right))))),
    field(t("share.expires"), el("select", { name: "hours" }, HOURS.map(([hours, words], index) => el("option", { value: hours, selected: index === 1 }, t(words))))),
    field(t("share.label"), el("input", { name: "label", maxlength: "100", autocomplete: "off" })),
    field(t("share.password"), el("input", { name: "password", type: "password", maxlength: "256", autocomplete: "new-password" }))),
  el("label", { class: "check" }, el("input", { type: "checkbox", name: "download", checked: true }), t("share.download")),
  trouble,
  el("div", { class: "acts" }, el("button", { class: "button" }, t("share.make"))));

  body.append(form, made, el("h3", {}, t("share.links")), list);
  refresh();
}, { wide: true });
