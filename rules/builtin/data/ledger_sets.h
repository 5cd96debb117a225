// What the ledger says of the data sets of a booster (docs/ledger.md, "Data sets"): scalars
// ledger/data/<set>/<field> and ledger/data/<set>/<field>/<column>.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

inline constexpr std::string_view kLedgerPrefix = "ledger/";
inline constexpr std::string_view kLedgerData = "ledger/data/";

/// One data set as a step tells of it. Of several workers the first that sends a number counts: each sees rows of its own.
struct LedgerSet {
  std::map<std::string, double, std::less<>> fields;
  std::map<std::string, std::map<std::string, double, std::less<>>, std::less<>> columns;

  [[nodiscard]] double field(std::string_view name, double otherwise = 0) const {
    const auto found = fields.find(name);
    return found == fields.end() ? otherwise : found->second;
  }
  [[nodiscard]] bool has(std::string_view name) const { return fields.find(name) != fields.end(); }
  /// Of a column; 0 where it was not sent.
  [[nodiscard]] double of_column(std::string_view name, std::string_view column) const {
    const auto found = columns.find(name);
    if (found == columns.end()) return 0;
    const auto one = found->second.find(column);
    return one == found->second.end() ? 0 : one->second;
  }
};

using LedgerSets = std::map<std::string, LedgerSet, std::less<>>;

/// Takes `ledger/data/…`; false: the name is another one, or its number is none.
inline bool take_set(LedgerSets& sets, std::string_view name, double value) {
  if (!name.starts_with(kLedgerData) || !std::isfinite(value)) return false;
  name.remove_prefix(kLedgerData.size());
  const std::size_t of_set = name.find('/');
  if (of_set == std::string_view::npos) return false;
  LedgerSet& set = sets[std::string(name.substr(0, of_set))];
  name.remove_prefix(of_set + 1);
  const std::size_t of_field = name.find('/');
  if (of_field == std::string_view::npos) {
    set.fields.try_emplace(std::string(name), value);
  } else {
    set.columns[std::string(name.substr(0, of_field))].try_emplace(
        std::string(name.substr(of_field + 1)), value);
  }
  return true;
}

}  // namespace tocsin::rules
