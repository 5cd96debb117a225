// Whether an evaluation holds rows of the training, by counts of fingerprints (docs/ledger.md, "Data sets").
//
// Rows repeat themselves by nature: a row that nobody trained on may still be there. How often, training rows among each other
// tell where each was seen once. Where training rows come again at each pass, rows of the evaluation among each other do: as
// many training rows, those that came first, hold a new row as often as the evaluation itself does.
#pragma once

#include <algorithm>
#include <cmath>

#include "rules/builtin/data/count_bounds.h"

namespace tocsin::rules {

struct RowCounts {
  double compared = 0;
  double seen = 0;
  double train_compared = 0;
  double train_repeats = 0;
  double same = 0;
  // Of networks:
  bool again = false;  // training rows come again at each pass
  double train_distinct = 0;
  double early = 0;
  double early_seen = 0;
  double repeats = 0;
  double look = 1;
};

struct SeenRows {
  enum Answer { not_applicable, too_few, fine, seen };
  Answer answer = too_few;
  double limit = 0;   // share of the rows
  bool many = false;  // more than a fifth beyond what is natural
};

/// What two data sets have in common by nature, and what lies beyond.
class RowsByNature {
 public:
  /// `most`: share of the rows that may be there. `half_alpha`: of one look at one bound; of several looks (`look`) the k-th
  /// has 2⁻ᵏ of it, and its two comparisons half of that.
  RowsByNature(const RowCounts& data, double most, double half_alpha)
      : data_(data),
        room_(1 - most),
        alpha_(data.again ? half_alpha * std::exp2(-data.look) / 2 : half_alpha),
        natural_(natural_of(data.train_repeats, data.train_compared)),
        early_(data.again ? natural_of(data.repeats, data.compared) : 1),
        part_(data.again ? data.early / std::max(data.train_distinct, 1.0) : 0) {}

  /// Whether so few rows are there by nature that others tell anything.
  [[nodiscard]] bool tells() const { return natural_ < room_; }
  /// The same of the rows that came first.
  [[nodiscard]] bool early_tells() const { return data_.again && early_ < room_; }
  /// The share that is there by nature.
  [[nodiscard]] double share() const { return tells() ? natural_ : early_; }
  [[nodiscard]] double natural() const { return natural_; }
  [[nodiscard]] bool beyond(double share) const {
    return tells() && at_least_by_chance(data_.seen, data_.compared, share) <= alpha_;
  }
  [[nodiscard]] bool beyond_early(double share) const {
    return early_tells() &&
           at_least_by_chance(data_.early_seen, data_.compared, share * part_ + early_) <= alpha_;
  }

 private:
  [[nodiscard]] double natural_of(double repeats, double among) const {
    return data_.again || repeats > 0 ? share_at_most(repeats, among, alpha_) : 0;
  }

  const RowCounts& data_;
  double room_;
  double alpha_;
  double natural_;  // share by nature among all rows
  double early_;    // and among those that came first
  double part_;
};

/// `most`, `half_alpha`: see RowsByNature.
inline SeenRows seen_rows(const RowCounts& data, double most, double half_alpha) {
  constexpr double kMany = 0.2;
  constexpr double kMostRows = 0.99;
  const double rows = data.compared;
  const RowsByNature nature(data, most, half_alpha);
  SeenRows out{SeenRows::fine, most + nature.share(), false};
  if (data.same > 0 || !(nature.tells() || nature.early_tells())) {
    out.answer =
        SeenRows::not_applicable;  // the training set under another name; or all rows are alike
  } else if (rows < 1 || data.train_compared < 1) {
    out.answer = SeenRows::too_few;
  } else if (nature.beyond(out.limit) || nature.beyond_early(most)) {
    out.answer = SeenRows::seen;
    out.many =
        nature.beyond(std::min(kMany + nature.natural(), kMostRows)) || nature.beyond_early(kMany);
    // All of them: a score of the training data, perhaps meant as one.
    if (data.again && data.seen >= kMostRows * rows) out.many = false;
  }
  return out;
}

}  // namespace tocsin::rules
