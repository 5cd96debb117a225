// The frame, and which screen an address names.
import { render } from "preact";
import { sign_in } from "./api";
import { Copies } from "./copies";
import { IssueScreen } from "./issue";
import { IssuesScreen } from "./issues";
import { Keys } from "./keys";
import { is_dark, theme, turn_theme, turn_zone, zone } from "./look";
import { Later } from "./later";
import { LiveSign } from "./live_sign";
import { Link } from "./parts";
import { place } from "./place";
import { HistoryScreen, RunScreen } from "./run";
import { RulesScreen } from "./rules";
import { RunsScreen } from "./runs";
import { StoreNotice } from "./store_notice";
import { follow, refresh } from "./stream";
import { OnlyNow, PastRuns, ThenBanner } from "./then";
import { moment } from "./past";

// Screens of what the API only tells as it is now.
const only_now = (room: string, second: string | undefined) =>
  ["system", "compare"].includes(room) || (room === "runs" && second !== undefined && !["history", "nodes"].includes(second));

function Screen() {
  const parts = place.value.path.split("/").filter(Boolean).map(decodeURIComponent);
  const [room, first, second] = parts;
  if (!room) return moment.value ? <PastRuns key={moment.value} /> : <RunsScreen />;
  if (moment.value && only_now(room, second)) return <><h1>{second ?? room}</h1><OnlyNow what="This screen is"> </OnlyNow></>;
  if (room === "system") return <Later show={(all) => <all.SystemScreen />} />;
  if (room === "fleet") return <Later show={(all) => first ? <all.FleetNodeScreen name={first} /> : <all.FleetScreen />} />;
  if (room === "compare") return <Later show={(all) => <all.CompareScreen />} />;
  if (room === "issues" && !first) return <IssuesScreen />;
  if (room === "issues" && first) return <IssueScreen issue_key={first} episode={second ?? "newest"} />;
  if (room === "runs" && first && second === "tensors") return <Later show={(all) => <all.TensorsScreen uid={first} />} />;
  if (room === "runs" && first && second === "rules") return <RulesScreen uid={first} />;
  if (room === "runs" && first && second === "nodes") return <Later show={(all) => <all.NodesScreen uid={first} />} />;
  if (room === "runs" && first && second === "timeline") return <Later show={(all) => <all.TimelineScreen uid={first} />} />;
  if (room === "runs" && first && second === "ranks") return <Later show={(all) => <all.RanksScreen uid={first} />} />;
  if (room === "runs" && first) return second === "history" ? <HistoryScreen uid={first} /> : <RunScreen uid={first} />;
  return <p>There is no such page. <Link to="/">Runs</Link></p>;
}

function App() {
  return (
    <>
      <a class="skip" href="#main">To the content</a>
      <nav class="bar" aria-label="main"><b>tocsin</b><Link to="/">Runs</Link><Link to="/issues">Issues</Link><Link to="/fleet">Fleet</Link><Link to="/system">System</Link>
        <LiveSign />
        <button type="button" class="quiet" aria-label="refresh" title="Ask the server for everything on this screen again" onClick={refresh}>↻</button>
        <button type="button" class="quiet" title={`times are ${zone.value}`} onClick={turn_zone}>{zone.value === "UTC" ? "UTC" : "Local"}</button>
        <button type="button" class="quiet" aria-label={is_dark() && theme.value !== "light" ? "light theme" : "dark theme"} onClick={turn_theme}>◐</button>
        <Keys /></nav>
      <main id="main"><StoreNotice /><ThenBanner /><Screen key={moment.value ?? "now"} /><Copies /></main>
    </>
  );
}

// A token in the address (/#token=…) signs in, and is taken away at once.
async function take_token(): Promise<void> {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  await sign_in(decodeURIComponent(token)).catch(() => undefined);
}

void take_token().then(() => {
  follow();
  render(<App />, document.getElementById("app")!);
});
