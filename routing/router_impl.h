// The inside of Router: issues, groups, runs, their agenda, and what of them has changed.
// router.cc: the door and views; router_intake.cc: issues and deliveries;
// router_flow.cc: what may happen when; router_groups.cc: membership; router_flush.cc: flushes;
// router_state.cc: restore and take.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "routing/agenda.h"
#include "routing/catchup.h"
#include "routing/dedup.h"
#include "routing/flush.h"
#include "routing/lifecycle.h"
#include "routing/route_tree.h"
#include "routing/routing.h"
#include "routing/runs.h"
#include "routing/state.h"
#include "routing/state_codec.h"
#include "routing/store.h"

namespace tocsin::routing {

/// Has some integration been told of the issue in this group, or is still owed its end?
bool told_in(const Group& group, const std::string& issue_key);

/// The table of issues, as suppressors see it.
class KnownFrom final : public KnownIssues {
 public:
  explicit KnownFrom(const Table<IssueState>& issues) : issues_(issues) {}
  [[nodiscard]] const core::Issue* find(std::string_view issue_key) const override {
    const IssueState* found = issues_.find(issue_key);
    return found == nullptr ? nullptr : &found->issue;
  }
  void for_each_firing(core::FunctionRef<void(const core::Issue&)> visit) const override {
    for (const auto& [key, state] : issues_) {
      if (state->firing) visit(state->issue);
    }
  }

 private:
  const Table<IssueState>& issues_;
};

class Router::Impl {
 public:
  Impl(RouteTree tree, RouterOptions options)
      : tree_(std::move(tree)),
        options_(std::move(options)),
        dedup_(options_.limits.dedup_window, options_.limits.dedup_max),
        runs_(options_.limits, agenda_),
        catchup_(options_.limits.catchup_hold_max) {}

  // Intake (router_intake.cc).
  void on_issue(core::Issue issue, core::WallTime now);
  void on_job(const core::JobEvent& event, core::WallTime now);
  void on_delivery(const core::Delivery& delivery, core::WallTime now);

  // When what may happen (router_flow.cc).
  void set_behind(bool behind, core::WallTime now);
  bool tick(core::WallTime now);
  [[nodiscard]] std::optional<core::WallTime> next_deadline() const;

  // State (router_state.cc).
  core::Status restore(std::string_view key, std::string_view value);
  void restored(core::WallTime now);
  Output take();
  [[nodiscard]] std::vector<StateRecord> snapshot() const;

  [[nodiscard]] const RouteTree& tree() const noexcept { return tree_; }
  const Stats& stats() const noexcept;
  void for_each_issue(core::FunctionRef<void(const IssueView&)> visit) const;
  [[nodiscard]] std::optional<IssueView> find_issue(std::string_view issue_key) const;
  [[nodiscard]] std::optional<RunView> find_run(const core::RunUid& uid) const {
    return runs_.find(uid);
  }

 private:
  // router_intake.cc
  void report(core::Issue normal, core::WallTime now);
  void follow(IssueState& state, Effect effect, core::WallTime now);
  void started(IssueState& state, core::WallTime now);
  void ended(IssueState& state, core::WallTime now);
  void resolve_issue(IssueState& state, core::Resolution resolution, core::WallTime at);
  void follow(const std::string& run, const RunEffects& effects);
  void resolve_run(const std::string& run, const RunEffect& effect);
  void raise(std::string_view rule, core::Labels labels, std::string summary, core::WallTime now);
  void clear(std::string_view rule, core::Labels labels, core::WallTime now);
  core::Issue builtin_issue(std::string_view rule, core::Labels labels, core::WallTime now) const;
  void expire(const Agenda::Entry& due);
  void forget_issue(const Agenda::Entry& due);
  bool told_anywhere(const IssueState& state) const;

  // router_flow.cc
  [[nodiscard]] bool waits(const Agenda::Entry& due) const;
  [[nodiscard]] bool waits(const Group& group, core::WallTime at) const;
  void release();
  void carry_out(const Agenda::Entry& due, core::WallTime now);
  void tell_at_once(core::WallTime now);

