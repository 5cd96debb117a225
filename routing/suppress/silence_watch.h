// Silences beside the issues that fire: which of them match something, and which have come to their end
// because the problem is over or there never was one (docs/silences.md).
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"
#include "routing/routing.h"
#include "routing/suppress/silences.h"
#include "routing/tables/issues.h"

namespace tocsin::routing {

/// Looks at all issues, now and then. An end is asked for as a record of `router-control`, as a person
/// would: it counts when the router reads it there, so that everybody who reads that topic sees it, and
/// a change that a person wrote before it wins.
class SilenceWatch {
 public:
  /// Both outlive it.
  SilenceWatch(Silences& silences, const Issues& issues) : silences_(silences), issues_(issues) {}

  /// Looks, if it is time to.
  void look(core::WallTime now);
  /// When it has to look next; nullopt: no silence ends by itself, and what is counted can wait for the
  /// next tick that comes anyway.
  [[nodiscard]] std::optional<core::WallTime> next() const;
  /// Records of `router-control` since the last call.
  std::vector<StateRecord> take() {
    auto out = std::exchange(asked_, {});
    for (StateRecord& record : silences_.take_put_back()) out.push_back(std::move(record));
    return out;
  }

 private:
  struct Seen {
    bool firing = false;
    core::WallTime ended_at{};  // of those that are over, the newest
  };
  void look_at_issues(core::WallTime now, std::vector<Seen>& seen) const;
  void note(std::string_view id, SilenceState& state, const Seen& seen, core::WallTime now);
  void end(std::string_view id, SilenceState& state, const char* why, core::WallTime now);

  Silences& silences_;
  const Issues& issues_;
  std::optional<core::WallTime> looked_at_;
  core::Duration period_{};
  std::vector<StateRecord> asked_;
};

}  // namespace tocsin::routing
