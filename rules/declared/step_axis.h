// Where steps of all modes stand on one axis, the same for all workers: that of training. What is
// evaluated stands behind the train step that was ended before it; a pass is one place. Global steps
// are no such axis: workers that evaluate alone count more of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "rules/contract/archive.h"
#include "rules/contract/selection.h"
#include "rules/evaluate/evaluator.h"
#include "rules/evaluate/spare_nodes.h"

namespace tocsin::rules::declared {

class StepAxis {
 public:
  static constexpr std::int64_t kNever = INT64_MIN;

  /// `after_train`: newest train step that had ended; kNever: none. Without training the steps of an
  /// evaluation are an axis of their own, far before the first train step.
  static std::int64_t place_of(core::Mode mode, std::int64_t step, std::int64_t after_train) {
    constexpr std::int64_t kFar = std::int64_t{1} << 40;
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    const bool trains = mode == core::Mode::train || mode == core::Mode::global;
    if (trains) return 2 * std::clamp(step, -kMost, kMost);
    if (after_train != kNever) return 2 * std::clamp(after_train, -kMost, kMost) + 1;
    return 2 * std::clamp(step - kFar, -kMost, kMost) + 1;
  }
  /// How many train steps lie between two places.
  static std::int64_t steps(std::int64_t from, std::int64_t to) { return (to >> 1) - (from >> 1); }

  void ended(const WorkerStep& step) {
    if (step.mode == core::Mode::train) {
      std::int64_t& newest = trained_.try_emplace(step.worker, step.step).first->second;
      newest = std::max(newest, step.step);
      return;
    }
    if (step.mode == core::Mode::global) return;
    const auto known = trained_.find(step.worker);
    const std::int64_t after = known == trained_.end() ? kNever : known->second;
    const auto [behind, fresh] =
        nodes_.reused(after_, {static_cast<std::uint8_t>(step.mode), step.step});
    *behind = fresh ? after : std::max(*behind, after);
  }
  /// nullopt: an evaluation that nobody has ended.
  [[nodiscard]] std::optional<std::int64_t> place(core::Mode mode, std::int64_t step) const {
    if (mode == core::Mode::train || mode == core::Mode::global)
      return place_of(mode, step, kNever);
    const auto known = after_.find({static_cast<std::uint8_t>(mode), step});
    if (known == after_.end()) return std::nullopt;
    return place_of(mode, step, known->second);
  }
  /// Nothing up to this place is asked for any more.
  void settled(std::int64_t place) {
    for (auto one = after_.begin(); one != after_.end();) {
      const auto mode = static_cast<core::Mode>(one->first.first);
      const bool over = place_of(mode, one->first.second, one->second) <= place;
      one = over ? nodes_.erase(after_, one) : std::next(one);
    }
  }
  void restarted(std::uint32_t worker) { trained_.erase(worker); }

  template <typename A>
  friend void io(A& a, StepAxis& s) {
    io_all(a, s.trained_, s.after_);
  }

 private:
  std::map<std::uint32_t, std::int64_t> trained_;  // by worker
  using After = std::map<std::pair<std::uint8_t, std::int64_t>, std::int64_t>;
  After after_;                  // of evaluations
  SpareNodes<After, 64> nodes_;  // not in snapshots
};

}  // namespace tocsin::rules::declared
