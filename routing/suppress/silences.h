// Silences: for a time nobody is told of issues whose labels match (docs/silences.md). They fire, are
// recorded and shown all the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/store.h"

namespace tocsin::routing {

/// A silence with what it compares, as the router keeps it. Record `silence/<id>`.
struct SilenceState {
  Silence silence;
  Matchers matchers;
  core::WallTime changed_at{};  // when the router heard of it
};
std::string encode(const SilenceState& state);
core::Status decode(std::string_view value, SilenceState& state);

class Silences final : public Suppressor {
 public:
  /// What stands in a record of `router-control`; nullopt: it was taken back. invalid_argument: it is
  /// no silence, and the one before stays.
  core::Status apply(std::string_view id, std::optional<std::string_view> value,
                     core::WallTime now);
  /// Those that ended long ago.
  void forget(core::WallTime now);

  [[nodiscard]] std::size_t count_in_force(core::WallTime now) const;

  void reasons(const core::Issue& issue, const KnownIssues& others, core::WallTime tick,
               std::vector<Suppression>& out) const override;
  [[nodiscard]] bool may_differ(const core::Labels& group_labels, core::WallTime since,
                                core::WallTime now) const override;

  core::Status restore(std::string_view id, std::string_view value);
  void take(std::vector<StateRecord>& out) { table_.take(out); }
  void snapshot(std::vector<StateRecord>& out) const { table_.snapshot(out); }

 private:
  Table<SilenceState> table_{"silence"};
  std::vector<std::pair<std::string_view, SilenceState*>> order_;  // of the table
  core::WallTime taken_back_{};  // newest time at which one went before its end
};

}  // namespace tocsin::routing
