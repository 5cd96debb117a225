// Values of any shape as blocks of a report.
#include <algorithm>
#include <chrono>

#include "app/report/sections.h"
#include "app/view/summary_text.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kLongRow = 8;          // numbers that are better seen than read
constexpr std::size_t kMostTableRows = 200;  // of a table
constexpr std::size_t kMostCell = 400;       // bytes

/// All of them numbers, and many.
bool is_row_of_numbers(const core::ValueList& list) {
  return list.size() >= kLongRow && list.size() <= 100 &&
         std::all_of(list.begin(), list.end(),
                     [](const core::Value& one) { return number_of(&one).has_value(); });
}

bool is_table(const core::ValueList& list) {
  return !list.empty() && std::all_of(list.begin(), list.end(), [](const core::Value& one) {
    return core::as<core::ValueMap>(one) != nullptr;
  });
}

BarChart bars_of(const core::ValueList& list) {
  BarChart out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    out.bars.emplace_back(std::to_string(i), number_of(&list[i]).value_or(0));
  }
  return out;
}

Table table_of_maps(const core::ValueList& list) {
  Table out;
  for (const core::Value& one : list) {
    if (out.rows.size() == kMostTableRows) break;
    std::vector<std::string> row;
    for (const auto& [name, value] : *core::as<core::ValueMap>(one)) {
      auto at = std::find(out.head.begin(), out.head.end(), name);
      if (at == out.head.end()) at = out.head.insert(out.head.end(), name);
      const auto column = static_cast<std::size_t>(at - out.head.begin());
      if (row.size() <= column) row.resize(column + 1);
      row[column] = cell_text(value);
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

bool is_flat(const core::ValueMap& map) {
  return std::none_of(map.begin(), map.end(), [](const auto& entry) {
    const auto* list = core::as<core::ValueList>(entry.second);
    return core::as<core::ValueMap>(entry.second) != nullptr ||
           (list != nullptr && (is_row_of_numbers(*list) || is_table(*list)));
  });
}

/// Several maps with the same names: one row each.
bool is_table_of_rows(const core::ValueMap& map) {
  return map.size() > 1 && std::all_of(map.begin(), map.end(), [](const auto& entry) {
           const auto* row = core::as<core::ValueMap>(entry.second);
           return row != nullptr && !row->empty() && is_flat(*row);
         });
}

Table table_of_rows(const core::ValueMap& map) {
  core::ValueList rows;
  for (const auto& [name, value] : map) {
    core::ValueMap row{{"", name}};
    const auto& own = *core::as<core::ValueMap>(value);
    row.insert(row.end(), own.begin(), own.end());
    rows.emplace_back(std::move(row));
  }
  return table_of_maps(rows);
}

Block block_of(const core::Value& value) {
  if (const auto* list = core::as<core::ValueList>(value)) {
    if (is_row_of_numbers(*list)) return {bars_of(*list)};
    return {table_of_maps(*list)};
  }
  Section inner;
  tell(*core::as<core::ValueMap>(value), inner);
  return {Group{"", std::move(inner.blocks)}};
}

}  // namespace

std::string moment_text(core::WallTime time) {
  return core::to_rfc3339(core::WallTime(std::chrono::floor<std::chrono::milliseconds>(time)));
}

const core::ValueMap& map_at(const core::ValueMap& map, std::string_view name) {
  static const core::ValueMap kNone;
  const auto* found = core::as<core::ValueMap>(core::find(map, name));
  return found == nullptr ? kNone : *found;
}

std::optional<double> number_of(const core::Value* value) {
  if (const auto* number = core::as<double>(value)) return *number;
  if (const auto* number = core::as<std::int64_t>(value)) return static_cast<double>(*number);
  // NaN and the infinities are texts in JSON.
  if (const auto* text = core::as<std::string>(value)) {
    if (*text == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (*text == "Infinity") return std::numeric_limits<double>::infinity();
    if (*text == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  return std::nullopt;
}

std::string cell_text(const core::Value& value) {
  if (const auto* text = core::as<std::string>(value)) return *text;
  if (const auto* real = core::as<double>(value)) return number_text(*real);
  if (const auto* map = core::as<core::ValueMap>(value)) return summary_line(*map, kMostCell);
  if (core::as<core::ValueList>(value) != nullptr) {
    const std::string line = summary_line({{"", value}}, kMostCell);
    return line.empty() ? line : line.substr(1);  // behind the blank of the empty name
  }
  return core::to_json(value);
}

void tell(const core::ValueMap& map, Section& out) {
  if (is_table_of_rows(map)) return out.add(table_of_rows(map));
  Table flat;
  for (const auto& [name, value] : map) {
    const auto* list = core::as<core::ValueList>(value);
    const auto* inner = core::as<core::ValueMap>(value);
    const bool deep = inner != nullptr && !(is_flat(*inner) && inner->size() <= 3);
    if (!deep && (list == nullptr || !(is_row_of_numbers(*list) || is_table(*list)))) {
      flat.rows.push_back({name, cell_text(value)});
    }
  }
  if (!flat.rows.empty()) out.add(flat);
  for (const auto& [name, value] : map) {
    const auto* list = core::as<core::ValueList>(value);
    const auto* inner = core::as<core::ValueMap>(value);
    if (inner != nullptr && !(is_flat(*inner) && inner->size() <= 3)) {
      Section deeper;
      tell(*inner, deeper);
      out.add(Group{name, std::move(deeper.blocks)});
    } else if (list != nullptr && (is_row_of_numbers(*list) || is_table(*list))) {
      Group group{name, {}};
      group.blocks.push_back(block_of(value));
      out.add(std::move(group));
    }
  }
}

}  // namespace tocsin::app::report
