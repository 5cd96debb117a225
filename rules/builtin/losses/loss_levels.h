// The course of a training loss in means of eight values, chunks, and how it stands to its own lower envelope: `rise`,
// `lost`, `spike`, `spread` of course. All is asked in units of the noise of chunks, from differences of neighbours (von
// Neumann), which a trend hardly adds to; so nothing changes when a loss is scaled or moved across zero.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "rules/evidence/rise_evidence.h"

namespace tocsin::rules {

struct CourseBounds {
  double skill = 0.02;  // of the trivial loss: what a job must gain
  double gain = 0.1;    // of the first loss, where the trivial one is not known
  double back = 0.5;    // of the gain, given back
  double jump = 0.25;   // of the gain, given back within a few values
  double turn = 0.1;    // of the gain, given back by an evaluation
  double alpha =
      0.0003;  // of a false alarm per kind and run: 0.15 · 0.01 over the five kinds that are no certainty
};

/// What is known of the step at which a chunk ends.
struct CourseMoment {
  std::int64_t step = 0;
  double updates = 0;  // so far
  double end = 0;      // updates: of the plan; without one twice as many as so far
  double trivial =
      std::numeric_limits<double>::quiet_NaN();  // loss of the best constant; NaN: not known
};

/// Trivially copyable, without padding.
struct LossLevels {
  static constexpr double kChunk = 8;  // values
  static constexpr double kKnown = 8;  // differences of chunks that tell their noise
  static constexpr double kStays =
      8;  // one part in so many of what came before: how long a level must stay
  static constexpr double kLeast = 3;      // chunks that it must stay at least
  static constexpr double kJump = 8;       // errors of a chunk that make a jump
  static constexpr double kUsual = 32;     // chunks after which a level is the usual one
  static constexpr double kTenfold = 100;  // times the variance: ten times the scatter
  static constexpr double kWorse = 1.1;    // times the trivial loss
  static constexpr double kRounding = 1e-6;
  static constexpr std::size_t kNewest = 4;
  enum Kind : unsigned { kRise, kLost, kSpike, kSpread, kKinds };

  // the chunk that is under way
  double count = 0;
  double sum = 0;
  double wobble = 0;  // Σ of squared differences of neighbours
  double before = 0;  // the value before
  // all chunks
  double chunks = 0;
  double first = 0;
  double newest = 0;
  double differences = 0;                   // Σ of (chunk − the one before)² / 2
  double scatters = 0;                      // Σ of the variance within chunks
  double positive = 1;                      // 1: every value was above 0
  std::array<double, kNewest> levels{};     // newest last
  std::array<double, kNewest> variances{};  // within; newest last
  // since the rate or the task changed
  double best = HUGE_VAL;  // of two neighbours the upper one
  double best_step = 0;
  double restarts = 0;      // of the run, when it began
  double trivial_then = 0;  // loss of the best constant when the best was found; 0: not known
  // at the newest chunk
  double noise = 0;   // of a chunk; 0: not known
  double gained = 0;  // surely, since the first
  double limit_lost = 0;
  double limit_rise = 0;
  double since = 0;  // step since which that is so of which is told
  RiseEvidence rise;
  RiseEvidence lost;
  double rise_since = 0;
  double lost_since = 0;
  // a jump
  double row = 0;  // chunks in a row above
  double row_sum = 0;
  double usual = 0;  // level before
  double row_since = 0;

  /// Whether a chunk has ended.
  bool take(double value) {
    if (!(value > 0)) positive = 0;
    if (count > 0) wobble += (value - before) * (value - before);
    before = value;
    sum += value;
    return ++count == kChunk;
  }

  /// Begins anew below: the rate rose, or the task is another one.
  void restart(double number) {
    best = HUGE_VAL;
    restarts = number;
    rise = {};
    lost = {};
    row = 0;
  }

  /// At the end of a chunk. Returns kinds as bits.
  unsigned judge(const CourseMoment& now, const CourseBounds& bounds) {
    const double level = sum / kChunk;
    const double variance = wobble / 2 / (kChunk - 1);
    count = sum = wobble = 0;
    if (chunks == 0) first = level;
    std::rotate(variances.begin(), variances.begin() + 1, variances.end());
    variances.back() = variance;
    measure(level);
    unsigned kinds = 0;
    if (noise > 0) kinds = compare(level, now, bounds);
    remember(level, variance, now);
    return kinds;
  }

  /// ln of the evidence that is enough: a mean time between false alarms of all chunks of the run / α.
  [[nodiscard]] double enough(const CourseMoment& now, const CourseBounds& bounds) const {
    const double all = chunks * now.end / std::max(now.updates, 1.0);
    return std::log(std::max(all, 2.0) / bounds.alpha);
  }
  /// The loss holds what it has surely gained: evidence for health.
  [[nodiscard]] bool holds() const { return gained > 0 && newest < limit_lost; }

