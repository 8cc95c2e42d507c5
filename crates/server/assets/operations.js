// How the installation stands, looked at again every two seconds: lanes, charts, sessions, the outbox, and whether a restart is safe.
import { ask, count, el, every, fill, formDialog, get, notice, post, size, t, table, tag, time, tried, word } from "/assets/page.js";
import { draw } from "/assets/charts.js";

/* The last hour, as the service itself remembers it. */

const showCharts = (pulse) => {
  const [now, slotMs, count] = [Date.now(), pulse.slot_seconds * 1000, pulse.saves.length];
  const at = (index) => (index === count - 1 ? now : now - pulse.last_slot_seconds * 1000 - (count - 2 - index) * slotMs);
  const saves = pulse.saves.map((number, index) => [at(index), number / (index === count - 1 ? pulse.last_slot_seconds : pulse.slot_seconds)]);
  const taken = (values) => values.map((value, index) => [at(index), value]).filter(([, value]) => value !== null);
  const spanMs = pulse.slots_max * slotMs;
  draw(document.getElementById("saves-chart"), [{ name: t("operations.saves-second"), kind: "one", points: saves }], { spanMs, gapMs: slotMs * 2, label: t("operations.saves-chart"), unit: "" });
  draw(document.getElementById("latency-chart"), [
    { name: "p95", kind: "two", points: taken(pulse.p95_ms) }, { name: "p50", kind: "one", points: taken(pulse.p50_ms) },
  ], { spanMs, gapMs: slotMs * 2, label: t("operations.latency-chart"), unit: " ms" });
};

/* How things stand. */

const tile = (key, value, kind = "") => el("div", { class: `tile ${kind}`.trim(), "data-tile": key }, el("strong", {}, value), el("span", {}, t(`operations.${key}`)));
const gib = (bytes) => `${(bytes / 1073741824).toFixed(1)} GiB`;
const worry = (number) => (number ? "warn" : "");

