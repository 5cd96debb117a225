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

/// `most`: share of the rows that may be there. `half_alpha`: of one look at one bound; of several looks (`look`) the k-th has
/// 2⁻ᵏ of it, and its two comparisons half of that.
inline SeenRows seen_rows(const RowCounts& data, double most, double half_alpha) {
  constexpr double kMany = 0.2;
  constexpr double kMostRows = 0.99;
  const double rows = data.compared;
  const double train = data.train_compared;
  const bool again = data.again;
  const double alpha = again ? half_alpha * std::exp2(-data.look) / 2 : half_alpha;
  const auto natural_of = [alpha, again](double repeats, double among) {
    return again || repeats > 0 ? share_at_most(repeats, among, alpha) : 0;
  };
  const double natural = natural_of(data.train_repeats, train);
  const auto beyond = [&](double share) {
    return at_least_by_chance(data.seen, rows, share) <= alpha;
  };
  const bool told = natural < 1 - most;
  double early = 1;  // share by nature among the rows that came first
  if (again) early = natural_of(data.repeats, rows);
  const double part = again ? data.early / std::max(data.train_distinct, 1.0) : 0;
  const auto beyond_early = [&](double share) {
    return again && early < 1 - most &&
           at_least_by_chance(data.early_seen, rows, share * part + early) <= alpha;
  };
  SeenRows out{SeenRows::fine, most + (told ? natural : early), false};
  if (data.same > 0 || (!told && !(again && early < 1 - most))) {
    out.answer =
        SeenRows::not_applicable;  // the training set under another name; or all rows are alike
  } else if (rows < 1 || train < 1) {
    out.answer = SeenRows::too_few;
  } else if ((told && beyond(out.limit)) || beyond_early(most)) {
    out.answer = SeenRows::seen;
    out.many = (told && beyond(std::min(kMany + natural, kMostRows))) || beyond_early(kMany);
    // All of them: a score of the training data, perhaps meant as one.
    if (again && data.seen >= kMostRows * rows) out.many = false;
  }
  return out;
}

}  // namespace tocsin::rules