 private:
  // The noise of a chunk: of their differences so far, widened while few are known, and at least what the scatter within
  // the newest explains.
  void measure(double level) {
    noise = 0;
    const double pairs = chunks - 1;
    if (pairs < kKnown) return;
    double within = 0;
    for (const double variance : variances) within += variance / kNewest / kChunk;
    noise = std::sqrt(std::max(differences / pairs, within)) * (1 + 1 / std::sqrt(pairs));
    noise = std::max(noise, kRounding * (std::fabs(first) + std::fabs(level)));
  }

  unsigned compare(double level, const CourseMoment& now, const CourseBounds& bounds) {
    // The least of all chunks is a lucky one: by a bound that holds for all of them at once.
    const double error = noise * std::sqrt(2 * std::log(chunks / bounds.alpha));
    gained = std::isfinite(best) ? std::max(0.0, first - best - 2 * error) : 0;
    limit_lost = best + error + bounds.back * gained;
    limit_rise = rise_limit(error, now);
    unsigned kinds = 0;
    if (gained > 0) {
      add(lost, lost_since, level, limit_lost, now);
      if (stays(lost, level, limit_lost, now, bounds)) kinds |= 1U << kLost;
    } else {
      lost = {};
    }
    add(rise, rise_since, level, limit_rise, now);
    if (stays(rise, level, limit_rise, now, bounds)) kinds |= 1U << kRise;
    if (jumps(level, now, bounds)) kinds |= 1U << kSpike;
    if (spreads(bounds)) kinds |= 1U << kSpread;
    return kinds;
  }

  [[nodiscard]] double rise_limit(double error, const CourseMoment& now) const {
    if (now.trivial > 0) return std::max(first + error, kWorse * now.trivial);
    const double scatter = kJump * noise * std::sqrt(kChunk);
    return first + error + std::max({gained, scatter, positive > 0 ? first : 0.0});
  }

  void add(RiseEvidence& evidence, double& begun, double level, double limit,
           const CourseMoment& now) const {
    if (evidence.number == 0) begun = static_cast<double>(now.step);
    evidence.add((level - limit) / noise);
  }
  // Long enough, and not on its way back.
  [[nodiscard]] bool stays(const RiseEvidence& evidence, double level, double limit,
                           const CourseMoment& now, const CourseBounds& bounds) const {
    return evidence.evidence() >= enough(now, bounds) && lasts(evidence.number) &&
           (level - limit) / noise >= evidence.mean() - 1;
  }
  [[nodiscard]] bool lasts(double number) const {
    return number >= kLeast && number * kStays >= chunks + 1 - number;
  }

  bool jumps(double level, const CourseMoment& now, const CourseBounds& bounds) {
    if (row == 0) {
      usual = 0;
      for (const double one : levels) usual += one / kNewest;
    }
    const double least = std::max(kJump * noise, bounds.jump * gained);
    if (gained == 0 || level <= usual + least || row >= kUsual) {
      row = 0;
      row_sum = 0;
      return false;
    }
    if (row == 0) row_since = static_cast<double>(now.step);
    ++row;
    row_sum += level;
    return lasts(row) && level >= row_sum / row - noise;
  }

  // Each of the newest four scatters ten times as much as all before, and the mean has not moved.
  [[nodiscard]] bool spreads(const CourseBounds& bounds) const {
    const double older = chunks + 1 - kNewest;
    if (gained == 0 || older < kKnown) return false;
    double newer = 0;  // of the chunks that `scatters` holds
    for (std::size_t i = 0; i + 1 < kNewest; ++i) newer += variances[i];
    const double reference = std::max(scatters - newer, 0.0) / older;
    double least = HUGE_VAL;
    for (const double variance : variances) least = std::min(least, variance);
    return least > kTenfold * reference && std::sqrt(least) >= bounds.jump * gained &&
           newest <= limit_lost;
  }

  void remember(double level, double variance, const CourseMoment& now) {
    if (chunks > 0) differences += (level - newest) * (level - newest) / 2;
    scatters += variance;
    std::rotate(levels.begin(), levels.begin() + 1, levels.end());
    levels.back() = level;
    newest = level;
    ++chunks;
    // Of two neighbours the upper one: a single value far below says nothing of the level.
    const double pair = std::max(level, levels[kNewest - 2]);
    if (chunks > 1 && pair < best) {
      best = pair;
      best_step = static_cast<double>(now.step);
      trivial_then = now.trivial > 0 ? now.trivial : 0;
    }
  }
};

}  // namespace tocsin::rules
