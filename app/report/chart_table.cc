#include "app/report/chart_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

namespace tocsin::app::report {

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value == 0 ? 0.0 : value);
  return text.data();
}

Table table_of(const LineChart& chart) {
  constexpr std::size_t kMostRows = 200;
  Table out{{chart.x}, {}};
  std::map<double, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    out.head.push_back(chart.series[i].name);
    for (const auto& [x, y] : chart.series[i].points) {
      if (std::isnan(x)) continue;
      auto& row = rows[x];
      row.resize(chart.series.size());
      row[i] = number_text(y);
    }
  }
  const std::size_t stride = (rows.size() + kMostRows - 1) / kMostRows;
  std::size_t at = 0;
  for (auto& [x, cells] : rows) {
    const bool last = at + 1 == rows.size();
    if (at++ % stride != 0 && !last) continue;
    cells.insert(cells.begin(), number_text(x));
    out.rows.push_back(std::move(cells));
  }
  return out;
}

Table table_of(const BarChart& chart) {
  Table out;
  for (const auto& [name, value] : chart.bars) {
    out.rows.push_back({name, number_text(value) + chart.unit});
  }
  return out;
}

Table table_of(const Shares& chart) {
  Table out;
  for (const auto& [name, percent] : chart.parts) {
    out.rows.push_back({name, number_text(percent) + " %"});
  }
  return out;
}

Table table_of(const BoxChart& chart) {
  Table out{{"", "min", "p05", "p50", "p95", "max"}, {}};
  for (const auto& box : chart.boxes) {
    out.rows.push_back({box.name, number_text(box.min), number_text(box.p05), number_text(box.p50),
                        number_text(box.p95), number_text(box.max)});
  }
  return out;
}

Table table_of(const Timeline& chart) {
  Table out{{"rule", "from", "to", "severity", "what"}, {}};
  for (const auto& lane : chart.lanes) {
    for (const auto& span : lane.spans) {
      out.rows.push_back(
          {lane.name, number_text(span.from), number_text(span.to), span.grade, span.text});
    }
  }
  return out;
}

}  // namespace tocsin::app::report
