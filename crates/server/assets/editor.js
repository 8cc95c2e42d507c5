// Opens a document in the editor of the Document Server and tells the truth about what is saved.
import { ago, el, t } from "/assets/page.js";
import { mount } from "/client/saveguard.js";

const { document: id, mode } = document.body.dataset;
const line = document.getElementById("status");
const frame = document.getElementById("frame");
let head = null;
// What was typed and is not with the Document Server; what is there and not yet in the vault.
let isTyped = false;
let isHeld = false;
let isOpen = false;
// What others type is with them or with the Document Server, and nobody here can tell how much of it.
let areOthersInside = false;
// The same person in another tab is no other person; tabs tell each other.
const tabs = new BroadcastChannel(`saveguard-${id}`);

const say = (state, words) => {
  line.dataset.state = state;
  if (line.textContent !== words) line.textContent = words;
};

const show = () => {
  if (!isOpen) return;
  const saved = head ? t("editor.saved", { ago: ago(head.changed_at), version: head.version }) : "";
  if (isTyped) say("unsaved", [t("editor.unsaved"), saved].filter(Boolean).join(" · "));
  else if (isHeld) say("held", [t("editor.held"), saved].filter(Boolean).join(" · "));
  else if (head) say("saved", [saved, areOthersInside ? t("editor.others") : ""].filter(Boolean).join(" · "));
  else say("saved", mode === "view" ? t("editor.reading") : t("editor.open"));
};

/** The editor cannot be opened: what is the matter, that nothing is lost, and what can be done meanwhile. */
const away = (error) => {
  isOpen = false;
  say("away", t("editor.away"));
  frame.replaceChildren(el("section", { class: "card empty away", role: "alert", tabindex: "-1" },
    el("h2", {}, t("editor.away-title")),
    el("p", {}, t("editor.away-words")),
    el("p", { class: "quiet" }, error.message),
    el("div", { class: "acts" },
      el("button", { class: "button", onclick: open }, t("editor.try-again")),
      el("a", { class: "button plain", href: `/api/v1/documents/${encodeURIComponent(id)}/content`, download: true }, t("editor.download")),
      el("a", { class: "button plain", href: `/document/${encodeURIComponent(id)}` }, t("editor.history")))));
};

const people = (sessions) => {
  const inside = new Map(sessions.flatMap((session) => session.people.map((person) => [person.id, person.name])));
  const names = [...new Set(inside.values())];
  document.getElementById("people").replaceChildren(...names.map((name) => el("span", { class: "tag live" }, name)));
  areOthersInside = inside.size > 1;
  show();
};

const open = () => {
  say("opening", t("editor.opening"));
  frame.replaceChildren();
  mount({
    element: "#frame",
    document: id,
    operation: mode,
    features: { edit: mode === "view" },
    on: {
      waiting: () => say("opening", t("editor.waiting")),
      ready: () => { isOpen = true; show(); },
      change: (isDirty) => {
        isTyped = isDirty;
        if (isDirty) {
          isHeld = true;
          tabs.postMessage("typed");
        }
        show();
      },
      version: (version) => {
        head = version;
        if (!isTyped) isHeld = false;
        show();
      },
      sessions: (data) => people(data.sessions ?? []),
      renamed: (data) => { document.querySelector("#title a").textContent = data.name; },
      conflict: () => say("away", t("editor.conflict")),
      quarantined: () => say("away", t("editor.quarantined")),
      warning: (warning) => say("away", warning?.warningDescription ?? t("editor.warns")),
      error: (error, mounted) => {
        say("away", error.message);
        // If the module takes the editor away it shows a panel of its own, right after this: ours says more.
        setTimeout(() => {
          if (!frame.querySelector(".saveguard-trouble")) return;
          mounted.destroy();
          away(error);
        });
      },
      close: (mounted) => { mounted.destroy(); location.href = `/document/${encodeURIComponent(id)}`; },
    },
  });
};

tabs.onmessage = () => { isHeld = true; show(); };
open();
setInterval(show, 1000);
