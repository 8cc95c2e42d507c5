// How the installation stands, looked at again every two seconds: lanes, charts, sessions, the outbox, and whether a restart is safe.
import { ask, count, el, every, fill, formDialog, get, notice, post, t, table, tag, time, tried, word } from "/assets/page.js";
import { draw } from "/assets/charts.js";

const SPAN_MS = 10 * 60 * 1000;
const STORED = ["version", "checkpoint", "filed", "conflict", "quarantine"];

/* Numbers of the service, as it counts them since its start. */

const metrics = async () => {
  const response = await fetch("/metrics");
  if (!response.ok) throw new Error(String(response.status));
  const found = { saves: 0, buckets: new Map() };
  for (const line of (await response.text()).split("\n")) {
    const [, name, labels = "", value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === "saveguard_saves_total" && STORED.includes(/outcome="([^"]*)"/.exec(labels)?.[1])) found.saves += Number(value);
    if (name === "saveguard_callback_answer_seconds_bucket") {
      const bound = /le="([^"]*)"/.exec(labels)?.[1];
      const seconds = bound === "+Inf" ? Infinity : Number(bound);
      found.buckets.set(seconds, (found.buckets.get(seconds) ?? 0) + Number(value));
    }
  }
  return found;
};

/** The bound below which a share of what came since `before` was answered, in ms; null if nothing came. */
const quantile = (share, before, after) => {
  const bounds = [...after.buckets.keys()].sort((one, other) => one - other);
  const since = (bound) => (after.buckets.get(bound) ?? 0) - (before.buckets.get(bound) ?? 0);
  const all = bounds.length ? since(bounds.at(-1)) : 0;
  if (all <= 0) return null;
  const found = bounds.find((bound) => since(bound) >= all * share);
  return (Number.isFinite(found) ? found : bounds.at(-2)) * 1000;
};

let last = null;
const saves = [];
const [p50, p95] = [[], []];

const showCharts = async () => {
  const [now, at] = [await metrics(), Date.now()];
  if (last) {
    saves.push([at, Math.max(0, now.saves - last.saves) / ((at - last.at) / 1000)]);
    const [half, most] = [quantile(0.5, last, now), quantile(0.95, last, now)];
    if (half !== null) {
      p50.push([at, half]);
      p95.push([at, most]);
    }
    for (const points of [saves, p50, p95]) while (points.length && at - points[0][0] > SPAN_MS) points.shift();
  }
  last = { ...now, at };
  draw(document.getElementById("saves-chart"), [{ name: t("operations.saves-second"), kind: "one", points: saves }], { spanMs: SPAN_MS, label: t("operations.saves-chart"), unit: "" });
  draw(document.getElementById("latency-chart"), [
    { name: "p95", kind: "two", points: p95 }, { name: "p50", kind: "one", points: p50 },
  ], { spanMs: SPAN_MS, label: t("operations.latency-chart"), unit: " ms" });
};

/* How things stand. */

const tile = (key, value, kind = "") => el("div", { class: `tile ${kind}`.trim(), "data-tile": key }, el("strong", {}, value), el("span", {}, t(`operations.${key}`)));
const worry = (number) => (number ? "warn" : "");

const showTiles = (status, outbox) => {
  const waiting = outbox.targets.reduce((sum, target) => sum + target.waiting, 0);
  const dead = outbox.targets.reduce((sum, target) => sum + target.dead, 0);
  fill("tiles",
    tile("health", status.is_ready ? t("operations.ready") : t("operations.stopping"), status.is_ready ? "good" : "warn"),
    tile("documents", count(status.documents)), tile("versions", count(status.versions)), tile("checkpoints", count(status.checkpoints)),
    tile("inbox", count(status.open_saves), worry(status.open_saves > 10)),
    tile("conflicts", count(status.conflicts), worry(status.conflicts)), tile("quarantined", count(status.quarantined), worry(status.quarantined)),
    tile("orphans", count(status.orphans), worry(status.orphans)),
    tile("forgotten", count(status.forgotten_files), worry(status.forgotten_files_staying)),
    tile("waiting", dead ? `${count(waiting)} + ${count(dead)}` : count(waiting), worry(dead)),
    tile("publications", count(status.owed_publications)),
    tile("disk", status.disk_free_bytes === null || status.disk_free_bytes === undefined ? word("disk", status.disk) : `${(status.disk_free_bytes / 1073741824).toFixed(1)} GiB`, status.disk === "plenty" ? "" : "warn"));
};

const documentLink = (id) => el("a", { href: `/document/${encodeURIComponent(id)}` }, id);

const showLanes = (lanes) => fill("lanes", lanes.lanes.length
  ? table([[t("documents.document")], [t("operations.line")], [t("operations.lane-waiting"), "number"], [t("operations.preparing"), "number"], [t("operations.finishing"), "number"], [t("operations.oldest"), "number"]],
    lanes.lanes.slice(0, 50).map((lane) => [documentLink(lane.document), word("line", lane.line), count(lane.waiting), count(lane.preparing), count(lane.finishing), `${(lane.oldest_ms / 1000).toFixed(1)} s`]), { caption: t("operations.lanes") })
  : el("p", { class: "quiet" }, t("operations.no-lanes")));

