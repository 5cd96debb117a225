// What a training has planned (docs/ledger.md), and what the lengths of training and schedule say about each other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "rules/contract/sentence.h"

namespace tocsin::rules {

/// Trivially copyable, without padding.
struct TrainingPlan {
  static constexpr std::string_view kPrefix = "ledger/plan/";
  static constexpr std::string_view kRoundsName = "ledger/plan/rounds";
  static constexpr std::string_view kNames[] = {
      "updates",      "schedule", "length",    "stride",         "lowest",        "epochs",
      "accumulation", "rounds",   "shrinkage", "early_stopping", "follows_metric"};
  enum Field : std::size_t {
    kUpdates,
    kSchedule,
    kLength,
    kStride,
    kLowest,
    kEpochs,
    kAccumulation,
    kRounds,
    kShrinkage,
    kEarlyStopping,
    kFollowsMetric
  };
  enum Misfit : unsigned { kEndsEarly, kUnfinished, kPerEpoch, kPerBatch, kMisfits };
  struct Limits {
    double share = 0.01;    // of the largest rate, below which a schedule has ended
    double early = 0.8;     // of the planned updates
    double late = 1.25;     // times these
    double per_epoch = 10;  // times the planned epochs
  };

  double fields[std::size(kNames)] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};  // −1: not said
  std::uint64_t first = 0;  // name of the rate to which the schedule belongs

  [[nodiscard]] double operator[](Field field) const { return fields[field]; }

  static bool has(std::string_view name) { return name.substr(0, kPrefix.size()) == kPrefix; }
  /// What is no number of at least 0, or no field, is not noted.
  void note(std::string_view name, double value) {
    const auto* const found =
        std::find(std::begin(kNames), std::end(kNames), name.substr(kPrefix.size()));
    if (found != std::end(kNames) && value >= 0 && std::isfinite(value)) {
      fields[found - std::begin(kNames)] = value;
    }
  }

  /// For a sentence: not 1.2e+04.
  static std::int64_t whole(double count) {
    return static_cast<std::int64_t>(std::clamp(std::round(count), 0.0, 1e15));
  }

  /// Whether two numbers of one thing are the same, as near as batches make whole updates.
  static bool same(const Limits& limits, double one, double other) {
    return one >= limits.early * other && one <= limits.late * other;
  }

  /// nullopt: the lengths fit, or one of them is not known.
  [[nodiscard]] std::optional<unsigned> misfit(const Limits& limits) const {
    const double updates = fields[kUpdates];
    if (!(updates > 0 && fields[kSchedule] > 0)) return std::nullopt;
    const double ratio = fields[kSchedule] / updates;
    const bool low = fields[kLowest] >= 0 && fields[kLowest] < limits.share;
    // A training that stops by a metric may well end with its schedule, long before its last epoch.
    const bool early = low && ratio < limits.early && !(fields[kEarlyStopping] > 0);
    const bool late = ratio > limits.late;
    if (!early && !late) return std::nullopt;
    if (counts_epochs(limits, early, late)) return kPerEpoch;
    const double accumulation = fields[kAccumulation];
    if (accumulation > 1 && same(limits, early ? 1 / ratio : ratio, accumulation)) return kPerBatch;
    return early ? kEndsEarly : kUnfinished;
  }

  /// Whether the schedule counts epochs where it should count updates, or the other way.
  [[nodiscard]] bool counts_epochs(const Limits& limits, bool early, bool late) const {
    const double epochs = fields[kEpochs];
    const double length = fields[kLength];
    const double stride = fields[kStride];
    if (!(epochs > 0 && length > 0 && stride > 0)) return false;
    const bool each_epoch = stride > 1 && same(limits, stride * epochs, fields[kUpdates]);
    if (late && each_epoch && length > limits.per_epoch * epochs) return true;
    return early && !each_epoch && same(limits, length, epochs);
  }

  /// The call to change. `early`: the schedule is the shorter one.
  [[nodiscard]] std::string advice(unsigned kind, bool early) const {
    if (kind == kPerEpoch && early) {
      return sentence(
          "Its length ({}) counts the {} epochs, but it steps at each update. Call "
          "scheduler.step() once per epoch, or give it {} steps.",
          whole(fields[kLength]), whole(fields[kEpochs]), whole(fields[kUpdates]));
    }
    if (kind == kPerEpoch) {
      return sentence(
          "It steps once per epoch, but its length ({}) counts updates. Call scheduler.step() "
          "after each optimizer.step(), or give it {} steps, one per epoch.",
          whole(fields[kLength]), whole(fields[kEpochs]));
    }
    if (kind == kPerBatch) {
      return early ? sentence(
                         "It steps at each of the {} micro-batches of an update. Call "
                         "scheduler.step() only with optimizer.step().",
                         whole(fields[kAccumulation]))
                   : sentence(
                         "It is {} times too long, the number of micro-batches per update. Give it "
                         "updates, not batches (len(loader) * epochs // accumulation).",
                         whole(fields[kAccumulation]));
    }
    return early ? sentence(
                       "Set the length of the schedule (T_max, total_steps, num_training_steps, "
                       "decay_steps) to the {} planned updates.",
                       whole(fields[kUpdates]))
                 : sentence(
                       "Set the length of the schedule (T_max, total_steps, num_training_steps, "
                       "decay_steps) to the {} planned updates, or train longer.",
                       whole(fields[kUpdates]));
  }
};

}  // namespace tocsin::rules
