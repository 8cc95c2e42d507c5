// Opens a document in the editor of the Document Server and tells the truth about what is saved.
import { mount } from "/client/saveguard.js";

const { document: id, mode } = document.body.dataset;
let head = null;
let isDirty = false;

const say = (text) => { document.getElementById("status").textContent = text; };

const ago = (iso) => {
  const seconds = Math.max(0, Math.round((Date.now() - new Date(iso).getTime()) / 1000));
  return seconds < 120 ? `${seconds} s ago` : `${Math.round(seconds / 60)} min ago`;
};

const show = () => {
  if (!head) return;
  const saved = `version ${head.version}, saved ${ago(head.changed_at)}`;
  say(isDirty ? `Not yet saved · ${saved}` : `In the vault: ${saved}`);
};

mount({
  element: "#frame",
  document: id,
  operation: mode,
  on: {
    waiting: () => say("Being saved; it opens in a moment …"),
    ready: () => say(mode === "view" ? "Open, read only" : "Open"),
    change: (changed) => { isDirty = changed; show(); },
    version: (version) => { head = version; show(); },
    warning: (warning) => say(warning?.warningDescription ?? "The editor warns"),
    error: (error) => say(error.message),
    close: (mounted) => { mounted.destroy(); location.href = `/document/${encodeURIComponent(id)}`; },
  },
});
setInterval(show, 5000);
