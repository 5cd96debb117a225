// Whether the rows of embeddings still point into different directions: collapse's state of one embedding. O(1).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "rules/builtin/shared/ledger_rows.h"
#include "rules/builtin/shared/pairing_course.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

/// What one step says of one embedding, `ledger/embedding/<name>/<field>`: sums over rows.
struct EmbeddingStep {
  enum Field : std::size_t { rows, alike, farthest, directions, kFields };
  static constexpr std::array<std::string_view, kFields> kNames{"rows", "alike", "farthest",
                                                                "directions"};
  static constexpr std::string_view kPrefix = "embedding/";

  std::array<double, kFields> sums{};
  std::array<double, kFields> sent{};

  [[nodiscard]] bool whole() const {
    return sums[rows] > 0 && sent[rows] == sent[alike] && sent[rows] == sent[farthest] &&
           sent[rows] == sent[directions];
  }
  /// Mean over the rows.
  [[nodiscard]] double operator[](Field field) const { return sums[field] / sums[rows]; }

  /// By name: "embedding/normalize".
  static std::map<std::string, EmbeddingStep> of(const StepSet& set, const Scope& scope) {
    std::map<std::string, EmbeddingStep> out;
    for (const StepRow& row : set.rows) {
      const Name* name =
          row.scalar && std::isfinite(row.row.sum) ? scope.find(row.name()) : nullptr;
      const auto read = name != nullptr ? LedgerName::read(name->text) : std::nullopt;
      if (!read || !read->call.starts_with(kPrefix)) continue;
      const auto* const field = std::find(kNames.begin(), kNames.end(), read->field);
      if (field == kNames.end()) continue;
      EmbeddingStep& step = out[std::string(read->call)];
      const auto at = static_cast<std::size_t>(field - kNames.begin());
      step.sums[at] += row.row.sum;
      ++step.sent[at];
    }
    return out;
  }
};

/// Trivially copyable, without padding.
struct EmbeddingCourse {
  static constexpr double kAlike = 0.98;  // mean cosine of two rows: all point into one direction
  static constexpr double kApart = 0.9;   // at the start, for that to be a change
  static constexpr double kFarthest =
      0.9;                              // of a row from the mean direction: none is left elsewhere
  static constexpr double kLine = 1.5;  // directions: a line
  static constexpr double kSpace = 4;   // at the start, for that to be a change
  static constexpr double kInstances = 8;   // samples of a call that are classes of their own
  static constexpr double kFirstLook = 32;  // updates; then at doubled ones
  static constexpr double kLeast = 6;       // steps of a look

  /// Since the newest look.
  struct Window {
    double steps = 0;
    double from = 0;  // updates at the first of them
    double least_alike = 1;
    double least_farthest = 1;
    double most_directions = 0;
    double alone = 0;  // steps in which each sample was a class of its own
    // Of a straight line through the cosines.
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;
  };

  std::uint64_t standing = 0;  // 1: one direction, 2: a line
  double steps = 0;
  double rows = 0;
  double first_alike = 0;
  double first_directions = 0;
  double alike = 0;
  double directions = 0;
  double look_at = kFirstLook;
  double looks = 0;
  Window window;
  double told_at = 0;
  double first_loss = 0;  // of the losses of a step; 0: not known
  double loss = 0;

  /// `loss`: of the step; 0: not known. `alone`: each sample is a class of its own.
  void train(const EmbeddingStep& step, const PairingRun& run, double its_loss, bool alone) {
    if (!step.whole()) return;
    if (run.updates >= look_at) {
      look(run);
      while (look_at <= run.updates) look_at *= 2;
      window = {};
    }
    alike = step[EmbeddingStep::alike];
    directions = step[EmbeddingStep::directions];
    rows += step.sums[EmbeddingStep::rows];
    if (steps == 0) {
      first_alike = alike;
      first_directions = directions;
    }
    if (its_loss != 0) {
      if (first_loss == 0) first_loss = its_loss;
      loss = its_loss;
    }
    ++steps;
    if (window.steps == 0) window.from = run.updates;
    ++window.steps;
    window.least_alike = std::min(window.least_alike, alike);
    window.least_farthest = std::min(window.least_farthest, step[EmbeddingStep::farthest]);
    window.most_directions = std::max(window.most_directions, directions);
    window.alone += alone ? 1 : 0;
    const double x = run.updates;
    window.x += x;
    window.y += alike;
    window.xx += x * x;
    window.xy += x * alike;
    if (standing == 1 && alike < kApart) standing = 0;
    if (standing == 2 && directions > kSpace) standing = 0;
  }

 private:
  // Of the newer half of the updates: each measured step says it, and a line does not lead out of it.
  void look(const PairingRun& run) {
    if (window.steps < kLeast) return;
    ++looks;
    const bool warm = window.from >= run.rate_at;
    const double n = window.steps;
    const double spread = window.xx - window.x * window.x / n;
    const double slope = spread > 0 ? (window.xy - window.x * window.y / n) / spread : 0;
    const double then = window.y / n + std::min(slope, 0.0) * (run.end() - window.x / n);
    if (warm && first_alike < kApart && window.least_alike > kAlike &&
        window.least_farthest > kFarthest && then > kAlike) {
      tell(1, run);
    } else if (warm && first_directions >= kSpace && window.most_directions < kLine &&
               window.alone == window.steps) {
      tell(2, run);
    } else {
      standing = 0;
    }
  }
  void tell(std::uint64_t what, const PairingRun& run) {
    if (standing != what) told_at = run.updates;
    standing = what;
  }
};

}  // namespace tocsin::rules
