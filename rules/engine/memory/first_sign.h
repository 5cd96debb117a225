// First sign first: which issues of a run began before another one, in the order in which training
// does things (docs/events.md, caused_by).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/issue.h"
#include "rules/engine/memory/open_issue.h"
#include "rules/rules.h"

namespace tocsin::rules {

/// Where in a step it belongs; nullopt: in none (samples of nodes, times, processes). `role`: of the
/// tensor or scalar that was judged, where it is one.
std::optional<std::uint8_t> stage_of(const std::optional<core::Role>& role,
                                     const std::optional<core::TensorRef>& tensor,
                                     const Program& program);
/// Of the tensor that a worker brought as number `slot` (the order of layers), among those of its
/// stage. 0: that stage has no order among its tensors.
std::uint32_t position_in_stage(std::uint8_t stage, std::uint32_t slot);

/// The issues of one run that fire and have a beginning, in its order.
class FirstSigns {
 public:
  static constexpr std::size_t kMost = 3;

  void add(const Beginning& beginning, const OpenKey& key);
  void remove(const Beginning& beginning, const OpenKey& key);
  /// What began before `onset`, earliest first, at most kMost. O(log n).
  [[nodiscard]] std::vector<OpenKey> before(const Onset& onset) const;
  void rebuild(const std::map<OpenKey, Open>& open);

 private:
  // By id among those of one moment: numbers of units depend on who came first.
  std::set<std::tuple<Onset, std::string, OpenKey>> entries_;
};

}  // namespace tocsin::rules
