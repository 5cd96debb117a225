// Router: its parts joined.
#include <utility>

#include "routing/flush/teller.h"
#include "routing/restart.h"
#include "routing/routing.h"
#include "routing/schedule.h"
#include "routing/suppress/controls.h"
#include "routing/suppress/inhibition.h"
#include "routing/suppress/route_times.h"
#include "routing/suppress/silence_notices.h"
#include "routing/suppress/silence_watch.h"
#include "routing/suppress/silences.h"
#include "routing/tables/intake.h"
#include "routing/tables/tables.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

using core::Issue;
using core::Result;
using core::Status;
using core::WallTime;

namespace {

std::vector<const Suppressor*> all_suppressors(const RouterOptions& options,
                                               const Inhibition& inhibition,
                                               const Controls& controls) {
  std::vector<const Suppressor*> out;
  for (const auto& one : options.suppressors) out.push_back(one.get());
  out.push_back(&inhibition);
  for (const Suppressor* one : controls.suppressors()) out.push_back(one);
  return out;
}

IssueView view_of(const IssueState& state) {
  return {state.issue.whole(), state.key, state.firing, state.episode, state.last_transition};
}

FiringView firing_of(const IssueState& state) {
  const KeptIssue& issue = state.issue;
  return {state.key, state.episode, issue.run.uid, issue.run.attempt, issue.rule(), issue.shadow};
}

}  // namespace

/// An event goes through intake into the tables; the schedule says whose turn it is; the teller
/// decides what is said.
struct Router::Parts {
  Parts(RouteTree compiled, RouteTimes times_of_routes, RouterOptions given)
      : tree(std::move(compiled)),
        times(std::move(times_of_routes)),
        options(std::move(given)),
        tables(tree, options.limits),
        inhibition(options.inhibit_rules, tables.firing),
        controls(tables),
        intake(options, tables, stats),
        teller(tree, options, all_suppressors(options, inhibition, controls), times, tables),
        schedule(options.limits, tables, intake, teller, inhibition),
        silence_watch(controls.of<Silences>("silence"), tables.issues),
        silence_notices(options, tree.asks_for("rule", own_issue(RouterIssue::silence_notice).name),
                        controls.of<Silences>("silence"), tables.issues, intake) {}

  RouteTree tree;
  RouteTimes times;
  RouterOptions options;
  Stats stats;  // what intake and controls count; the rest is gathered when asked for
  Tables tables;
  Inhibition inhibition;
  Controls controls;
  Intake intake;
  Teller teller;
  Schedule schedule;
  SilenceWatch silence_watch;
  SilenceNotices silence_notices;
};

Result<std::unique_ptr<Router>> Router::create(const RouteConfig& tree,
                                               std::vector<RuleActions> rule_actions,
                                               std::vector<Integration> integrations,
                                               RouterOptions options) {
  auto compiled = RouteTree::build(tree, rule_actions, std::move(integrations));
  if (!compiled) return compiled.error();
  if (Status good = Inhibition::check(options.inhibit_rules); !good) return good.error();
  auto times = RouteTimes::build(options.time_intervals, tree);
  if (!times) return times.error();
  return std::unique_ptr<Router>(new Router(
      std::make_unique<Parts>(std::move(*compiled), std::move(*times), std::move(options))));
}

