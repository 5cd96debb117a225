// Flushes: a group's turn has come; which integrations are told what (docs/routing.md, Flush).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/notification.h"
#include "core/time.h"
#include "routing/flush/flush.h"
#include "routing/routing.h"
#include "routing/suppress/route_times.h"
#include "routing/tables/tables.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

class Teller {
 public:
  /// `suppressors`: asked in this order, of each issue; `times` of each route. All outlive it.
  Teller(const RouteTree& tree, const RouterOptions& options,
         std::vector<const Suppressor*> suppressors, const RouteTimes& times, Tables& tables)
      : tree_(tree),
        options_(options),
        suppressors_(std::move(suppressors)),
        times_(times),
        runs_(tables.runs),
        issues_(tables.issues),
        groups_(tables.groups),
        turns_(tables.turns),
        log_(tables.log),
        acks_(tables.acks),
        ladders_(tables.ladders),
        flaps_(tables.flaps) {}

  /// Due::flush_group.
  void flush_due(const std::string& hash, core::WallTime due, core::WallTime now);
  void flush(Group& group, core::WallTime tick, core::WallTime now);
  /// The integration is no longer told of this group: its incident is closed there. Its log stays,
  /// so that no notification id can come twice.
  void close(const Group& group, const std::string& integration_id, core::WallTime now);
  /// The group's next tick until `now`, if no record was made of it because there was nothing to
  /// decide. On the grid the newest one stands for all.
  [[nodiscard]] std::optional<core::WallTime> passed_quietly(const Group& group,
                                                             core::WallTime now) const;

  /// The next step of the group's ladder has a flush of its own.
  void arrange(Group& group, core::WallTime now);
  /// Deliveries that were decided before `now` count as waiting since then: nobody delivered before.
  void start(core::WallTime now) { started_ = now; }
  /// Has this turn decided, or looked at, as much as one may?
  [[nodiscard]] bool spent() const;
  void begin_turn() { examined_ = 0; }
  /// Hands over what was decided since the last call.
  void take(Output& out);
  /// Adds what it has counted.
  void count(Stats& stats) const;
  void show(EachFigure each) const;

 private:
  [[nodiscard]] bool nothing_to_decide(const Group& group, core::WallTime tick,
                                       core::WallTime until) const;
  std::vector<FlushMember> freeze(const Group& group, core::WallTime tick, core::WallTime now);
  /// A group as a flush sees it.
  struct Look {
    Group& group;
    const std::vector<FlushMember>& members;
    core::WallTime tick{};
    core::WallTime now{};
    /// At which the clock of the ladder stands.
    [[nodiscard]] core::WallTime at() const;
  };
  /// The reason of the message; "none": there was none.
  std::string tell(const Look& look, const Integration& integration,
                   const Occasion* occasion = nullptr, bool further = false);
  // Beyond what issues ask for (escalation.cc):
  void tell_all(const Look& look);
  void escalate(const Look& look);
  void stand_in(const Look& look);
  void tell_of_acks(const Look& look);
  void note_undelivered(const Look& look);
  [[nodiscard]] Occasion occasion_of(const Look& look) const;
  void settle_occasion(const Look& look);
  [[nodiscard]] bool asks_for_more(const Group& group, core::WallTime until) const;
  [[nodiscard]] std::optional<core::WallTime> undelivered_at(const Group& group,
                                                             const Integration& integration) const;
  void say(const Group& group, const FlushContext& context, FlushDecision decision, TellLog& log,
           core::WallTime now);
  void send(TellLog& log, FlushDecision& decision, core::Notification notification);
  void note(const Group& group, const std::string& integration, std::string reason);
  [[nodiscard]] bool over_and_news(const Group& group, const IssueState& state) const;
  void part(Group& group, const std::vector<FlushMember>& members);
  void forget_past(IssueState& state);
  void note_suppressed(const Group& group, const std::vector<FlushMember>& members);

  const RouteTree& tree_;
  const RouterOptions& options_;
  const std::vector<const Suppressor*> suppressors_;
  const RouteTimes& times_;
  const Runs& runs_;
  Issues& issues_;
  Groups& groups_;
  Turns& turns_;
  NotificationLog& log_;
  Acks& acks_;
  Ladders& ladders_;
  Flaps& flaps_;
  core::WallTime started_{};  // since when deliveries may be awaited
  std::vector<Further> further_;
  std::vector<core::Notification> notifications_;  // these three: since the last take
  std::vector<Decision> decisions_;
  std::vector<FlushDelay> flush_delays_;
  std::size_t sent_bytes_ = 0;  // of notifications_
  std::size_t examined_ = 0;    // members looked at in this turn
  Stats counted_;               // its part of them
  CountBy flushes_of_route_;
  CountBy suppressed_by_;    // member × flush, by kind of reason
  CountBy owed_dropped_of_;  // these three by integration
  CountBy ends_deferred_of_;
  CountBy ends_dropped_of_;
  CountBy suppressed_in_;  // members suppressed at a group's last look, by its hash
};

}  // namespace tocsin::routing
