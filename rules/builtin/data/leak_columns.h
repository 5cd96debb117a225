// Which columns of the inputs know the target alone (docs/ledger.md, "Data sets").
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rules/builtin/data/ledger_sets.h"

namespace tocsin::rules {

/// A column that explains the labels alone.
struct KnownColumn {
  static constexpr double kCopied = 0.99;     // of the elements, beyond chance
  static constexpr double kOthersLeave = 10;  // times as much unexplained
  static constexpr double kExact = 1 - 1e-6;  // a straight line, but for rounding
  std::string name;
  double fit = 0;
  double shifted = 0;
  double equal = 0;
  int rank = 0;  // 3 copied, 2 a warning, 1 info, 0 nothing
};

/// Those that were sent, worst first. `fit`, `strong_fit`: from where on a column is told of.
///
/// A column tells of the target itself if it tells of no neighbour's. Rows of shuffled batches have no neighbours; there a series shows
/// in several columns, each of which explains nearly as much as the next.
inline std::vector<KnownColumn> known_columns(const LedgerSet& train, double fit,
                                              double strong_fit) {
  std::vector<KnownColumn> out;
  const auto found = train.columns.find("column_fit");
  if (found == train.columns.end()) return out;
  const bool shuffled = train.has("batches");
  const auto leaves = [](double other, double own) {
    return 1 - other > KnownColumn::kOthersLeave * (1 - own);
  };
  for (const auto& [name, own] : found->second) {
    KnownColumn one{name, own, train.of_column("shifted_fit", name),
                    train.of_column("column_equal", name)};
    double next = 0;
    for (const auto& [other, its] : found->second) {
      if (shuffled && other != name) next = std::max(next, its);
    }
    const bool alone = leaves(one.shifted, own) && (own > KnownColumn::kExact || leaves(next, own));
    if (one.equal >= KnownColumn::kCopied) {
      one.rank = 3;
    } else if (alone && own > fit) {
      one.rank = 2;
    } else if (alone && own > strong_fit) {
      one.rank = 1;
    }
    out.push_back(std::move(one));
  }
  std::sort(out.begin(), out.end(), [](const KnownColumn& a, const KnownColumn& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    return a.fit != b.fit ? a.fit > b.fit : a.name < b.name;
  });
  return out;
}

}  // namespace tocsin::rules