Router::Router(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Router::~Router() = default;

// ---- state

namespace {

struct StateKey {
  std::string_view kind, rest;
};
StateKey split(std::string_view key) {
  const std::size_t slash = key.find('/');
  return {key.substr(0, slash), slash == std::string_view::npos ? "" : key.substr(slash + 1)};
}

}  // namespace

bool Router::restores_as_read(std::string_view key) noexcept {
  return Tables::kept_as_read(split(key).kind);
}

void Router::restore_gone(std::string_view key) {
  const auto [kind, rest] = split(key);
  parts_->tables.restore_gone(kind, rest);
}

Status Router::restore(std::string_view key, std::string_view value) {
  const auto [kind, rest] = split(key);
  auto read = parts_->tables.restore(kind, rest, value);
  if (!read) read = parts_->controls.restore(kind, rest, value);
  if (!read || *read) return core::ok();
  return core::Error{core::Code::data_loss, read->error().message}.in("router state " +
                                                                      std::string(key));
}

void Router::restored(WallTime now) {
  if (parts_->schedule.started()) return;
  restart(parts_->tables, parts_->teller, parts_->options.limits, now);
  parts_->schedule.start();
  // Nobody hears of it who has no route for it.
  parts_->intake.keep_watchdog(parts_->tree.asks_for("rule", own_issue(RouterIssue::watchdog).name),
                               now);
}

Output Router::take() {
  Output out;
  parts_->teller.take(out);
  out.transitions = parts_->tables.issues.take_transitions();
  parts_->tables.take(out.state);
  parts_->controls.take(out.state);
  out.ack_origins = parts_->tables.acks.take_origins();
  out.control = parts_->silence_watch.take();
  return out;
}

std::vector<StateRecord> Router::snapshot() const {
  std::vector<StateRecord> out;
  parts_->tables.snapshot(out);
  parts_->controls.snapshot(out);
  return out;
}

// ---- events

void Router::on_issue(Issue issue, WallTime now) { on_issue(std::move(issue), now, std::nullopt); }
void Router::on_issue(Issue issue, WallTime now, const std::optional<Outline>& outline) {
  parts_->intake.on_issue(std::move(issue), now, outline);
  parts_->schedule.tell_at_once(now);
}
bool Router::on_repeat(const Repeat& repeat, WallTime now) {
  if (!parts_->intake.on_repeat(repeat, now)) return false;
  parts_->schedule.tell_at_once(now);
  return true;
}
void Router::on_job(const core::JobEvent& event, WallTime now) {
  parts_->intake.on_job(event, now);
}
void Router::on_report(const core::RunRef& run, std::string where, WallTime now) {
  parts_->tables.runs.note_report(run, std::move(where), now);
}
void Router::on_delivery(const core::Delivery& delivery, WallTime now) {
  parts_->intake.on_delivery(delivery, now);
}
void Router::on_stop(const core::Command& command, WallTime now) {
  parts_->intake.on_stop(command, now);
}
void Router::on_stop_withdrawn(const core::RunUid& run) { parts_->tables.runs.note_withdrawn(run); }
void Router::on_ack(const core::Ack& ack, WallTime now) { parts_->intake.on_ack(ack, now); }
Status Router::on_control(std::string_view key, std::optional<std::string_view> value,
                          WallTime now) {
  return parts_->controls.apply(key, value, now);
}

// ---- time

void Router::set_behind(bool behind, WallTime now) { parts_->schedule.set_behind(behind, now); }

void Router::set_read_until(WallTime at) { parts_->schedule.set_read_until(at); }

bool Router::tick(WallTime now) {
  if (!parts_->schedule.started()) return false;
  parts_->controls.forget(now);
  parts_->silence_watch.look(now);
  parts_->silence_notices.look(now);
  parts_->controls.count(parts_->stats, now);
  return parts_->schedule.run(now);
}

std::optional<WallTime> Router::next_deadline() const {
  const auto next = parts_->schedule.next();
  if (!parts_->schedule.started()) return next;
  auto earliest = next;
  for (const auto& look : {parts_->silence_watch.next(), parts_->silence_notices.next()}) {
    if (look && (!earliest || *look < *earliest)) earliest = look;
  }
  return earliest;
}

// ---- views

const Stats& Router::stats() const noexcept {
  Stats& stats = parts_->stats;
  parts_->teller.count(stats);
  parts_->tables.count(stats);
  stats.waiting = parts_->schedule.waiting();
  stats.next_due = parts_->schedule.next();
  return stats;
}

void Router::for_each_figure(EachFigure each) const {
  const Stats& all = stats();
  const auto state = [&](std::string_view of, std::uint64_t value) {
    each({"tocsin_router_issues", "issues by state", "state", of, static_cast<double>(value)});
  };
  state("firing", all.firing);
  state("acked", all.acked);
  state("flapping", all.flapping);
  const auto silences = [&](std::string_view of, std::uint64_t value) {
    each({"tocsin_router_silences", "silences by state", "state", of, static_cast<double>(value)});
  };
  silences("active", all.silences);
  silences("pending", all.silences_pending);
  silences("expired", all.silences_expired);
  parts_->teller.show(each);
  parts_->tables.show(each);
  parts_->intake.show(each);
}

void Router::for_each_issue(core::FunctionRef<void(const IssueView&)> visit) const {
  for (const auto& [key, state] : parts_->tables.issues.in_order()) visit(view_of(*state));
}

void Router::for_each_firing(core::FunctionRef<void(const FiringView&)> visit) const {
  parts_->tables.issues.for_each([&](const IssueState& state) {
    if (state.firing) visit(firing_of(state));
  });
}

std::optional<FiringView> Router::find_firing(std::string_view issue_key) const {
  const IssueState* found = parts_->tables.issues.state_of(issue_key);
  if (found == nullptr || !found->firing) return std::nullopt;
  return firing_of(*found);
}

std::optional<IssueView> Router::find_issue(std::string_view issue_key) const {
  const IssueState* found = parts_->tables.issues.state_of(issue_key);
  if (found == nullptr) return std::nullopt;
  return view_of(*found);
}

std::optional<RunView> Router::find_run(const core::RunUid& uid) const {
  return parts_->tables.runs.find(uid);
}

std::vector<RouteView> Router::routes() const { return parts_->tree.views(); }

Explanation Router::explain(const core::Labels& labels) const {
  return parts_->tree.explain(labels);
}

std::vector<std::string> Router::muted_by(std::string_view route_id, WallTime at) const {
  std::vector<std::string> out;
  const Route* route = parts_->tree.find(route_id);
  if (route == nullptr) return out;
  std::vector<Suppression> reasons;
  parts_->times.reasons(*route, at, reasons);
  for (Suppression& one : reasons) out.push_back(std::move(one.reason));
  return out;
}

}  // namespace tocsin::routing
