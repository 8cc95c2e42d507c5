// How the state of an upload is shown, wherever it is.
import { t, tag } from "/assets/page.js";

const KINDS = { validated: "live", submitted: "good", invalid: "bad", validation_failed: "bad", superseded: "" };
export const stateTag = (log) => tag(t(`log-state.${log.state}`), KINDS[log.state] ?? "live");
