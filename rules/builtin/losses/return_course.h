// Whether returns rise above those of the first episodes: the rule reward's state of one series of returns,
// and of one explained variance. Trivially copyable, O(1).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "rules/evidence/doubled_looks.h"
#include "rules/evidence/student.h"

namespace tocsin::rules {

/// What H₀ holds of a run that needs nobody, and how often it may be rejected by mistake.
struct RewardBounds {
  double margin = 0.5;        // of the deviation of the first returns
  double alpha = 0.0005;      // per kind and series
  double transitions = 1000;  // that what should vary may stay the same
  double updates = 10000;     // before returns are judged, without a plan
  double patience = 100000;   // the same of what may come late, without a plan
};

/// What was said of the whole run by now.
struct RewardRun {
  double updates = 0;
  double planned = 0;              // updates; 0: not known
  double planned_transitions = 0;  // 0: not known
  double transitions = 0;
  double environments = 1;
  double explores = 0;     // share of random actions, the lowest so far
  double explores_at = 0;  // updates when it last fell; 0: nobody says
  double explored = 0;     // the first of them

  /// How much of the plan is done; 0: there is none.
  [[nodiscard]] double share() const {
    return std::max(planned > 0 ? updates / planned : 0,
                    planned_transitions > 0 ? transitions / planned_transitions : 0);
  }
  /// The last update that counts: of the plan; without one as many again as were done.
  [[nodiscard]] double end() const {
    const double done = share();
    return done > 0 ? updates / std::min(done, 1.0) : 2 * updates;
  }
};

/// The mean of the newest half of the episodes beside that of the first.
struct ReturnComparison {
  double episodes = 0;  // of the newest half
  double mean = 0;
  double first_episodes = 0;
  double first = 0;
  double deviation = 0;  // of the first episodes
  double error = 0;      // of mean − first
  double first_error = 0;
  std::int64_t freedom = 0;
  double from = 0;  // update at which the newest half begins

  [[nodiscard]] bool known() const { return freedom > 2 && deviation > 0; }
  [[nodiscard]] double gain() const { return mean - first; }
  [[nodiscard]] double upper(double alpha) const {
    return gain() + student_quantile(alpha, static_cast<int>(freedom)) * error;
  }
  [[nodiscard]] double lower(double alpha) const {
    return gain() - student_quantile(alpha, static_cast<int>(freedom)) * error;
  }
};

struct ReturnCourse {
  static constexpr double kFirst = 20;  // episodes at least that stand for the trivial policy
  static constexpr double kFirstShare = 0.05;  // of all
  static constexpr double kPasses = 2;         // episodes of each environment among them
  static constexpr double kArrival = 0.01;  // of the bound that says that the margin is not reached

  DoubledLooks looks;  // weight: episodes; difference: Σ return; unit: Σ return²
  DoubledLooks jumps;  // weight, entries: as above; difference: Σ (return − the one before)²
  double episodes = 0;
  double last = 0;   // entry
  double exact = 1;  // every episode has been told
  std::uint64_t varied = 0;
  std::uint64_t better = 0;  // shown once
  std::uint64_t told = 0;    // at the newest look it was no better
  std::uint64_t fallen = 0;  // and had become worse by the margin
  double told_at = 0;
  ReturnComparison newest;

  /// Episodes whose returns are summed up. `exact`: no means over episodes that were told before.
  void add(double number, double sum, double squares, bool is_exact, const RewardRun& run,
           const RewardBounds& bounds) {
    const double mean = sum / number;
    const double jump = episodes > 0 && !is_exact ? (mean - last) * (mean - last) : 0;
    // Means that are equal may hide returns that are not.
    if ((episodes > 0 && mean != last) || squares - mean * sum > kRounding * squares) varied = 1;
    last = mean;
    exact = is_exact ? exact : 0;
    episodes += number;
    jumps.add(number, jump, 1, run.updates);
    if (looks.add(number, sum, squares, run.updates)) look(run, bounds, looks.looks);
  }
  /// The run is over: what stands now is what it came to.
  void look_at_end(RewardRun run, const RewardBounds& bounds) {
    run.planned = run.updates;
    run.planned_transitions = 0;
    if (told != 0) look(run, bounds, looks.looks + 1);
  }

