// Acknowledgements as the router keeps them: which episodes somebody has taken on, until when, and
// where that is still to be told (docs/acknowledge.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/notification.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/agenda.h"
#include "routing/tables/groups.h"
#include "routing/tables/issues.h"
#include "routing/tables/short_key.h"
#include "routing/tables/state.h"
#include "routing/tables/store.h"

namespace tocsin::routing {

/// What an acknowledgement names, as it was written.
struct AckTarget {
  std::vector<std::string> issues;  // issue keys
  std::string group;                // hash, or hash-generation
  std::string run;
};

/// One acknowledgement. Record `ack/<id>`.
struct AckState {
  core::AckTold told;
  std::string origin;
  AckTarget target;
  core::WallTime taken_at{};  // when the router heard of it
  core::WallTime ends_at{};
  bool expired = false;                                        // it ended before its episodes
  std::map<std::string, std::uint64_t, std::less<>> episodes;  // issue key → the episode it covers
  std::set<std::string> untold;  // groups in which its begin, or its expiry, is still to be told
};
std::string encode(const AckState& state);
core::Status decode(std::string_view value, AckState& state);

/// At most this many at one time; one more is refused.
inline constexpr std::size_t kMaxAcks = 10'000;

class Acks {
 public:
  Acks(const Config& limits, Agenda& agenda, Issues& issues, Groups& groups)
      : limits_(limits), agenda_(agenda), issues_(issues), groups_(groups) {}

  /// Somebody takes on what fires now of `target`. Issues it names that are read later count too, if
  /// they began before it was written. resource_exhausted: there are too many.
  core::Status take_on(const std::string& id, core::AckTold told, std::string origin,
                       AckTarget target, core::WallTime now);
  /// It is taken back: repeats and escalation go on.
  void withdraw(const std::string& id, core::WallTime now);
  /// The acknowledgement of the issue's present episode; nullptr: nobody has taken it on.
  const AckState* of(const IssueState& issue);

  /// What a flush of this group has to tell of acknowledgements.
  struct News {
    const AckState* taken = nullptr;    // to pass on
    const AckState* expired = nullptr;  // to remind of
  };
  [[nodiscard]] News news(const Group& group) const;
  /// That was told there, or nobody has to hear it.
  void told(const Group& group, bool expired);

  /// Due::end_ack.
  void end(const Agenda::Entry& due, core::WallTime now);
  /// Those whose episodes are all over go.
  void forget(core::WallTime now);
  /// Episodes that are acknowledged.
  [[nodiscard]] std::size_t acked() const;
  /// Origins of those taken on since last asked.
  std::vector<std::string> take_origins() { return std::exchange(origins_, {}); }

  core::Status restore(std::string_view id, std::string_view value) {
    return table_.restore(id, value);
  }
  /// All is linked.
  void restored();
  void expect(const std::string& id);
  void take(std::vector<StateRecord>& out) { table_.take(out); }
  void snapshot(std::vector<StateRecord>& out) const { table_.snapshot(out); }

 private:
  [[nodiscard]] std::vector<IssueState*> firing_of(const AckTarget& target) const;
  [[nodiscard]] bool covers(const AckState& ack, std::string_view issue_key) const;
  void cover(const std::string& id, AckState& ack, const IssueState& issue);
  void uncover(std::string_view issue_key);
  void look_again(const AckState& ack, core::WallTime now);
  void erase(const std::string& id);

  const Config& limits_;
  Agenda& agenda_;
  Issues& issues_;
  Groups& groups_;
  Table<AckState> table_{"ack"};
  std::unordered_map<ShortKey, std::string, KeyHash, std::equal_to<>> ack_of_;  // issue key → id
  std::set<std::string> recent_;  // ids of those that issues read later may still count for
  std::vector<std::string> origins_;
};

}  // namespace tocsin::routing
