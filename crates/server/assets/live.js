// Keeps the pages current: versions, who is editing, and times as people say them. No framework, no outside service.
"use strict";

const ago = (iso) => {
  const seconds = Math.max(0, Math.round((Date.now() - new Date(iso).getTime()) / 1000));
  if (seconds < 10) return "just now";
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  return new Date(iso).toLocaleString();
};

const showTimes = () => {
  for (const time of document.querySelectorAll("time")) {
    time.title = time.dateTime;
    time.textContent = ago(time.dateTime);
  }
};

const size = (bytes) =>
  bytes < 1024 ? `${bytes} bytes` : bytes < 1048576 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`;

const get = async (path) => {
  const response = await fetch(path, { headers: { accept: "application/json" } });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return response.json();
};

const refreshList = async () => {
  for (const row of document.querySelectorAll("tr[data-document]")) {
    const view = await get(`/api/v1/documents/${encodeURIComponent(row.dataset.document)}`);
    const field = (name) => row.querySelector(`[data-field=${name}]`);
    field("head").textContent = view.head;
    field("changed_at").dateTime = view.changed_at;
    field("size").textContent = size(view.size_bytes);
    field("editors").textContent = view.editors.join(", ");
  }
};

const refreshHistory = async (id) => {
  const versions = await get(`/api/v1/documents/${encodeURIComponent(id)}/versions`);
  const shown = document.querySelectorAll("#versions tbody tr").length;
  // A new version appeared: the page itself knows best how to show it.
  if (versions.length !== shown) location.reload();
};

const tick = async () => {
  if (!document.hidden) {
    try {
      const history = document.querySelector("[data-history]");
      await (history ? refreshHistory(history.dataset.history) : refreshList());
    } catch (error) {
      console.warn("the page could not be refreshed", error);
    }
  }
  showTimes();
  setTimeout(tick, 1500);
};

showTimes();
setTimeout(tick, 500);
