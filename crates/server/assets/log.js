// One summary log, from being read to its outcome: problems with their cells, the preview with old and new values, confirm, receipt.
import { count, el, field, fill, formDialog, get, post, t, table, tag, time, tried, word } from "/assets/page.js";

const { organisation, registration, log: id, maySubmit } = document.body.dataset;
const scope = `/submissions/${encodeURIComponent(organisation)}/${encodeURIComponent(registration)}`;
const above = `/api/v1/organisations/${encodeURIComponent(organisation)}/registrations/${encodeURIComponent(registration)}`;
const api = `${above}/summary-logs/${encodeURIComponent(id)}`;
const STEPS = [["preprocessing", "log.step-read"], ["validating", "log.step-check"], ["validated", "log.step-look"], ["submitted", "log.step-done"]];
const AT = { preprocessing: 0, validating: 1, invalid: 1, validation_failed: 1, validated: 2, submitting: 3, submitted: 4, superseded: 2 };
let shownState = "";

const steps = (log) => el("ol", { class: "steps" }, STEPS.map(([, words], index) => {
  const state = index < AT[log.state] ? "done" : index === AT[log.state] ? "now" : "later";
  return el("li", { class: state, "aria-current": state === "now" ? "step" : null }, t(words));
}));

const tiles = (numbers) => el("div", { class: "tiles" }, ["created", "updated", "removed", "unchanged"].map((name) =>
  el("div", { class: `tile ${name}` }, el("strong", { "data-count": name }, count(numbers[name])), el("span", {}, t(`log.${name}`)))));

const acts = (...children) => el("div", { class: "acts start" }, children);
const marked = () => el("a", { class: "button plain", href: `${api}/marked`, download: true }, t("log.marked"));
const again = () => el("a", { class: "button", href: scope }, t("log.again"));

/* Confirming. */

const confirm = async (despite = "") => {
  try {
    await post(`${api}/submit${despite}`);
  } catch (error) {
    if (error.code === "SUB_007") {
      formDialog(t("log.shifted-title"), [el("p", {}, t("log.shifted-words"))], {
        submit: t("log.shifted-confirm"), danger: true, act: () => post(`${api}/submit?despite=ROWS_SEEM_SHIFTED`).then(follow),
      });
      return;
    }
    const words = { SUB_002: "log.newer-words", SUB_003: "log.stale-words" }[error.code];
    await follow();
    throw words ? new Error(t(words)) : error;
  }
  await follow();
};

const receipt = tried(async () => {
  const found = await get(`${api}/receipt`);
  const href = URL.createObjectURL(new Blob([JSON.stringify(found, null, 2)], { type: "application/json" }));
  el("a", { href, download: `receipt-${id}.json` }).click();
});

/* How it stands. */