const showSessions = (sessions) => fill("sessions", sessions.length
  ? table([[t("documents.document")], [t("operations.people")], [t("submissions.state")], [t("operations.unsaved")], [t("operations.since")]],
    sessions.slice(0, 100).map((session) => [documentLink(session.document), session.people.map((person) => [tag(person.name, "live"), " "]), word("session-state", session.state),
      tag(word("unsaved", session.unsaved), session.unsaved === "no" ? "good" : "warn"), time(session.issued_at)]), { caption: t("operations.sessions") })
  : el("p", { class: "quiet" }, t("operations.no-sessions")));

const showOutbox = (outbox) => {
  const targets = outbox.targets.map((target) => [target.name, target.events.join(", "), count(target.waiting), count(target.delivered), count(target.dead), target.oldest_at ? time(target.oldest_at) : "—"]);
  const dead = outbox.dead.map((each) => [each.target, each.event, documentLink(each.document), String(each.attempts), each.last_error ?? "",
    el("button", { class: "button plain small", onclick: tried(async () => { await ask("POST", `/api/v1/operations/webhooks/${each.number}/retry`); notice(t("operations.retried")); }) }, t("operations.retry"))]);
  fill("outbox",
    targets.length ? table([[t("operations.target")], [t("operations.events")], [t("operations.lane-waiting"), "number"], [t("operations.delivered"), "number"], [t("operations.dead"), "number"], [t("operations.oldest")]], targets, { caption: t("operations.outbox") })
      : el("p", { class: "quiet" }, t("operations.no-targets")),
    dead.length ? table([[t("operations.target")], [t("operations.events")], [t("documents.document")], [t("operations.attempts"), "number"], [t("operations.error")], [t("documents.acts"), "acts"]], dead, { caption: t("operations.dead") }) : null);
};

const submissionAct = (log, act) => el("button", {
  class: "button plain small",
  onclick: tried(async () => { await ask("POST", `/api/v1/operations/submissions/${encodeURIComponent(log)}/${act}`); notice(t(`operations.${act}-done`)); }),
}, t(`operations.${act}`));

const showStuck = ({ submissions }) => fill("stuck", submissions.length
  ? table([[t("submissions.registration")], [t("submissions.state")], [t("document.author")], [t("document.when")], [t("operations.attempts"), "number"], [t("document.why")], [t("documents.acts"), "acts"]],
    submissions.map((each) => [el("a", { href: `/submissions/${encodeURIComponent(each.organisation)}/${encodeURIComponent(each.registration)}/logs/${encodeURIComponent(each.log)}` }, `${each.organisation} / ${each.registration}`),
      word("log-state", each.state), each.uploaded_by, time(each.uploaded_at), String(each.attempts), each.reason ?? "", [submissionAct(each.log, "retry"), " ", submissionAct(each.log, "release")]]), { caption: t("operations.submissions") })
  : el("p", { class: "quiet" }, t("operations.no-stuck")));

/* Whether a restart is safe. */

const showVerdict = (status, lanes, sessions, drain) => {
  const unsaved = sessions.filter((session) => session.unsaved !== "no");
  const verdict = document.getElementById("verdict");
  const button = document.getElementById("drain");
  const [state, words] = drain.is_running ? ["wait", t("operations.draining", { safe: drain.safe, all: drain.sessions })]
    : !lanes.is_empty || status.open_saves ? ["wait", t("operations.saves-running", { n: status.open_saves || lanes.count })]
      : unsaved.length ? ["no", t("operations.people-typing", { n: unsaved.length })]
        : ["yes", t("operations.safe")];
  verdict.dataset.state = state;
  document.getElementById("verdict-words").textContent = words;
  button.disabled = drain.is_running;
  const ended = !drain.is_running && drain.begun_at
    ? el("p", { class: "quiet", id: "drained" }, drain.is_safe ? t("operations.drained") : t("operations.not-drained", { n: drain.at_risk }), " ", time(drain.begun_at)) : null;
  fill("at-risk", ended, drain.left?.length ? el("ul", {}, drain.left.map((each) => el("li", {}, documentLink(each.document), ` ${word("risk", each.why)}`))) : null,
    drain.trouble ? el("p", { class: "bad" }, drain.trouble) : null);
};

document.getElementById("drain").addEventListener("click", () => formDialog(t("operations.drain"), [el("p", {}, t("operations.drain-words"))], {
  submit: t("operations.drain"),
  act: async () => {
    await post("/api/v1/operations/drain", { seconds: 60 });
    await look();
  },
}));

document.querySelector("main").addEventListener("click", tried(async (event) => {
  const button = event.target.closest("[data-dismiss-orphan]");
  if (!button) return;
  await ask("POST", `/api/v1/operations/orphans/${button.dataset.dismissOrphan}/dismiss`);
  button.closest("tr").remove();
}));

const isInUse = () => Boolean(document.querySelector("main table button:focus"));

const look = async () => {
  const [status, lanes, found, drain, outbox, submissions] = await Promise.all([
    get("/api/v1/operations/status"), get("/api/v1/operations/lanes"), get("/api/v1/operations/sessions?limit=200"),
    get("/api/v1/operations/drain"), get("/api/v1/operations/webhooks"), get("/api/v1/operations/submissions?limit=50")]);
  const sessions = found.sessions ?? found;
  showTiles(status, outbox);
  showVerdict(status, lanes, sessions, drain);
  showLanes(lanes);
  showSessions(sessions);
  if (!isInUse()) {
    showOutbox(outbox);
    showStuck(submissions);
  }
  await showCharts();
};

tried(look)();
every(2000, look);