  [[nodiscard]] ReturnComparison compared(const RewardRun& run) const {
    ReturnComparison out;
    const auto used = static_cast<std::size_t>(looks.used);
    const double wanted = std::max({kFirst, kFirstShare * episodes, kPasses * run.environments});
    DoubledLooks::Block first;
    double steps = 0;
    for (std::size_t i = 0; i < used && first.weight < wanted; ++i) {
      first.add(looks.blocks[i]);
      steps += jumps.blocks[i].difference;
    }
    const DoubledLooks::Block window = looks.window();
    if (first.entries + window.entries > total_entries() || first.weight < 2) return out;
    const BlockMean mean = looks.mean(0);
    out.episodes = window.weight;
    out.mean = mean.mean;
    out.first_episodes = first.weight;
    out.first = first.difference / first.weight;
    out.from = looks.from();
    // Entries that are means of the same episodes are alike: (1 + r) / (1 − r) times fewer.
    double number = first.weight;
    const double squares = std::max(0.0, first.unit - first.difference * out.first);
    out.deviation = std::sqrt(squares / (first.weight - 1));
    if (exact == 0 && squares > 0) {
      const double alike = std::clamp(1 - steps / (2 * squares) + 1 / std::sqrt(number), 0.0, 0.98);
      number *= (1 - alike) / (1 + alike);
    }
    if (number < 2) return out;
    out.first_error = out.deviation / std::sqrt(number);
    out.error = std::hypot(out.first_error, mean.error);
    out.freedom = std::min<std::int64_t>(mean.blocks - 1, static_cast<std::int64_t>(number) - 1);
    return out;
  }

 private:
  static constexpr double kRounding = 1e-9;
  [[nodiscard]] double total_entries() const {
    DoubledLooks::Block all;
    for (std::size_t i = 0; i < static_cast<std::size_t>(looks.used); ++i) all.add(looks.blocks[i]);
    return all.entries;
  }
  void look(const RewardRun& run, const RewardBounds& bounds, double number) {
    newest = compared(run);
    told_at = run.updates;
    told = fallen = 0;
    if (!newest.known()) return;
    const double alpha = bounds.alpha * std::exp2(-number);
    if (newest.lower(alpha) > 0) better = 1;
    const bool at_floor = run.explores_at <= newest.from;
    if (better != 0 || !at_floor) return;
    const double margin = bounds.margin * newest.deviation;
    if (newest.upper(alpha) >= margin) return;
    const BlockMean line = looks.mean(0);
    const double ahead = run.end() - line.middle;
    const double error = std::hypot(line.line_error, line.slope_error * ahead, newest.first_error);
    const double arrives =
        line.mean + line.slope * ahead - newest.first +
        student_quantile(kArrival,
                         static_cast<int>(std::max<std::int64_t>(newest.freedom - 1, 1))) *
            error;
    told = arrives < margin ? 1 : 0;
    fallen = newest.upper(alpha) < -margin ? 1 : 0;
  }
};

/// Whether answers have become long beside the first ones: the mean of the newest half of the entries, as a multiple of
/// the mean of the first.
struct LengthCourse {
  static constexpr double kTimes = 3;

  ReturnCourse course;
  std::uint64_t known = 0;  // a look has said something
  std::uint64_t grown = 0;  // at the newest look

  void add(double length, const RewardRun& run, const RewardBounds& bounds) {
    const double looks = course.looks.looks;
    course.add(1, length, length * length, false, run, bounds);
    if (course.looks.looks == looks) return;
    const ReturnComparison& now = course.newest;
    known = now.known() && now.first > 0 ? 1 : 0;
    if (known == 0) return;
    const double newest = now.error * now.error - now.first_error * now.first_error;
    const double error =
        std::sqrt(std::max(newest, 0.0) + kTimes * kTimes * now.first_error * now.first_error);
    const double alpha = bounds.alpha * std::exp2(-course.looks.looks);
    grown = now.mean - student_quantile(alpha, static_cast<int>(now.freedom)) * error >
                    kTimes * now.first
                ? 1
                : 0;
  }
};

/// Whether values predict returns: shares of their variance, at most 1, −1 for all that is below.
struct ExplainedCourse {
  DoubledLooks looks;
  double entries = 0;
  double newest = 0;
  std::uint64_t told = 0;
  std::uint64_t fine = 0;  // at the newest look surely above 0
  double told_at = 0;
  double from = 0;
  double mean = 0;

  void add(double share, const RewardRun& run, const RewardBounds& bounds) {
    newest = share;
    ++entries;
    if (!looks.add(1, std::clamp(share, -1.0, 1.0), 1, run.updates)) return;
    const BlockMean window = looks.mean(0);
    const double alpha = bounds.alpha * std::exp2(-looks.looks);
    mean = window.mean;
    from = looks.from();
    told_at = run.updates;
    fine = window.lower(alpha) > 0 ? 1 : 0;
    told =
        window.upper(alpha) < 0 && window.upper_at(run.end(), ReturnCourse::kArrival) < 0 ? 1 : 0;
  }
};

}  // namespace tocsin::rules
