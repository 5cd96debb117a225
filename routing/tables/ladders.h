// Ladders: how long an incident has been told, who beyond the route's own receivers has been told of
// it, and which of its messages did not arrive (docs/escalation.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/notification.h"
#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/state.h"
#include "routing/tables/store.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

/// A message that did not arrive.
struct FailedDelivery {
  std::string what;   // how it failed, for people
  bool told = false;  // the backup has heard of it
};

/// Of one incident: from the first message of a group until nobody is told of it any more. Record
/// `ladder/<group hash>`.
struct Ladder {
  core::WallTime since{};                        // tick of the first message
  std::optional<core::WallTime> paused_since;    // all that fires is acknowledged
  core::Duration paused{};                       // it was, for so long, before
  std::vector<std::uint64_t> done;               // per step: how often its time has come
  std::map<std::string, FailedDelivery> failed;  // by integration
};
std::string encode(const Ladder& ladder);
core::Status decode(std::string_view value, Ladder& ladder);

/// A step whose time has come.
struct DueStep {
  std::size_t index = 0;
  std::uint64_t nth = 0;  // 0: the first time; else its n-th repeat
};

class Ladders {
 public:
  [[nodiscard]] Ladder* find(const std::string& group) const { return table_.find(group); }
  /// The incident of this group was told at `tick` for the first time.
  Ladder& begin(const std::string& group, core::WallTime tick);
  /// Nobody is told of it any more.
  void end(const std::string& group);
  /// Everything that fires is acknowledged since then; nullopt: it is not.
  void pause(const std::string& group, std::optional<core::WallTime> since, core::WallTime now);
  /// The highest step whose time has come; those below it are passed over. It counts as done.
  std::optional<DueStep> climb(const std::string& group, const Route& route, core::WallTime now);
  /// When the next step's time comes; nullopt: none will, unless something happens.
  [[nodiscard]] std::optional<core::WallTime> next(const std::string& group, const Route& route,
                                                   core::WallTime now) const;
  /// Has the time of some step come?
  [[nodiscard]] bool due(const std::string& group, const Route& route, core::WallTime now) const;
  /// A message did not arrive. False: that is known, or there is no such incident.
  bool failed(const std::string& group, const std::string& integration, std::string what);
  void touch(const std::string& group) { table_.touch(group); }

  core::Status restore(std::string_view group, std::string_view value) {
    return table_.restore(group, value);
  }
  /// Takes back what belongs to no group.
  void restored(core::FunctionRef<bool(const std::string& group)> is_there);
  void take(std::vector<StateRecord>& out) { table_.take(out); }
  void snapshot(std::vector<StateRecord>& out) const { table_.snapshot(out); }

 private:
  Table<Ladder> table_{"ladder"};
};

}  // namespace tocsin::routing
