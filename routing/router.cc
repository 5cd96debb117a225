// Router: creation, the door's forwarding, and views of the state.
#include <utility>

#include "routing/router_impl.h"

namespace tocsin::routing {

using core::Issue;
using core::Result;
using core::WallTime;

Result<std::unique_ptr<Router>> Router::create(const RouteConfig& tree,
                                               std::vector<RuleActions> rule_actions,
                                               std::vector<Integration> integrations,
                                               RouterOptions options) {
  auto compiled = RouteTree::build(tree, rule_actions, std::move(integrations));
  if (!compiled) return compiled.error();
  return std::unique_ptr<Router>(
      new Router(std::make_unique<Impl>(std::move(*compiled), std::move(options))));
}

Router::Router(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Router::~Router() = default;
core::Status Router::restore(std::string_view key, std::string_view value) {
  return impl_->restore(key, value);
}
void Router::restored(WallTime now) { impl_->restored(now); }
void Router::on_issue(Issue issue, WallTime now) { impl_->on_issue(std::move(issue), now); }
void Router::on_job(const core::JobEvent& event, WallTime now) { impl_->on_job(event, now); }
void Router::on_report(const core::RunRef& run, std::string where, WallTime now) {
  impl_->on_report(run, std::move(where), now);
}
void Router::on_delivery(const core::Delivery& delivery, WallTime now) {
  impl_->on_delivery(delivery, now);
}
void Router::on_stop(const core::Command& command, WallTime now) { impl_->on_stop(command, now); }
void Router::on_stop_withdrawn(const core::RunUid& run) { impl_->on_stop_withdrawn(run); }
void Router::on_ack(const core::Ack& ack, WallTime now) { impl_->on_ack(ack, now); }
core::Status Router::on_control(std::string_view key, std::optional<std::string_view> value,
                                WallTime now) {
  return impl_->on_control(key, value, now);
}
std::optional<RunView> Router::find_run(const core::RunUid& uid) const {
  return impl_->find_run(uid);
}
void Router::set_behind(bool behind, WallTime now) { impl_->set_behind(behind, now); }
bool Router::tick(WallTime now) { return impl_->tick(now); }
std::optional<WallTime> Router::next_deadline() const { return impl_->next_deadline(); }
Output Router::take() { return impl_->take(); }
std::vector<StateRecord> Router::snapshot() const { return impl_->snapshot(); }
void Router::for_each_issue(core::FunctionRef<void(const IssueView&)> visit) const {
  impl_->for_each_issue(visit);
}
std::optional<IssueView> Router::find_issue(std::string_view issue_key) const {
  return impl_->find_issue(issue_key);
}
const Stats& Router::stats() const noexcept { return impl_->stats(); }
Explanation Router::explain(const core::Labels& labels) const {
  return impl_->tree().explain(labels);
}

namespace {

RouterOptions with(RouterOptions options, std::shared_ptr<const Suppressor> suppressor) {
  options.suppressors.push_back(std::move(suppressor));
  return options;
}

}  // namespace

Router::Impl::Impl(RouteTree tree, RouterOptions options)
    : tree_(std::move(tree)),
      options_(with(std::move(options), silences_)),
      dedup_(options_.limits.dedup_window, options_.limits.dedup_max),
      runs_(options_.limits, agenda_),
      issues_(options_.limits, agenda_),
      turns_(agenda_),
      capacity_(options_.limits),
      groups_(tree_, agenda_, turns_, capacity_, issues_, log_),
      intake_(options_, {dedup_, runs_, issues_, groups_, capacity_, log_}, stats_),
      teller_(tree_, options_, runs_, issues_, groups_, turns_, log_),
      catchup_(options_.limits.catchup_hold_max) {}

const Stats& Router::Impl::stats() const noexcept {
  teller_.count(stats_);
  stats_.groups_overflow = capacity_.overflowed();
  stats_.firing = issues_.firing();
  stats_.issues = issues_.size();
  stats_.groups = capacity_.active();
  stats_.runs = runs_.size();
  stats_.seen = dedup_.size();
  stats_.seen_evicted = dedup_.evicted();
  stats_.owed = log_.owed();
  stats_.undelivered = log_.undelivered();
  stats_.oldest_undelivered = log_.oldest_undelivered();
  stats_.waiting = catchup_.parked();
  stats_.next_due = next_deadline();
  return stats_;
}

namespace {

IssueView view_of(const IssueState& state) {
  return {state.issue, state.key, state.firing, state.episode, state.last_transition};
}

}  // namespace

void Router::Impl::for_each_issue(core::FunctionRef<void(const IssueView&)> visit) const {
  for (const auto& [key, state] : issues_.in_order()) visit(view_of(*state));
}

std::optional<IssueView> Router::Impl::find_issue(std::string_view issue_key) const {
  const IssueState* found = issues_.state_of(issue_key);
  if (found == nullptr) return std::nullopt;
  return view_of(*found);
}

}  // namespace tocsin::routing
