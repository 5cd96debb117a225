// Small helpers that every rule uses.
#include "rules/contract/rule.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/identity.h"

namespace tocsin::rules {

std::string_view to_string(EvaluationOutcome outcome) noexcept {
  static constexpr std::array<std::string_view, kEvaluationOutcomes> kNames{
      "ok", "hit", "insufficient_data", "not_applicable", "error"};
  return kNames[static_cast<std::size_t>(outcome)];
}

Program::Program() = default;
Program::~Program() = default;

Match Program::selects(const Candidate& candidate) const {
  return selection.matches(candidate.role, candidate.name);
}

std::string Subject::place() const {
  std::string text = std::string(core::to_string(mode)) + " step " + std::to_string(step);
  if (!worker.empty()) text += " on " + worker;
  return text;
}

namespace {

// Where the row's value stands in the column; its size: nowhere.
std::size_t find_row(const core::SparseColumn& column, std::size_t row) {
  const auto wanted = static_cast<std::uint32_t>(row);
  // Usual case: the statistic was sent for every row, so it stands at the row's own place.
  if (row < column.size() && column.row(row) == wanted) return row;
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
  return low < column.size() && column.row(low) == wanted ? low : column.size();
}

bool has_parameters(const core::SparseColumn& column, std::initializer_list<double> wanted) {
  if (column.params_bytes.size() != wanted.size() * sizeof(double)) return false;
  std::size_t i = 0;
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](double one) { return column.param(i++) == one; });
}

}  // namespace

std::optional<double> RowBatch::sent(core::SparseStat stat, std::size_t row) const {
  for (const core::SparseColumn& column : sparse) {
    if (column.stat != stat) continue;
    const std::size_t at = find_row(column, row);
    if (at < column.size()) return column.value(at);
  }
  return std::nullopt;
}

std::optional<double> RowBatch::sent(core::SparseStat stat, std::size_t row,
                                     std::initializer_list<double> parameters) const {
  for (const core::SparseColumn& column : sparse) {
    if (column.stat != stat || !has_parameters(column, parameters)) continue;
    const std::size_t at = find_row(column, row);
    if (at < column.size()) return column.value(at);
  }
  return std::nullopt;
}

std::optional<double> RowBatch::count_of(double value, std::size_t row) const {
  constexpr std::uint16_t kValueCounts = 35;  // core/statistics.cc
  for (const core::SparseVector& one : vectors) {
    if (static_cast<std::uint16_t>(one.stat) != kValueCounts || one.row != row) continue;
    if (one.params_bytes.size() != one.value_bytes.size()) continue;
    for (std::size_t i = 0; i < one.size(); ++i) {
      double counted = 0;
      std::memcpy(&counted, one.params_bytes.data() + i * sizeof counted, sizeof counted);
      if (counted == value) return one.value(i);
    }
  }
  return std::nullopt;
}

std::uint64_t shape_hash(const Name* name) {
  if (name == nullptr || name->shape.empty()) return 0;
  return core::name_hash({reinterpret_cast<const char*>(name->shape.data()),
                          name->shape.size() * sizeof(std::int64_t)});
}

std::string figure(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  const double size = std::fabs(value);
  const bool whole = size >= 999.5 && size < 1e7;  // as a count is read
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.3g", value);
  return text.data();
}

}  // namespace tocsin::rules
