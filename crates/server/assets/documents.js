// The list of documents: bring in by drag and drop, make new ones, rename, share, delete and bring back.
import { ask, el, field, formDialog, notice, post, send, t, tried } from "/assets/page.js";
import { share } from "/assets/share.js";

const { company, project } = document.body.dataset;
const projects = () => [...document.getElementById("projects").content.querySelectorAll("option")];
const path = (id) => `/api/v1/documents/${encodeURIComponent(id)}`;

/* Changes of one document; the page of a document uses them too. */

export const rename = (id, name, done) => {
  const dot = name.lastIndexOf(".");
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  const input = el("input", { name: "name", required: true, maxlength: "200", value: stem, autocomplete: "off" });
  formDialog(t("documents.rename"), [field(t("documents.new-name", { ending }), input)], {
    submit: t("documents.rename"),
    act: async (data) => {
      const wanted = String(data.get("name")).trim();
      await post(`${path(id)}/rename`, { name: wanted.endsWith(ending) ? wanted : `${wanted}${ending}` });
      done();
    },
  });
  input.select();
};

export const remove = (id, name, done) => formDialog(t("documents.delete-title"), [el("p", {}, t("documents.delete-words", { name }))], {
  submit: t("documents.delete"),
  danger: true,
  act: async () => {
    await ask("DELETE", path(id));
    done();
  },
});

export const undelete = tried(async (id, done) => {
  await post(`${path(id)}/undelete`);
  done();
});

/* Bringing in. */

const into = (chosen) => `/api/v1/companies/${encodeURIComponent(company)}/projects/${encodeURIComponent(chosen)}/documents`;

/** The project that is looked at, the only one there is, or one that is asked for. */
const whichProject = (act) => {
  const all = projects();
  if (project) return act(project);
  if (all.length === 1) return act(all[0].value);
  if (all.length === 0) return notice(t("documents.no-project"), "bad");
  const select = el("select", { name: "project" }, all.map((option) => option.cloneNode(true)));
  return formDialog(t("documents.into"), [field(t("documents.project"), select)], {
    submit: t("documents.upload"),
    act: async (data) => { act(String(data.get("project"))); },
  });
};

const upload = async (file, chosen) => {
  const bar = el("progress", { max: "1", value: "0", "aria-label": file.name });
  const words = el("span", { class: "quiet" }, t("documents.sending"));
  const line = el("li", {}, el("strong", {}, file.name), bar, words);
  document.getElementById("uploads").append(line);
  try {
    const made = await send(`${into(chosen)}?name=${encodeURIComponent(file.name)}`, file, (share) => {
      bar.value = share;
      if (share === 1) words.textContent = t("documents.checking");
    });
    bar.remove();
    words.replaceChildren(`${t("documents.stored")} `, el("a", { href: `/document/${encodeURIComponent(made.id)}` }, t("documents.open")));
    line.classList.add("done");
    setTimeout(() => line.remove(), 20000);
  } catch (error) {
    bar.remove();
    line.classList.add("failed");
    words.replaceChildren(error.message, " ", el("button", { class: "button plain small", onclick: () => line.remove() }, t("frame.close")));
    words.className = "bad";
    words.setAttribute("role", "alert");
  }
};

/** Two at once: the machine and the line have other things to do as well. */
const uploadAll = (files) => whichProject((chosen) => {
  const waiting = [...files];
  const next = async () => {
    for (let file = waiting.shift(); file; file = waiting.shift()) await upload(file, chosen);
  };
  next();
  next();
});

const input = document.getElementById("files");
if (input) {
  document.getElementById("upload").addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    if (input.files.length) uploadAll(input.files);
    input.value = "";
  });
  let depth = 0;
  const hasFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (isOver) => document.body.classList.toggle("dropping", isOver);
  addEventListener("dragenter", (event) => { if (hasFiles(event)) { depth += 1; over(true); } });
  addEventListener("dragleave", (event) => { if (hasFiles(event)) { depth -= 1; over(depth > 0); } });
  addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    over(false);
    uploadAll(event.dataTransfer.files);
  });
}

/* New ones. */

const KINDS = ["docx", "xlsx", "pptx"];

const create = () => {
  const kinds = KINDS.map((kind, index) => el("label", { class: "kind" },
    el("input", { type: "radio", name: "kind", value: kind, checked: index === 0 }),
    el("span", { class: `file ${kind}`, "aria-hidden": "true" }), t(`documents.kind-${kind}`)));
  const select = el("select", { name: "project" }, projects().map((option) => option.cloneNode(true)));
  const name = el("input", { name: "name", required: true, maxlength: "200", autocomplete: "off", value: t("documents.untitled") });
  formDialog(t("documents.new"), [
    el("fieldset", { class: "kinds" }, el("legend", {}, t("documents.kind")), kinds),
    field(t("documents.name"), name),
    field(t("documents.project"), select),
  ], {
    submit: t("documents.create"),
    act: async (data) => {
      const made = await post("/new-document", { company, project: data.get("project"), name: data.get("name"), kind: data.get("kind") });
      notice(t("documents.made")).append(" ", el("a", { href: `/edit/${encodeURIComponent(made.id)}`, target: "_blank", rel: "opener" }, t("documents.edit")));
    },
  });
  name.select();
};
document.getElementById("new")?.addEventListener("click", create);

/* What the buttons of a row do. */

const gone = (words) => () => {
  notice(words);
};

document.querySelector("main").addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  const row = button?.closest("tr[data-document]");
  if (!row) return;
  const { document: id, name } = row.dataset;
  if (button.dataset.act === "share") share(id, name);
  if (button.dataset.act === "rename") rename(id, name, gone(t("documents.renamed")));
  if (button.dataset.act === "delete") remove(id, name, () => { row.remove(); notice(t("documents.deleted")); });
  if (button.dataset.act === "undelete") undelete(id, () => { row.remove(); notice(t("documents.undeleted")); });
});

/* Choosing a company or project needs no further click. */
for (const select of document.querySelectorAll(".filters select")) {
  select.addEventListener("change", () => {
    if (select.name === "company") select.form.elements.project.value = "";
    select.form.requestSubmit();
  });
}

