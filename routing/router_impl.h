// The inside of Router: joins the tables. An event goes through deduplication, runs, issues and
// groups (intake.h); the agenda says whose turn it is.
// router.cc: the door and views; router_flow.cc: what may happen when; router_state.cc: restore and
// take.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "routing/flush/teller.h"
#include "routing/routing.h"
#include "routing/suppress/silences.h"
#include "routing/tables/agenda.h"
#include "routing/tables/capacity.h"
#include "routing/tables/catchup.h"
#include "routing/tables/dedup.h"
#include "routing/tables/groups.h"
#include "routing/tables/intake.h"
#include "routing/tables/issues.h"
#include "routing/tables/notification_log.h"
#include "routing/tables/old_members.h"
#include "routing/tables/runs.h"
#include "routing/tables/turns.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

class Router::Impl {
 public:
  Impl(RouteTree tree, RouterOptions options);

  void on_issue(core::Issue issue, core::WallTime now) {
    intake_.on_issue(std::move(issue), now);
    tell_at_once(now);
  }
  void on_job(const core::JobEvent& event, core::WallTime now) { intake_.on_job(event, now); }
  void on_report(const core::RunRef& run, std::string where, core::WallTime now) {
    runs_.note_report(run, std::move(where), now);
  }
  void on_stop(const core::Command& command, core::WallTime now) { intake_.on_stop(command, now); }
  void on_stop_withdrawn(const core::RunUid& run) { runs_.note_withdrawn(run); }
  void on_ack(const core::Ack& ack, core::WallTime now) { intake_.on_ack(ack, now); }
  void on_delivery(const core::Delivery& delivery, core::WallTime now) {
    intake_.on_delivery(delivery, now);
  }

  core::Status on_control(std::string_view key, std::optional<std::string_view> value,
                          core::WallTime now);

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
  // router_flow.cc
  [[nodiscard]] bool waits(const Agenda::Entry& due) const;
  [[nodiscard]] bool waits(const Group& group, core::WallTime at) const;
  void release();
  void carry_out(const Agenda::Entry& due, core::WallTime now);
  void tell_at_once(core::WallTime now);

  // router_state.cc
  void name_report(core::Issue& issue) const;
  void name_runs(core::Notification& notification) const;
  void close_unrouted(core::WallTime now);

  RouteTree tree_;
  std::shared_ptr<Silences> silences_ = std::make_shared<Silences>();
  RouterOptions options_;
  Agenda agenda_;
  Dedup dedup_;
  Runs runs_;
  Issues issues_;
  NotificationLog log_;
  Turns turns_;
  Capacity capacity_;
  OldMembers old_members_;
  Groups groups_;
  Intake intake_;
  Teller teller_;
  Catchup catchup_;
  mutable Stats stats_;  // what intake counts; the rest is gathered when asked for
  bool restored_ = false;
};

}  // namespace tocsin::routing
