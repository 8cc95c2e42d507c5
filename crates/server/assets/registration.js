// One registration: hand in a workbook, see what became of the others, take a submission back.
import { count, el, fill, formDialog, get, post, send, t, table, time, tried } from "/assets/page.js";
import { stateTag } from "/assets/registrations.js";

const { organisation, registration, maySubmit } = document.body.dataset;
const ids = `${encodeURIComponent(organisation)}/${encodeURIComponent(registration)}`;
const api = `/api/v1/organisations/${encodeURIComponent(organisation)}/registrations/${encodeURIComponent(registration)}`;
const logLink = (id) => `/submissions/${ids}/logs/${encodeURIComponent(id)}`;

export const stats = (numbers) => (numbers ? t("submissions.stats", {
  created: count(numbers.created), updated: count(numbers.updated), unchanged: count(numbers.unchanged), removed: count(numbers.removed),
}) : "—");

/* Handing in. */

const upload = async (file) => {
  const state = document.getElementById("upload-state");
  const bar = el("progress", { max: "1", value: "0", "aria-label": file.name });
  const words = el("span", {}, t("documents.sending"));
  state.replaceChildren(el("strong", {}, file.name), " ", bar, " ", words);
  try {
    const log = await send(`${api}/summary-logs?name=${encodeURIComponent(file.name)}`, file, (share) => {
      bar.value = share;
      if (share === 1) words.textContent = t("submissions.storing");
    });
    location.href = logLink(log.id);
  } catch (error) {
    state.replaceChildren(el("p", { class: "bad", role: "alert" }, error.message));
  }
};

const drop = document.getElementById("drop");
if (drop) {
  const input = document.getElementById("workbook");
  input.addEventListener("change", () => { if (input.files[0]) upload(input.files[0]); });
  drop.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
  });
}

/* What was handed in. */

const undo = (number) => formDialog(t("submissions.undo-title", { n: number }), [el("p", {}, t("submissions.undo-words", { n: number }))], {
  submit: t("submissions.undo"),
  act: async () => {
    const log = await post(`${api}/submissions/${number}/undo`);
    location.href = logLink(log.id);
  },
});

const showLogs = async () => {
  const { logs } = await get(`${api}/summary-logs?limit=50`);
  const rows = logs.map((log) => [
    el("a", { href: logLink(log.id) }, log.file_name ?? t("submissions.undoes", { n: log.undoes })),
    stateTag(log), log.uploaded_by, time(log.uploaded_at), stats(log.previewStats)]);
  fill("logs", rows.length
    ? table([[t("submissions.file")], [t("submissions.state")], [t("document.author")], [t("document.when")], [t("submissions.effect")]], rows, { caption: t("submissions.uploads") })
    : el("p", { class: "quiet" }, t("submissions.no-uploads")));
};

const showSubmissions = async () => {
  const { submissions } = await get(`${api}/submissions?limit=50`);
  const rows = submissions.map((each) => [
    el("a", { href: logLink(each.log) }, t("submissions.number", { n: each.submission })),
    each.undoes ? [stats(each.stats), " ", t("submissions.undoes", { n: each.undoes })] : stats(each.stats),
    each.submitted_by, time(each.submitted_at),
    maySubmit === "true" ? el("button", { class: "button plain small", "data-undo": each.submission, onclick: () => undo(each.submission) }, t("submissions.undo")) : ""]);
  fill("submissions", rows.length
    ? table([[t("submissions.submission")], [t("submissions.effect")], [t("document.author")], [t("document.when")], [t("documents.acts"), "acts"]], rows, { caption: t("submissions.submitted") })
    : el("p", { class: "quiet" }, t("submissions.nothing-submitted")));
};

if (document.getElementById("logs")) {
  tried(showLogs)();
  tried(showSubmissions)();
}
