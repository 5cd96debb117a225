// Issues that begin and end again and again: how often each began, and on which routes it is damped
// (docs/flapping.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "routing/routing.h"
#include "routing/tables/state.h"
#include "routing/tables/store.h"
#include "routing/tree/route_tree.h"

namespace tocsin::routing {

/// Of one issue on routes with `flap`. Record `flap/<issue key>`.
struct FlapState {
  std::vector<core::WallTime> begins;              // the newest, ascending
  std::map<std::string, core::WallTime> flapping;  // route id → since when
  std::set<std::string> untold;  // groups in which the begin of it is still to be told
};
std::string encode(const FlapState& state);
core::Status decode(std::string_view value, FlapState& state);

class Flaps {
 public:
  /// An episode has begun. Groups of routes on which the issue flaps from now on have to say so.
  void began(const IssueState& issue, core::WallTime now);
  /// Is the issue damped on this route at `at`?
  [[nodiscard]] bool damped(const IssueState& issue, const Route& route, core::WallTime at) const;
  /// Was it, until it became calm?
  [[nodiscard]] bool calmed(const IssueState& issue, const Route& route, core::WallTime at) const;
  /// May some member of the group be damped, or calm since?
  [[nodiscard]] bool any(const Group& group) const;
  [[nodiscard]] const FlapState* of(std::string_view issue_key) const {
    return table_.find(issue_key);
  }
  [[nodiscard]] bool untold(std::string_view issue_key, const std::string& group) const;
  void told(std::string_view issue_key, const std::string& group);
  /// It was calm for long enough, and its groups have said so.
  void calm(std::string_view issue_key, const std::string& route_id);
  /// What is too old to count goes.
  void forget(core::WallTime now);
  /// Issues damped somewhere.
  [[nodiscard]] std::size_t flapping() const;

  core::Status restore(std::string_view key, std::string_view value) {
    return table_.restore(key, value);
  }
  void take(std::vector<StateRecord>& out) { table_.take(out); }
  void snapshot(std::vector<StateRecord>& out) const { table_.snapshot(out); }

 private:
  Table<FlapState> table_{"flap"};
};

}  // namespace tocsin::routing
