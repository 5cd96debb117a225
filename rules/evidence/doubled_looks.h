// Means of paired differences, looked at only when their number has doubled.
//
// A loss has no bound, so its mean is judged by Student's t of 32 blocks, whose length doubles with
// every look: the window of a look is the newer half of all that came. Look k spends α·2⁻ᵏ, so all
// looks of a run together err with probability α at most. Neighbouring blocks may be alike (batches of
// one epoch, a slow drift): the error is widened by their correlation. Approximate, for any number of
// looks; tests/unit/rules/evidence/null_streams_test.cc says how well it holds.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "rules/evidence/student.h"

namespace tocsin::rules {

/// A mean of blocks and what a straight line through them says of later. In units per sample.
struct BlockMean {
  int blocks = 0;
  double mean = 0;
  double error = 0;   // of the mean
  double middle = 0;  // place of the mean
  double slope = 0;   // per unit of place
  double slope_error = 0;
  double line_error = 0;  // of the line in the middle
  double length = 0;      // places that the blocks cover

  [[nodiscard]] bool known() const { return blocks > 2; }
  /// One-sided bounds of the mean, each wrong with probability `alpha`.
  [[nodiscard]] double upper(double alpha) const {
    return mean + student_quantile(alpha, blocks - 1) * error;
  }
  [[nodiscard]] double lower(double alpha) const {
    return mean - student_quantile(alpha, blocks - 1) * error;
  }
  /// Lower bound of how far the line rises over the blocks.
  [[nodiscard]] double rise(double alpha) const {
    return (slope - student_quantile(alpha, blocks - 2) * slope_error) * length;
  }
  /// Where the line stands at `place`.
  [[nodiscard]] double at(double place) const { return mean + slope * (place - middle); }
  /// Upper bound of where the line stands at `place`.
  [[nodiscard]] double upper_at(double place, double alpha) const {
    const double ahead = place - middle;
    return mean + slope * ahead +
           student_quantile(alpha, blocks - 2) * std::hypot(line_error, slope_error * ahead);
  }
};

/// Trivially copyable, without padding.
struct DoubledLooks {
  static constexpr std::size_t kWindow = 32;  // blocks of a look
  static constexpr std::size_t kBlocks = 2 * kWindow;
  static constexpr double kMostAlike = 0.8;  // correlation of neighbours
  static constexpr double kError = 0.75;     // of how well it is known

  struct Block {
    double entries = 0;
    double weight = 0;      // Σ of samples
    double difference = 0;  // Σ over the samples
    double unit = 0;        // Σ of what the difference is measured by
    double place = 0;       // Σ of the entries' places

    void add(const Block& other) {
      entries += other.entries;
      weight += other.weight;
      difference += other.difference;
      unit += other.unit;
      place += other.place;
    }
  };

  std::array<Block, kBlocks> blocks{};
  double used = 0;    // blocks
  double length = 1;  // entries of a block
  double looks = 0;   // so far

  /// One entry: sums over its samples (`weight` > 0), at a place (updates so far). True: time to look.
  bool add(double weight, double difference, double unit, double place) {
    if (count() == kBlocks && blocks[kBlocks - 1].entries >= length) merge();
    if (count() == 0 || blocks[count() - 1].entries >= length) {
      ++used;
      blocks[count() - 1] = {};
    }
    blocks[count() - 1].add({1, weight, difference, unit, place});
    const bool full = count() == kBlocks && blocks[kBlocks - 1].entries >= length;
    if (full) ++looks;
    return full;
  }
  /// Entries until the next look.
  [[nodiscard]] double missing() const {
    const double have = count() == 0 ? 0 : (used - 1) * length + blocks[count() - 1].entries;
    const double at = kBlocks * length;
    return have >= at ? at : at - have;
  }
  /// Where the window begins.
  [[nodiscard]] double from(double since = 0) const {
    const std::size_t i = first_since(since);
    return i == count() ? 0 : blocks[i].place / blocks[i].entries;
  }
  /// Sums over the newest blocks (all, where there are fewer).
  [[nodiscard]] Block window(std::size_t number = kWindow) const {
    Block out;
    for (std::size_t i = count() - std::min(count(), number); i < count(); ++i) out.add(blocks[i]);
    return out;
  }
  /// Of (difference − margin·unit) per sample over the same blocks, as far as they lie behind `since`.
  [[nodiscard]] BlockMean mean(double margin, double since = 0) const {
    BlockMean out;
    std::array<double, kWindow> y{};
    std::array<double, kWindow> x{};
    std::size_t n = 0;
    for (std::size_t i = first_since(since); i < count(); ++i, ++n) {
      y[n] = (blocks[i].difference - margin * blocks[i].unit) / blocks[i].weight;
      x[n] = blocks[i].place / blocks[i].entries;
      out.mean += y[n];
      out.middle += x[n];
    }
    out.blocks = static_cast<int>(n);
    if (n < 3) return out;
    const auto number = static_cast<double>(n);
    out.mean /= number;
    out.middle /= number;
    out.length = (x[n - 1] - x[0]) * number / (number - 1);
    double xx = 0;
    double xy = 0;
    for (std::size_t i = 0; i < n; ++i) {
      y[i] -= out.mean;
      x[i] -= out.middle;
      xx += x[i] * x[i];
      xy += x[i] * y[i];
    }
    out.error = std::sqrt(widened(y, n) / (number - 1) / number);
    out.slope = xx > 0 ? xy / xx : 0;
    for (std::size_t i = 0; i < n; ++i) y[i] -= out.slope * x[i];
    const double rest = widened(y, n) / (number - 2);
    out.slope_error = xx > 0 ? std::sqrt(rest / xx) : 0;
    out.line_error = std::sqrt(rest / number);
    return out;
  }

 private:
  [[nodiscard]] std::size_t count() const { return static_cast<std::size_t>(used); }
  [[nodiscard]] std::size_t first() const { return count() - std::min(count(), kWindow); }
  [[nodiscard]] std::size_t first_since(double place) const {
    std::size_t i = first();
    while (i < count() && blocks[i].place < place * blocks[i].entries) ++i;
    return i;
  }
  void merge() {
    for (std::size_t i = 0; i < kWindow; ++i) {
      blocks[i] = blocks[2 * i];
      blocks[i].add(blocks[2 * i + 1]);
    }
    for (std::size_t i = kWindow; i < kBlocks; ++i) blocks[i] = {};
    used = kWindow;
    length *= 2;
  }
  // Σ y², as large as it would be of independent blocks. Few blocks show a correlation r that is too
  // small by (1 + 4r)/n on average, and by more half of the time: that and 0.75 of its error 1/√n is what
  // keeps neighbours with r = 0.5 within the rate (null_streams_test.cc).
  static double widened(const std::array<double, kWindow>& y, std::size_t n) {
    double squares = 0;
    double products = 0;
    for (std::size_t i = 0; i < n; ++i) {
      squares += y[i] * y[i];
      if (i > 0) products += y[i] * y[i - 1];
    }
    if (squares <= 0) return 0;
    double alike = products / squares;
    const auto number = static_cast<double>(n);
    alike =
        std::clamp(alike + (1 + 4 * alike) / number + kError / std::sqrt(number), 0.0, kMostAlike);
    return squares * (1 + alike) / (1 - alike);
  }
};

}  // namespace tocsin::rules