const showTiles = (status, outbox) => {
  const waiting = outbox.targets.reduce((sum, target) => sum + target.waiting, 0);
  const dead = outbox.targets.reduce((sum, target) => sum + target.dead, 0);
  const age = (seconds) => (seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} min`);
  const room = status.disk_free_bytes === null || status.disk_free_bytes === undefined ? word("disk", status.disk) : gib(status.disk_free_bytes);
  fill("tiles",
    tile("health", status.is_ready ? t("operations.ready") : t("operations.stopping"), status.is_ready ? "good" : "warn"),
    tile("inbox", count(status.open_saves), worry(status.open_saves > 10)),
    tile("conflicts", count(status.waiting_conflicts), worry(status.waiting_conflicts)), tile("quarantined", count(status.waiting_quarantined), worry(status.waiting_quarantined)),
    tile("orphans", count(status.waiting_orphans), worry(status.waiting_orphans)),
    tile("forgotten", status.forgotten_files ? `${count(status.forgotten_files)} · ${age(status.forgotten_files_oldest_seconds)}` : "0", worry(status.forgotten_files_staying)),
    tile("waiting", dead ? `${count(waiting)} + ${count(dead)}` : count(waiting), worry(dead)),
    tile("publications", count(status.owed_publications)),
    tile("spool", status.spool_files ? `${count(status.spool_files)} · ${size(status.spool_bytes)}` : "0"),
    tile("depot", status.depot_blobs ? `${count(status.depot_blobs)} · ${size(status.depot_bytes)}` : "0", worry(status.depot_blobs)),
    tile("disk", room, status.disk === "plenty" ? "" : "warn"),
    tile("documents", count(status.documents)), tile("versions", count(status.versions)), tile("checkpoints", count(status.checkpoints)));
};

const documentLink = (id) => el("a", { href: `/document/${encodeURIComponent(id)}` }, id);

const showEngines = ({ engines }) => fill("engines", engines.length
  ? table([[t("operations.engine")], [t("operations.engine-state")], [t("operations.engine-place")], [t("operations.engine-took"), "number"], [t("operations.engine-says")]],
    engines.map((engine) => [word("engine", engine.name), tag(engine.is_well ? t("operations.engine-well") : t("operations.engine-ill"), engine.is_well ? "good" : "bad"),
      el("code", {}, engine.place), `${count(engine.took_ms)} ms`, engine.detail]), { caption: t("operations.engines") })
  : el("p", { class: "quiet" }, t("frame.loading")));

const INSTANCE_KINDS = { ready: "good", stopping: "warn", silent: "bad" };

/** Where there is only one, there is nothing to tell apart. */
const showInstances = (instances) => {
  document.getElementById("instances-card").hidden = instances.length < 2;
  fill("instances", table([[t("operations.instance")], [t("submissions.state")], [t("operations.instance-version")], [t("operations.since")], [t("operations.instance-documents"), "number"], [t("operations.disk"), "number"], [t("operations.instance-heard"), "number"]],
    instances.map((each) => [[el("code", {}, each.name), each.is_this ? [" ", tag(t("operations.instance-this"), "live")] : null], tag(word("instance-state", each.state), INSTANCE_KINDS[each.state]), each.version, time(each.started_at),
      count(each.documents), each.disk_free_bytes === null ? "—" : gib(each.disk_free_bytes), t("operations.instance-heard-ago", { n: each.heard_seconds_ago })]), { caption: t("operations.instances") }));
};

/** Those who are in a document whose saves are on their way: they wait for them. */
const waitingFor = (lane, sessions) => sessions.filter((session) => session.document === lane.document).flatMap((session) => session.people.map((person) => [tag(person.name, "live"), " "]));

const showLanes = (lanes, sessions) => fill("lanes", lanes.lanes.length
  ? table([[t("documents.document")], [t("operations.line")], [t("operations.who-waits")], [t("operations.lane-waiting"), "number"], [t("operations.preparing"), "number"], [t("operations.finishing"), "number"], [t("operations.oldest"), "number"]],
    lanes.lanes.slice(0, 50).map((lane) => [documentLink(lane.document), word("line", lane.line), waitingFor(lane, sessions), count(lane.waiting), count(lane.preparing), count(lane.finishing), `${(lane.oldest_ms / 1000).toFixed(1)} s`]), { caption: t("operations.lanes") })
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

/* What the doctor says. */

const HOP_KINDS = { ok: "good", warn: "warn", fail: "bad", skipped: "" };
const hopName = (name) => word("hop", name.toLowerCase().replace(/[^a-z]+/g, "-"));

const showExamination = ({ is_running: isRunning, is_healthy: isHealthy, begun_at: begunAt, hops }) => {
  document.getElementById("examine").disabled = isRunning;
  const broken = hops.filter((hop) => hop.health === "fail");
  const [state, words] = !begunAt ? ["unknown", t("operations.examine-words")]
    : isRunning ? ["wait", t("operations.examining")]
      : isHealthy ? ["yes", t("operations.examined-well")] : ["no", t("operations.examined-broken", { what: broken.map((hop) => hopName(hop.name)).join(", ") })];
  const section = document.getElementById("examination");
  section.dataset.state = state;
  document.getElementById("examination-words").replaceChildren(words, ...(begunAt && !isRunning ? [" ", time(begunAt)] : []));
  fill("hops", hops.length ? table([[t("operations.hop")], [t("submissions.state")], [t("operations.hop-seen")]],
    hops.map((hop) => [hopName(hop.name), tag(word("hop-health", hop.health), HOP_KINDS[hop.health]), [hop.detail, hop.next ? el("p", { class: "next" }, hop.next) : null]]), { caption: t("operations.examination") }) : null);
};

document.getElementById("examine").addEventListener("click", tried(async () => showExamination(await post("/api/v1/operations/examination"))));

document.querySelector("main").addEventListener("click", tried(async (event) => {
  const button = event.target.closest("[data-dismiss-orphan]");
  if (!button) return;
  await ask("POST", `/api/v1/operations/orphans/${button.dataset.dismissOrphan}/dismiss`);
  button.closest("tr").remove();
}));

const isInUse = () => Boolean(document.querySelector("main table button:focus"));

const look = async () => {
  const below = ["status", "lanes", "sessions?limit=200", "drain", "webhooks", "submissions?limit=50", "pulse", "examination", "instances"];
  const [status, lanes, found, drain, outbox, submissions, pulse, examination, instances] = await Promise.all(below.map((name) => get(`/api/v1/operations/${name}`)));
  const sessions = found.sessions ?? found;
  showTiles(status, outbox);
  showVerdict(status, lanes, sessions, drain);
  showEngines(status);
  showInstances(instances);
  showLanes(lanes, sessions);
  showSessions(sessions);
  showExamination(examination);
  if (!isInUse()) {
    showOutbox(outbox);
    showStuck(submissions);
  }
  showCharts(pulse);
};

tried(look)();
every(2000, look);