const parts = {
  preprocessing: (log) => [el("p", {}, t("log.reading", { rows: count(log.rows) })), el("progress", { "aria-label": t("log.step-read") })],
  validating: (log) => [el("p", {}, t("log.reading", { rows: count(log.rows) })), el("progress", { "aria-label": t("log.step-check") })],
  invalid: (log) => [el("p", { class: "verdict bad" }, t("log.invalid", { n: count(log.problems.fatal) })), el("p", {}, t("log.invalid-words")), acts(marked(), maySubmit === "true" ? again() : null)],
  validation_failed: (log) => [el("p", { class: "verdict bad" }, t("log.failed")), el("p", {}, log.reason ?? ""), acts(maySubmit === "true" ? again() : null)],
  validated: (log) => {
    const button = el("button", { class: "button", id: "confirm" }, t("log.confirm"));
    button.addEventListener("click", async () => {
      button.disabled = true;
      await tried(confirm)();
      button.disabled = false;
    });
    const { created, updated, removed } = log.previewStats;
    return [
      log.is_stale ? el("p", { class: "verdict warn", id: "stale" }, t("log.stale-words")) : null,
      el("p", { class: "verdict" }, created + updated + removed ? t("log.preview") : t("log.preview-nothing")),
      tiles(log.previewStats),
      log.problems.error + log.problems.warning ? el("p", {}, t("log.but", { errors: count(log.problems.error), warnings: count(log.problems.warning) })) : null,
      acts(maySubmit === "true" ? button : null, log.problems.error + log.problems.warning ? marked() : null),
    ];
  },
  submitting: (log) => {
    const all = log.previewStats ? log.previewStats.created + log.previewStats.updated + log.previewStats.removed : 0;
    return [el("p", {}, t("log.writing", { n: count(log.applied), all: count(all) })), el("progress", { max: Math.max(1, all), value: log.applied, "aria-label": t("log.step-done") })];
  },
  submitted: (log) => [
    el("p", { class: "verdict good", id: "outcome" }, t("log.submitted", { n: log.submission, who: log.submitted_by ?? "" }), " ", time(log.submitted_at)),
    log.previewStats ? tiles(log.previewStats) : null,
    acts(el("button", { class: "button", id: "receipt", onclick: receipt }, t("log.receipt")),
      el("a", { class: "button plain", href: `${scope}/records` }, t("submissions.records")), log.problems.error + log.problems.warning ? marked() : null),
  ],
  superseded: (log) => [
    el("p", { class: "verdict warn", id: "superseded" }, t("log.superseded")), el("p", {}, t("log.newer-words")),
    log.superseded_by ? acts(el("a", { class: "button", href: `${scope}/logs/${encodeURIComponent(log.superseded_by)}` }, t("log.to-newer"))) : null,
  ],
};

const facts = (log) => el("p", { class: "facts" },
  el("span", {}, t("log.brought", { who: log.uploaded_by }), " ", time(log.uploaded_at)),
  el("span", {}, `${log.template} ${log.template_version}`),
  log.document ? el("a", { href: `/document/${encodeURIComponent(log.document[0])}` }, t("log.of-document", { version: log.document[1] })) : null,
  log.file_name ? el("a", { href: `${api}/file`, download: true }, t("log.file")) : null);

const showState = (log) => {
  const section = fill("state", steps(log), parts[log.state](log), facts(log));
  section.dataset.state = log.state;
  if (log.state === shownState) return;
  shownState = log.state;
  if (["invalid", "validated", "submitted"].includes(log.state)) {
    tried(showProblems)(log);
    if (log.state !== "invalid") tried(showChanges)();
  }
};

/* Problems, grouped by what is wrong. */

const asDocument = () => {
  const place = el("select", { name: "place", required: true });
  formDialog(t("log.as-document"), [el("p", { class: "quiet" }, t("log.as-document-words")), field(t("documents.project"), place)], {
    submit: t("log.as-document"),
    act: async (data) => {
      const [company, project] = String(data.get("place")).split("\n");
      const made = await post(`${api}/open-as-document`, { company, project });
      location.href = `/edit/${encodeURIComponent(made.id)}`;
    },
  });
  tried(async () => {
    for (const company of await get("/api/v1/companies")) {
      for (const project of await get(`/api/v1/companies/${encodeURIComponent(company.id)}/projects`)) {
        place.append(el("option", { value: `${company.id}\n${project.id}` }, `${company.name} / ${project.name}`));
      }
    }
  })();
};

const problemRow = (problem) => el("li", { class: "problem" },
  problem.cell
    ? el("a", { class: "cell", href: `${api}/marked`, download: true, title: t("log.cell-words") }, `${problem.sheet ?? ""}!${problem.cell}`)
    : el("span", { class: "cell" }, problem.sheet ?? t("log.whole-file")),
  " ", problem.row_id ? tag(t("log.row", { id: problem.row_id })) : null,
  el("p", {}, problem.sentence, problem.value ? [" ", el("code", {}, problem.value)] : null));

