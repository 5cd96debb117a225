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
        log_(tables.log) {}

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

  /// Has this turn decided, or looked at, as much as one may?
  [[nodiscard]] bool spent() const;
  void begin_turn() { examined_ = 0; }
  /// Hands over what was decided since the last call.
  void take(Output& out);
  /// Adds what it has counted.
  void count(Stats& stats) const;

 private:
  [[nodiscard]] bool nothing_to_decide(const Group& group, core::WallTime tick,
                                       core::WallTime until) const;
  std::vector<FlushMember> freeze(const Group& group, core::WallTime tick, core::WallTime now);
  void tell(const Group& group, const Integration& integration,
            const std::vector<FlushMember>& members, core::WallTime tick, core::WallTime now);
  void say(const Group& group, const FlushContext& context, FlushDecision decision, TellLog& log,
           core::WallTime now);
  void send(TellLog& log, FlushDecision& decision, core::Notification notification);
  void note(const Group& group, const std::string& integration, std::string reason);
  [[nodiscard]] bool over_and_news(const Group& group, const IssueState& state) const;
  void part(Group& group, const std::vector<FlushMember>& members);
  void forget_past(IssueState& state);

  const RouteTree& tree_;
  const RouterOptions& options_;
  const std::vector<const Suppressor*> suppressors_;
  const RouteTimes& times_;
  const Runs& runs_;
  Issues& issues_;
  Groups& groups_;
  Turns& turns_;
  NotificationLog& log_;
  std::vector<core::Notification> notifications_;  // these three: since the last take
  std::vector<Decision> decisions_;
  std::vector<core::Duration> flush_delays_;
  std::size_t sent_bytes_ = 0;  // of notifications_
  std::size_t examined_ = 0;    // members looked at in this turn
  Stats counted_;               // its part of them
};

}  // namespace tocsin::routing
