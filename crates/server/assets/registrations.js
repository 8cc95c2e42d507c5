// Everything somebody hands in for, or reads: registrations with how they stand.
import { el, fill, get, t, table, tag, time } from "/assets/page.js";

const link = (organisation, registration, below = "") =>
  `/submissions/${encodeURIComponent(organisation)}/${encodeURIComponent(registration)}${below}`;

/** Pages of a list that goes on after the id of its last. */
const all = async (path) => {
  const found = [];
  for (let after = ""; found.length < 5000;) {
    const page = await get(`${path}?limit=100${after}`);
    found.push(...page);
    if (page.length < 100) break;
    after = `&after=${encodeURIComponent(page.at(-1).id)}`;
  }
  return found;
};

const show = async () => {
  const organisations = await all("/api/v1/organisations");
  const groups = [];
  for (const organisation of organisations) {
    let registrations = [];
    try {
      registrations = await all(`/api/v1/organisations/${encodeURIComponent(organisation.id)}/registrations`);
    } catch (error) {
      if (error.status !== 404 && error.status !== 403) throw error;
      continue;
    }
    const rows = await Promise.all(registrations.map(async (registration) => {
      const here = `/api/v1/organisations/${encodeURIComponent(organisation.id)}/registrations/${encodeURIComponent(registration.id)}`;
      const [{ submissions }, { logs }] = await Promise.all([get(`${here}/submissions?limit=1`), get(`${here}/summary-logs?limit=1`)]);
      const [last, log] = [submissions[0], logs[0]];
      return [
        el("a", { href: link(organisation.id, registration.id) }, registration.title || registration.id),
        registration.number,
        last ? [t("submissions.number", { n: last.submission }), " ", time(last.submitted_at)] : t("submissions.never"),
        log ? el("a", { href: link(organisation.id, registration.id, `/logs/${encodeURIComponent(log.id)}`) }, stateTag(log)) : "—",
        el("a", { class: "button plain small", href: link(organisation.id, registration.id, "/records") }, t("submissions.records")),
      ];
    }));
    groups.push(el("h2", {}, organisation.name || organisation.id), rows.length
      ? table([[t("submissions.registration")], [t("submissions.reg-number")], [t("submissions.last")], [t("submissions.newest")], [t("documents.acts"), "acts"]], rows, { caption: organisation.name })
      : el("p", { class: "quiet" }, t("submissions.no-registration")));
  }
  fill("registrations", groups.length ? groups : el("p", {}, t("submissions.none")));
};

const KINDS = { validated: "live", submitted: "good", invalid: "bad", validation_failed: "bad", superseded: "" };
export const stateTag = (log) => tag(t(`log-state.${log.state}`), KINDS[log.state] ?? "live");

if (document.getElementById("registrations")) {
  show().catch((error) => fill("registrations", el("p", { class: "bad", role: "alert" }, error.message)));
}
