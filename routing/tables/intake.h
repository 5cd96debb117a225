// Events: what an issue, a job event or a delivery means for the tables, and which issues the router
// reports of itself (docs/routing.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/command.h"
#include "core/issue.h"
#include "core/labels.h"
#include "core/notification.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/own_issues.h"
#include "routing/tables/tables.h"

namespace tocsin::routing {

class Intake {
 public:
  /// `stats`: where it counts.
  Intake(const RouterOptions& options, Tables& tables, Stats& stats)
      : options_(options),
        dedup_(tables.dedup),
        runs_(tables.runs),
        issues_(tables.issues),
        groups_(tables.groups),
        capacity_(tables.capacity),
        log_(tables.log),
        ladders_(tables.ladders),
        flaps_(tables.flaps),
        stats_(stats) {}

  void on_issue(core::Issue issue, core::WallTime now,
                const std::optional<Outline>& outline = std::nullopt);
  /// False: nothing is done, the event is to be read whole.
  bool on_repeat(const Repeat& repeat, core::WallTime now);
  void on_job(const core::JobEvent& event, core::WallTime now);
  void on_delivery(const core::Delivery& delivery, core::WallTime now);
  void on_stop(const core::Command& command, core::WallTime now);
  void on_ack(const core::Ack& ack, core::WallTime now);

  /// What follows until the next event happens now.
  void begin_turn(core::WallTime now) { now_ = now; }
  /// Due::expire_issue.
  void expire(const Agenda::Entry& due);
  /// Due::lose_run.
  void lose(const Agenda::Entry& due);
  /// The issue `watchdog` fires for as long as it is wanted: whoever stops hearing of it knows that this
  /// router tells nobody any more.
  void keep_watchdog(bool wanted, core::WallTime now);
  /// Who raised the events.
  void show(EachFigure each) const;
  /// Reports the routes that have outgrown the limits, and those that have not any more.
  void tell_overflows();

 private:
  void note_failure(Group& group, const core::Delivery& delivery, core::WallTime now);
  IssueState& report(const core::Issue& normal, core::WallTime now);
  void merge(IssueState& state, const core::Issue& normal, core::WallTime now);
  void began(IssueState& state, core::WallTime now);
  void ended(IssueState& state, core::WallTime at);
  void tell_outside(IssueState& state, core::WallTime at);
  void end(IssueState& state, core::Resolution resolution, core::WallTime at);
  void follow(const std::string& run, const RunEffects& effects);
  void pull(const std::string& run, core::WallTime at);
  void resolve_run(const std::string& run, const RunEffect& effect);
  void raise(RouterIssue which, core::Labels labels, std::string summary, core::WallTime now);
  void clear(RouterIssue which, core::Labels labels, core::WallTime now);

  const RouterOptions& options_;
  core::WallTime
      now_{};  // of the newest event or turn: ends are dated back, what they pull forward is not
  Dedup& dedup_;
  Runs& runs_;
  Issues& issues_;
  Groups& groups_;
  Capacity& capacity_;
  NotificationLog& log_;
  Ladders& ladders_;
  Flaps& flaps_;
  Stats& stats_;
  CountBy events_of_;  // by source_type()
};

}  // namespace tocsin::routing
