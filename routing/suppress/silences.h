// Silences: for a time nobody is told of issues whose labels match (docs/silences.md). They fire, are
// recorded and shown all the same.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/suppress/controls.h"
#include "routing/tables/store.h"
#include "routing/tree/matcher_index.h"

namespace tocsin::routing {

/// A silence with what it compares, as the router keeps it. Record `silence/<id>`.
struct SilenceState {
  Silence silence;
  SilenceScope scope;
  core::WallTime changed_at{};      // when the router heard of it
  core::WallTime matched_at{};      // when an issue that it matches last fired; never: the epoch
  bool matching = false;            // one fired when it was last looked at
  std::uint64_t asked_version = 0;  // of the version whose end the router has asked for
};
std::string encode(const SilenceState& state);
core::Status decode(std::string_view value, SilenceState& state);

/// Records `silence/<id>`.
class Silences final : public ControlRecords, public Suppressor {
 public:
  core::Status apply(std::string_view id, std::optional<std::string_view> value,
                     core::WallTime now) override;
  void forget(core::WallTime now) override;
  void count(Stats& stats, core::WallTime now) const override;
  [[nodiscard]] const Suppressor* suppressor() const override { return this; }

  [[nodiscard]] bool holds_any() const noexcept override { return !order_.empty(); }
  void reasons(const core::Issue& issue, core::WallTime tick,
               std::vector<Suppression>& out) const override;
  [[nodiscard]] bool may_differ(const AnyMember& any_member, core::WallTime since,
                                core::WallTime now) const override;
  [[nodiscard]] bool reminds(const core::Issue& issue, core::WallTime since,
                             core::WallTime now) const override;

  core::Status restore(std::string_view id, std::string_view value) override;
  void take(std::vector<StateRecord>& out) override { table_.take(out); }
  void snapshot(std::vector<StateRecord>& out) const override { table_.snapshot(out); }

  /// All of them, by id; one that was changed is to be touched.
  [[nodiscard]] const std::vector<std::pair<std::string_view, SilenceState*>>& in_order()
      const noexcept {
    return order_;
  }
  void touch(std::string_view id) { table_.touch(std::string(id)); }
  /// Records of `router-control` since the last call: silences that stand, written again because a change
  /// that came too late is now the last record of their key there.
  std::vector<StateRecord> take_put_back() { return std::exchange(put_back_, {}); }
  /// Places in in_order() of those that match, ascending; `out` is cleared.
  void match(const core::Labels& labels, std::vector<std::size_t>& out) const;

 private:
  void index();
  void put_back(const Silence& standing, const Silence& refused, core::WallTime now);

  Table<SilenceState> table_{"silence"};
  std::vector<std::pair<std::string_view, SilenceState*>> order_;  // of the table
  // Made when they are asked for: the sets of all silences, and whose each is, in that order.
  mutable std::optional<MatcherIndex> sets_;
  mutable std::vector<std::size_t> owner_;
  mutable std::vector<std::size_t> matching_sets_;  // these two: while an issue is looked at
  mutable std::vector<std::size_t> matching_;
  bool some_remind_ = false;  // of order_
  std::vector<StateRecord> put_back_;
  core::WallTime taken_back_{};  // newest time at which one went before its end
};

}  // namespace tocsin::routing
