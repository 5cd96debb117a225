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

Table table_of(const CurveChart& chart) {
  constexpr std::size_t kMostPoints = 200;
  Table out{{chart.x, "mean", "least", "greatest", "not finite"}, {}};
  const bool several = chart.series.size() > 1;
  if (several) out.head.insert(out.head.begin(), "of");
  for (const auto& series : chart.series) {
    const std::size_t stride =
        std::max<std::size_t>(1, (series.points.size() + kMostPoints - 1) / kMostPoints);
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const auto& point = series.points[i];
      if (i % stride != 0 && !point.bad_at && i + 1 != series.points.size()) continue;
      std::vector<std::string> row{number_text(point.x)};
      for (const double value : {point.mean, point.low, point.high}) {
        row.push_back(point.finite ? number_text(value) : "");
      }
      row.push_back(point.bad_at ? "at " + number_text(*point.bad_at) : "");
      if (several) row.insert(row.begin(), series.name);
      out.rows.push_back(std::move(row));
      if (out.rows.size() == 2 * kMostPoints) return out;
    }
  }
  return out;
}

std::string sentence_of(const CurveChart& chart, const CurveChart::Series& series) {
  const CurveChart::Point* first = nullptr;
  const CurveChart::Point* last = nullptr;
  const CurveChart::Point* least = nullptr;
  const CurveChart::Point* most = nullptr;
  std::optional<double> bad;
  for (const auto& point : series.points) {
    if (point.bad_at && !bad) bad = point.bad_at;
    if (!point.finite) continue;
    if (first == nullptr) first = &point;
    last = &point;
    if (least == nullptr || point.low < least->low) least = &point;
    if (most == nullptr || point.high > most->high) most = &point;
  }
  std::string out = series.name;
  if (!series.points.empty()) {
    out += ", " + chart.x + "s " + number_text(series.points.front().x) + " to " +
           number_text(series.points.back().x + chart.width - 1);
  }
  out += ":";
  if (first == nullptr) {
    out += " no finite number";
  } else {
    out += " from " + number_text(first->mean) + " to " + number_text(last->mean) + ", least " +
           number_text(least->low) + " at " + number_text(least->x) + ", greatest " +
           number_text(most->high) + " at " + number_text(most->x);
  }
  if (bad) out += "; not finite for the first time at " + number_text(*bad);
  return out + ".";
}

}  // namespace tocsin::app::report
