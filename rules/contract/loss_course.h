// The course of one worker's training loss, for rules of weights that ask whether training gets better: what
// moves far while the loss falls is learning.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tocsin::rules {

/// Levels of five losses each, of the first loss that the worker told of in training. Constant in size and
/// time. What is no finite number is left out: a step that mixed precision skipped ends no training. While the
/// newest is none nothing is known, and behind five in a row a training begins anew. Trivially copyable.
class LossCourse {
 public:
  static constexpr std::uint64_t kLevel = 5;  // losses of which one mean is made
  static constexpr std::size_t kKept = 8;     // levels that are remembered by their steps
  static constexpr double kErrors = 2;    // by which a level lies below another to be surely below
  static constexpr double kLeast = 0.01;  // of the loss, by which it must have fallen at least

  /// One loss, of a step not before those that came.
  void add(std::uint64_t name, std::int64_t step, double loss) {
    if (name_ == 0) name_ = name;
    if (name != name_) return;
    if (!std::isfinite(loss)) {
      const std::uint64_t lost = lost_ + 1;
      if (lost >= kLevel) *this = LossCourse();
      name_ = name;
      lost_ = lost;
      return;
    }
    lost_ = 0;
    newest_[values_ % kLevel] = loss;
    if (values_ >= 2) wobble_ += std::fabs(loss - 2 * before_[0] + before_[1]);
    before_ = {loss, before_[0]};
    if (++values_ % kLevel != 0) return;
    least_ = levels_ < kKept ? least_ : std::fmin(least_, kept_[levels_ % kKept].mean);
    kept_[levels_++ % kKept] = {step, mean()};
  }

  /// Whether the newest five losses lie surely below all that was known when this step had come: by two
  /// standard errors, and a hundredth. False while too little is known, and where the newest is no number.
  [[nodiscard]] bool fallen_since(std::int64_t step) const {
    if (lost_ > 0 || values_ < 2 * kLevel || !std::isfinite(wobble_)) return false;
    double least = least_;
    for (std::uint64_t i = levels_ - std::min<std::uint64_t>(levels_, kKept); i < levels_; ++i) {
      const Level& level = kept_[i % kKept];
      // The first of all stands for the beginning, whatever its steps.
      if (level.step <= step || i == 0) least = std::fmin(least, level.mean);
    }
    const double fall = least - mean();
    // Independent errors of deviation 1 have second differences of √6 · √(2/π) on average.
    const double deviation = wobble_ / static_cast<double>(values_ - 2) / 1.954;
    const double error = deviation * std::sqrt(2.0 / static_cast<double>(kLevel));
    return std::isfinite(least) && fall > kErrors * error && fall > kLeast * std::fabs(least);
  }

  /// How many values in a row were no finite numbers, up to the newest.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 private:
  struct Level {
    std::int64_t step = 0;  // of its last loss
    double mean = 0;
  };

  [[nodiscard]] double mean() const {
    double sum = 0;
    for (const double loss : newest_) sum += loss / kLevel;
    return sum;
  }

  std::uint64_t name_ = 0;
  std::uint64_t values_ = 0;
  std::uint64_t levels_ = 0;
  std::uint64_t lost_ = 0;  // newest values in a row that are no finite numbers
  std::array<double, kLevel> newest_{};
  std::array<double, 2> before_{};  // newest first
  double wobble_ = 0;               // Σ |second difference|
  double least_ = HUGE_VAL;         // of levels that are not kept any more
  std::array<Level, kKept> kept_{};
};

}  // namespace tocsin::rules