  // router_groups.cc
  void route(IssueState& state, core::WallTime now, bool new_episode);
  void route_resolved(IssueState& state, core::WallTime now);
  Group& find_or_make(const Route& route, const core::Labels& labels, const std::string& hash,
                      bool overflow);
  Group& group_for(IssueState& state, const Route& route, const core::Labels& labels,
                   core::WallTime now);
  void activate(Group& group, const IssueState& first, core::WallTime now);
  void join(Group& group, IssueState& state);
  void leave(Group& group, IssueState& state);
  void hurry(Group& group, const IssueState& state, core::WallTime now);
  void arrange(Group& group);
  void change(Group& group);
  void tell_again(Group& group, TellLog& log, const std::vector<std::string>& keys,
                  core::WallTime now);
  void change_groups_of(const IssueState& state);
  bool belongs(const Group& group, IssueState& state) const;

  // router_flush.cc
  void flush_due(const Agenda::Entry& due, core::WallTime now);
  void flush(Group& group, core::WallTime tick, core::WallTime now);
  [[nodiscard]] bool nothing_to_decide(const Group& group, core::WallTime tick) const;
  [[nodiscard]] bool restored_quiet(const Group& group, core::WallTime now) const;
  void part(Group& group, const std::vector<FlushMember>& members);
  void forget_past(IssueState& state);
  void send(TellLog& log, Verdict& verdict, core::Notification notification);
  std::vector<FlushMember> freeze(const Group& group, core::WallTime tick);
  void tell(Group& group, const Integration& integration, const std::vector<FlushMember>& members,
            core::WallTime tick, core::WallTime now);
  void set_next(Group& group, core::WallTime tick, core::WallTime now);
  void dissolve(Group& group, core::WallTime at);
  void forget_group(const Agenda::Entry& due);
  void drop_logs(Group& group);
  void erase_group(const std::string& hash);
  [[nodiscard]] core::Duration log_retention(const Group& group) const;

  // router_state.cc
  void link_logs();
  void link_members();
  void link_issues();
  void close_unrouted(core::WallTime now);
  void close_log(Group& group, const std::string& integration_id, core::WallTime now);
  void arrange_all(core::WallTime now);
  void touch(const IssueState& state) { issues_.touch(state.key); }
  void touch(const Group& group) { groups_.touch(group.hash); }
  void touch_log(const std::string& hash, const std::string& integration) {
    changed_logs_.insert({hash, integration});
  }

  RouteTree tree_;
  RouterOptions options_;
  Dedup dedup_;
  Table<IssueState> issues_{"issue"};
  KnownFrom known_{issues_};
  Table<Group> groups_{"group"};
  std::set<std::string> gone_members_;                                    // records once written
  std::set<std::pair<std::string, std::string>> changed_logs_;            // group hash, integration
  std::unordered_map<std::string, std::set<std::string>> firing_of_run_;  // run uid → issue keys
  std::unordered_map<std::string, std::string> hash_of_key_;  // route id 0x1F group key → hash
  std::map<std::string, std::size_t> active_of_route_;
  std::vector<std::pair<std::string, std::string>> unlinked_members_;  // of records once written
  std::vector<std::tuple<std::string, std::string, TellLog>> unlinked_logs_;
  Agenda agenda_;
  Runs runs_;
  Catchup catchup_;
  Output out_;
  mutable Stats stats_;
  std::size_t active_groups_ = 0;
  std::size_t firing_ = 0;
  bool restored_ = false;

  std::vector<std::string> at_once_;  // hashes of groups that the present event made due
  // Work since the last take() (output) and in this tick (members looked at).
  std::size_t sent_bytes_ = 0;
  std::size_t examined_ = 0;
  std::multiset<core::WallTime> undelivered_;  // decided_at of messages without a final state
};

}  // namespace tocsin::routing
