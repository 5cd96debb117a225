// What is noise in a series of losses: scatter of single values, means with their errors, a line with
// its error. loss_not_decreasing's default preset asks them whether a change is one.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "rules/contract/whole.h"

namespace tocsin::rules {

/// Numbers by their mean and scatter. Trivially copyable.
struct LossBlock {
  double n = 0;
  double mean = 0;
  double m2 = 0;

  void add(double x) {
    ++n;
    const double d = x - mean;
    mean += d / n;
    m2 += d * (x - mean);
  }
  void merge(const LossBlock& other) {
    if (other.n == 0) return;
    const double all = n + other.n;
    const double d = other.mean - mean;
    mean += d * other.n / all;
    m2 += other.m2 + d * d * n * other.n / all;
    n = all;
  }
  [[nodiscard]] double variance() const { return n < 2 ? 0 : m2 / (n - 1); }
};

/// The standard deviation of single values around their own course, whatever way that takes: from
/// second differences, which a straight course does not have. Trivially copyable.
struct LossScatter {
  double sum = 0;
  std::uint64_t values = 0;
  std::array<double, 2> before{};  // newest first

  void add(double x) {
    if (values >= 2) sum += std::fabs(x - 2 * before[0] + before[1]);
    before = {x, before[0]};
    ++values;
  }
  /// How many differences it is made of.
  [[nodiscard]] double known() const { return values < 3 ? 0 : static_cast<double>(values - 2); }
  /// Independent errors of deviation 1 have second differences of √6 · √(2/π) on average.
  [[nodiscard]] double deviation() const { return values < 3 ? 0 : sum / known() / 1.954; }
};

/// Whether `later` lies above `best` by more than `margin` and by more than `factor` standard errors.
/// `scatter`: deviation of single values when the best was found; the best of many is a lucky one, and
/// among few values a lucky one looks as if it had no scatter. Losses of small batches scatter by a
/// share of their size, so positive ones had at least the later ones' share of theirs.
inline bool surely_above(const LossBlock& later, const LossBlock& best, double scatter,
                         double margin, double factor) {
  if (later.n == 0 || best.n == 0) return false;
  const double share = later.mean > 0 && best.mean > 0 ? best.mean / later.mean : 0;
  const double least = std::max(scatter * scatter, share * share * later.variance());
  const double error = std::max(best.variance(), least) / best.n;
  const double rise = later.mean - best.mean;
  // More while few values tell, though less than quantiles of Student's distribution would ask for.
  const double known = std::min(later.n, best.n);
  const double student = 1 + 10 / (known * known);
  return rise > margin && rise > factor * student * std::sqrt(error + later.variance() / later.n);
}

/// How the first value of a series stands to those that follow. Losses of single batches scatter by a
/// share of their size, so positive ones are compared by their logarithms. Trivially copyable.
struct LossStart {
  static constexpr std::size_t kNewest = 5;
  /// A single batch tells the level of a loss within a factor of three.
  static constexpr double kLevel = 3;

  double first = 0;
  bool positive = true;
  Gap<7> gap{};
  LossScatter plain;
  LossScatter logs;
  std::array<double, kNewest> newest{};  // newest first

  void add(double x) {
    if (!begun_) {
      begun_ = true;
      first = x;
      positive = x > 0;
      return;
    }
    positive = positive && x > 0;
    plain.add(x);
    if (positive) logs.add(std::log(x));
    std::rotate(newest.begin(), newest.end() - 1, newest.end());
    newest.front() = x;
  }
  /// The mean of the newest five.
  [[nodiscard]] double level() const {
    double mean = 0;
    for (const double x : newest) mean += x / kNewest;
    return mean;
  }
  /// Whether the newest five lie so far above the first that it cannot have been one of them: by
  /// `factor` · 4 deviations, more while few differences tell how large one is (as quantiles of
  /// Student's distribution grow).
  [[nodiscard]] bool left(double factor) const {
    const LossScatter& scatter = positive ? logs : plain;
    const double known = scatter.known();
    if (known < kNewest - 2) return false;
    double mean = 0;
    for (const double x : newest) mean += (positive ? std::log(x) : x) / kNewest;
    const double rise = mean - (positive ? std::log(first) : first);
    if (positive && rise < std::log(kLevel)) return false;
    return rise > factor * (4 + 72 / (known * known)) * scatter.deviation();
  }

 private:
  bool begun_ = false;
  Gap<7> gap_at_end_{};
};

/// A straight line through all points, and how well it is known. Trivially copyable.
struct LossTrend {
  double n = 0;
  double mean_x = 0;
  double mean_y = 0;
  double xx = 0;
  double xy = 0;
  double yy = 0;

  void add(double y) {
    const double x = n++;
    const double dx = x - mean_x;
    const double dy = y - mean_y;
    mean_x += dx / n;
    mean_y += dy / n;
    xx += dx * (x - mean_x);
    xy += dx * (y - mean_y);
    yy += dy * (y - mean_y);
  }
  /// By how much the line falls from the first point to the last.
  [[nodiscard]] double gain() const { return -xy / xx * (n - 1); }
  /// Its standard error, for at least 3 points.
  [[nodiscard]] double error() const {
    const double rest = std::max(yy - xy * xy / xx, 0.0) / (n - 2);
    return std::sqrt(rest / xx) * (n - 1);
  }
  /// Its height `back` points before the newest.
  [[nodiscard]] double height(double back) const {
    return mean_y + xy / xx * (n - 1 - back - mean_x);
  }
};

}  // namespace tocsin::rules