/** Codes are the template's own: `TONNES_MISSING` reads as `Tonnes missing`. */
const readable = (code) => {
  const words = code.replaceAll("_", " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
};

const showProblems = async () => {
  const section = document.getElementById("problems");
  const first = await get(`${api}/problems?limit=500`);
  section.hidden = first.problems.length === 0;
  if (section.hidden) return;
  const groups = first.counts.map((group) => {
    const of = first.problems.filter((problem) => problem.code === group.code && problem.severity === group.severity);
    return el("details", { class: "group", open: first.counts.length <= 4 },
      el("summary", {}, tag(word("severity", group.severity), group.severity === "warning" ? "warn" : "bad"), " ",
        el("strong", { title: group.code }, readable(group.code)), ` (${count(group.count)})`),
      el("ul", { class: "problems" }, of.map(problemRow)),
      of.length < group.count ? el("p", { class: "quiet" }, t("log.not-all", { shown: count(of.length), all: count(group.count) })) : null);
  });
  fill(section, el("div", { class: "heading" }, el("h2", {}, t("log.problems")),
    el("div", { class: "acts" }, el("button", { class: "button plain small", onclick: asDocument }, t("log.as-document")))), groups);
};

/* What changes, cell by cell. */

const changeCells = (change) => (change.cells.length
  ? el("ul", { class: "cells" }, change.cells.map((cell) => el("li", {}, el("span", { class: "quiet" }, cell.column), " ",
    cell.old === null ? null : el("del", {}, cell.old), cell.old !== null && cell.new !== null ? " → " : null, cell.new === null ? null : el("ins", {}, cell.new))))
  : "");

const showChanges = async () => {
  const section = document.getElementById("changes");
  section.hidden = false;
  const list = el("div");
  const which = el("select", { name: "change" }, el("option", { value: "" }, t("log.all-changes")),
    ["created", "updated", "removed", "unchanged"].map((name) => el("option", { value: name }, t(`log.${name}`))));
  const key = el("input", { name: "key", maxlength: "200", type: "search" });
  const load = async (after = "") => {
    const wish = [which.value ? `&change=${which.value}` : "", key.value ? `&key_prefix=${encodeURIComponent(key.value)}` : ""].join("");
    const { changes } = await get(`${api}/changes?limit=100${wish}${after}`);
    const rows = changes.map((change) => ({
      attributes: { "data-change": change.change },
      cells: [el("a", { href: `${scope}/records/${encodeURIComponent(change.kind)}/${encodeURIComponent(change.key)}` }, `${change.kind} ${change.key}`),
        tag(t(`log.${change.change}`), change.change), changeCells(change),
        [change.outcome_after ?? "", change.reason ? el("div", { class: "quiet" }, change.reason) : null],
        change.sheet ? `${change.sheet}, ${t("log.row", { id: change.row })}` : "—"],
    }));
    if (!after) list.replaceChildren();
    list.querySelector("#more")?.remove();
    list.append(rows.length || after
      ? table([[t("records.record")], [t("log.change")], [t("log.cells")], [t("log.counts")], [t("log.where")]], rows, { caption: t("log.changes") })
      : el("p", { class: "quiet" }, t("log.no-changes")));
    if (changes.length === 100) {
      const last = changes.at(-1);
      list.append(el("button", {
        class: "button plain", id: "more",
        onclick: tried(() => load(`&after_kind=${encodeURIComponent(last.kind)}&after_key=${encodeURIComponent(last.key)}`)),
      }, t("log.more")));
    }
  };
  which.addEventListener("change", tried(() => load()));
  key.addEventListener("change", tried(() => load()));
  fill(section, el("h2", {}, t("log.changes")), el("div", { class: "filters" }, field(t("log.show"), which), field(t("records.key"), key)), list);
  await load();
};

/* Following it. */

let stream = null;
const SETTLED = ["validated", "invalid", "submitted", "superseded", "validation_failed"];

const follow = async () => {
  const log = await get(api);
  showState(log);
  stream?.close();
  if (SETTLED.includes(log.state)) return;
  stream = new EventSource(`${api}/events`);
  stream.addEventListener("log", (event) => {
    const now = JSON.parse(event.data);
    showState(now);
    if (SETTLED.includes(now.state)) stream.close();
  });
};
tried(follow)();
