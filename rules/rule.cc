// Small helpers that every rule uses.
#include "rules/rule.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tocsin::rules {

std::string_view to_string(Outcome outcome) noexcept {
  static constexpr std::array<std::string_view, kOutcomes> kNames{"ok", "hit", "insufficient_data",
                                                                  "not_applicable", "error"};
  return kNames[static_cast<std::size_t>(outcome)];
}

std::string Subject::place() const {
  std::string text = std::string(core::to_string(mode)) + " step " + std::to_string(step);
  if (!worker.empty()) text += " on " + worker;
  return text;
}

std::optional<double> RowBatch::statistic(core::SparseStat stat, std::size_t row) const {
  for (const core::SparseColumn& column : sparse) {
    if (column.stat != stat) continue;
    const auto wanted = static_cast<std::uint32_t>(row);
    // Usual case: the statistic was sent for every row, so it stands at the row's own place.
    if (row < column.size() && column.row(row) == wanted) return column.value(row);
    std::size_t low = 0;
    std::size_t high = column.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (column.row(middle) < wanted) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low < column.size() && column.row(low) == wanted) return column.value(low);
  }
  return std::nullopt;
}

std::string figure(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

}  // namespace tocsin::rules
