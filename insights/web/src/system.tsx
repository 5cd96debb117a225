// Tocsin itself: which version serves, and whom it knows.
import { ask, type Status } from "./api";
import { Asked, Moment, Panel } from "./parts";
import { live } from "./stream";

export function SystemScreen() {
  return (
    <>
      <h1>System</h1>
      <Asked<Status> name="status" load={() => ask("/status")}>{(answer) => (
        <Panel title="This process">
          <dl class="facts">
            <div class="fact"><dt>Version</dt><dd>{answer.version}</dd></div>
            <div class="fact"><dt>Cluster</dt><dd>{answer.cluster}</dd></div>
            <div class="fact"><dt>Since</dt><dd><Moment at={answer.since} /></dd></div>
            <div class="fact"><dt>You</dt><dd>{answer.who.name || "nobody"}: {answer.who.role}</dd></div>
            <div class="fact"><dt>Live</dt><dd>{live.value ? "yes" : "no"}</dd></div>
          </dl>
        </Panel>)}</Asked>
      <p><a href="/assets/LICENSES.txt">Licences of what this page uses</a></p>
    </>
  );
}
