// The statistics of a tensor: what travels, under which number, who asks for it by which word. One
// table, which frames, the hook's capture, rules' needs, `tocsin check`, the Python package and the
// pages read (docs/statistics.md).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/frame.h"
#include "core/result.h"

namespace tocsin::core {

/// Where a statistic stands.
enum class StatisticForm : std::uint8_t {
  column,     // of every summary row; the id is the column's number
  derived,    // never sent: readers compute it from the columns
  sparse,     // extension tag 1: one number for some rows
  vector,     // extension tag 2: several numbers for one row
  histogram,  // extension tag 3
};
std::string_view to_string(StatisticForm form) noexcept;

struct Statistic {
  std::uint16_t id = 0;  // unique within its form, never given again; 0 for derived ones
  std::string_view name;
  StatisticForm form = StatisticForm::column;
  std::string_view request;                       // the word of `statistics:`; empty: not asked for
  std::vector<std::string_view> parameters = {};  // of the request; they travel with the value
  std::string_view meaning;                       // "Σ x", with unit where it has one
};

/// All of them, by form and id.
std::span<const Statistic> builtin_statistics();
/// The words of `statistics:` in a capture plan, in the order of the table.
std::vector<std::string> statistic_requests();

/// One item of `statistics:`: `delta`, `at_least(1)`.
struct StatisticRequest {
  std::string word;
  std::vector<double> parameters;
  friend bool operator==(const StatisticRequest&, const StatisticRequest&) = default;
};
/// As a plan has it: `delta`, `saturation(-9.5, 9.5, 1)`.
std::string to_text(const StatisticRequest& request);
/// invalid_argument: no word of the table (with the nearest), or not its number of parameters.
Result<StatisticRequest> parse_statistic(std::string_view text);

}  // namespace tocsin::core
