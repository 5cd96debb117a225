// The lanes, by integration and by number. Internal to actions.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/delivery/delivery_lanes.h"
#include "actions/delivery/lane.h"
#include "core/telemetry.h"

namespace tocsin::actions {

/// Never changes after its construction. Of two options of one integration the first counts.
class LaneTable {
 public:
  LaneTable(std::vector<LaneOptions> options, core::Telemetry& telemetry) {
    for (LaneOptions& one : options) {
      std::string id = one.integration;
      const auto [lane, added] =
          lanes_.try_emplace(std::move(id), std::move(one), telemetry, numbered_.size());
      if (added) numbered_.push_back(&lane->second);
    }
  }

  /// null: there is none.
  [[nodiscard]] Lane* find(std::string_view integration) {
    const auto found = lanes_.find(integration);
    return found == lanes_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] Lane& at(std::size_t number) const { return *numbered_[number]; }
  /// In the order of their numbers.
  [[nodiscard]] const std::vector<Lane*>& all() const noexcept { return numbered_; }

 private:
  std::map<std::string, Lane, std::less<>> lanes_;
  std::vector<Lane*> numbered_;
};

}  // namespace tocsin::actions
