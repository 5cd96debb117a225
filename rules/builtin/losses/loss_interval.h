// The interval test of loss_not_decreasing's preset original: every num_steps steps the loss against
// the newest one that is at least so many steps older.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>

#include "rules/builtin/losses/loss_curve.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {

struct LossLimits {
  std::int64_t num_steps = 10;
  double diff_percent = 0.1;
  double increase_threshold_percent = 5;
  std::uint32_t flat_evaluations = 0;
};

/// Trivially copyable state of one series and its transition.
struct LossInterval {
  static constexpr std::uint32_t kRow = 64;
  static constexpr std::uint32_t kMostSaved = 1U << 14;  // between two evaluations

  bool anchored = false;
  Gap<3> gap{};
  std::uint32_t kept = 0;      // saved values since the last evaluation
  std::int64_t evaluated = 0;  // its step
  LossPoint before{};          // what it compared,
  LossPoint newest{};
  double change = 0;                        // and by how many percent the loss fell
  std::array<LossPoint, kRow> reference{};  // of the latest evaluations, for flat_evaluations
  std::array<double, kRow> loss{};
  std::uint32_t row = 0;  // evaluations without a break
  Gap<4> gap_after_row{};
  LossPoint row_start{};  // the reference of the first of those that are stuck

  /// Takes one saved loss; nullopt while no evaluation is due.
  std::optional<Verdict> judge_interval(const LossLimits& limits, SeriesMemory& memory,
                                        const SeriesKey& key, std::int64_t step, double value) {
    if (!anchored) {
      anchored = true;
      evaluated = step;
      save(memory, key, {step, value});
      return kInsufficient;
    }
    if (distance(step, evaluated) < limits.num_steps) {
      save(memory, key, {step, value});
      return std::nullopt;
    }
    // Steps ascend: the newest that is old enough.
    std::uint32_t low = 0;
    std::uint32_t high = kept;
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      const bool old = distance(step, saved(memory, key, middle)->step) >= limits.num_steps;
      (old ? low : high) = middle;
    }
    const LossPoint* found = saved(memory, key, low);
    if (found == nullptr) return kInsufficient;
    before = *found;
    newest = {step, value};
    evaluated = step;
    kept = 0;
    save(memory, key, newest);
    return compare(limits);
  }

 private:
  /// So many of the saved values since the last evaluation, oldest first.
  struct Block {
    std::array<LossPoint, 64> saved{};
  };

  static LossPoint* saved(SeriesMemory& memory, const SeriesKey& key, std::uint32_t number) {
    constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;
    constexpr std::uint8_t kBlocks = 0x40;  // marks the memory of a series' saved values
    constexpr std::uint32_t kSize = 64;
    auto* block = memory.of<Block>(
        {key.name ^ (kOdd * (number / kSize)), static_cast<std::uint8_t>(key.mode | kBlocks)});
    return block == nullptr ? nullptr : &block->saved[number % kSize];
  }

  void save(SeriesMemory& memory, const SeriesKey& key, const LossPoint& value) {
    if (kept >= kMostSaved) return;
    if (LossPoint* place = saved(memory, key, kept)) {
      *place = value;
      ++kept;
    }
  }

  Verdict compare(const LossLimits& limits) {
    const double older = before.loss;
    change = 100 * (older - newest.loss) / std::fabs(older);
    if (!std::isfinite(older) || std::isnan(newest.loss)) {
      row = 0;
      return kInsufficient;
    }
    if (older == 0) {
      row = 0;
      return newest.loss > 0 ? hit(kIncrease) : kOk;
    }
    unsigned kinds = flat_row(limits) ? 1U << kStuck : 0;
    if (change < 0) {
      if (-change > limits.increase_threshold_percent) kinds |= 1U << kIncrease;
    } else if (change == 0 || change < limits.diff_percent) {
      kinds |= 1U << kPlateau;
    }
    if (kinds == 0) return kOk;
    return {EvaluationOutcome::hit, static_cast<std::uint8_t>(kinds)};
  }

  // True when none of the last k evaluations fell by diff_percent below the reference of the first.
  bool flat_row(const LossLimits& limits) {
    const std::uint32_t k = limits.flat_evaluations;
    if (k == 0) return false;
    reference[row % k] = before;
    loss[row % k] = newest.loss;
    ++row;
    if (row < k) return false;
    row_start = reference[row % k];  // of the oldest of the k
    const double from = row_start.loss;
    return std::all_of(loss.begin(), loss.begin() + k, [&](double value) {
      return 100 * (from - value) / std::fabs(from) < limits.diff_percent;
    });
  }
};

}  // namespace tocsin::rules
