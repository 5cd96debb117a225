// One flush of one group: what each integration must be told (docs/routing.md).
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "routing/routing.h"
#include "routing/tables/state.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

/// A member as it stands at the tick: frozen for all integrations.
struct FlushMember {
  const IssueState* state = nullptr;
  bool firing = false;    // not resolved at or before the tick, or ended with its job, untold
  bool over = false;      // it is news, and has ended since
  bool strayed = false;   // its labels lead elsewhere now: only who was told still hears
  bool reminded = false;  // a silence has ended that wants who was told to hear of it again
  std::vector<Suppression> reasons;    // why it is suppressed; empty = visible to all
  const core::AckTold* ack = nullptr;  // who has taken it on
  /// It flaps: a further episode is no news to who knows of one.
  bool flapping = false;
  bool held = false;  // and has ended, which is not told yet

  [[nodiscard]] bool visible_to(const Integration& integration) const {
    return std::none_of(reasons.begin(), reasons.end(),
                        [&](const Suppression& one) { return one.holds_back(integration); });
  }
};

/// A line of a message.
struct Mention {
  const IssueState* state = nullptr;
  std::uint64_t episode = 1;
  bool firing = false;
  bool over = false;  // it fired at the tick and is news, and has ended since: the message says so
  const core::AckTold* ack = nullptr;  // who has taken it on
};

/// The first matching line of the table.
struct FlushDecision {
  std::string reason = "none";
  std::optional<core::NotificationKind> kind;  // unset: nothing is sent (also a muted close)
  bool still_firing = false;                   // anything told, or told now, still fires
  bool changed = false;                        // the log is another one now
  std::uint64_t ends_deferred = 0;             // suppressed: owed from now on …
  std::uint64_t ends_dropped = 0;              // … or never told
  std::uint64_t seq = 0;                       // of a part: its message's number in the log
  std::vector<Mention> firing;  // news and what is told; some of it may be over by now
  std::vector<Mention> resolved;
  std::vector<Mention> suppressed;  // told and still firing, but not visible
  std::vector<Mention> held;        // told and flapping: their ends are told later
  std::vector<std::pair<std::string, TellLog::Told>> over;  // what the far side is told has ended
};

/// The report that tells of a mention: an earlier episode has its own.
core::Issue report_of(const Mention& mention);
/// Is `a` told before `b`? Most severe first, then first signs, then oldest.
bool told_before(const Mention& a, const Mention& b);

/// What a flush is asked to tell although no issue is news: a step of the ladder, a failed delivery, an
/// acknowledgement.
struct Occasion {
  std::string_view reason;  // escalation, fallback, acknowledged, ack_expired, flapping, calm
  std::string why;          // in words; may be empty
  bool opens = false;       // also who was not told of the incident before
  bool explains = false;    // `why` goes with a message for another reason as well
};

struct FlushContext {
  const Route& route;
  const Integration& integration;
  const Matchers* filter = nullptr;  // the integration's `when`
  core::WallTime tick{};
  core::Duration owed_max_age{};
  const Occasion* occasion = nullptr;
  bool further = false;  // told beyond the route's receivers: the rest of the incident, no repeats
};

/// Decides and keeps the log's books, also when nothing is said: afterwards `log.told` holds
/// exactly the firing episodes the integration knows of, and `log.owed` the resolves it has still
/// to hear of. `owed_dropped` counts those that became too old.
FlushDecision decide(const std::vector<FlushMember>& members, const FlushContext& context,
                     TellLog& log, std::uint64_t& owed_dropped);

/// The message of a decision with a kind; `log.seq` has been counted up for it. It lists what fits
/// into a record; the rest is counted.
core::Notification compose(const Group& group, const FlushContext& context,
                           const FlushDecision& decision, const TellLog& log, core::WallTime now,
                           const std::string& config_version);

}  // namespace tocsin::routing
