#include "app/report/chart_svg.h"

#include <algorithm>
#include <cmath>

#include "app/report/axis.h"
#include "app/report/svg_parts.h"
#include "core/html_text.h"

namespace tocsin::app::report {
namespace {

constexpr double kNames = 220;  // width of the names beside lying bars
constexpr double kManyDecades = 1000;

/// As much of a name as stands beside a bar.
std::string shortened(const std::string& name) {
  constexpr std::size_t kMost = 32;
  std::string out;
  std::size_t characters = 0;
  for (const char one : name) {
    const bool begins = (static_cast<unsigned char>(one) & 0xC0U) != 0x80U;
    if (begins && ++characters > kMost) return out + "…";
    out += one;
  }
  return out;
}

// Pieces of a line between its gaps; a single point is a dot.
std::string drawn(const LineChart::Series& series, const std::string& kind, const Axis& x,
                  const Axis& y) {
  std::string out;
  std::string piece;
  std::size_t points = 0;
  std::pair<double, double> last;
  const auto end = [&] {
    if (points == 1) {
      out += "<circle class=\"dot " + kind + "\" cx=\"" + px(x.at(last.first)) + "\" cy=\"" +
             px(y.at(last.second)) + "\" r=\"3\"/>";
    } else if (points > 1) {
      out += "<polyline class=\"line " + kind + "\" points=\"" + piece + "\"/>";
    }
    piece.clear();
    points = 0;
  };
  for (const auto& point : series.points) {
    if (!std::isfinite(point.first) || !std::isfinite(point.second)) {
      end();
      continue;
    }
    piece += (points == 0 ? "" : " ") + px(x.at(point.first)) + "," + px(y.at(point.second));
    ++points;
    last = point;
  }
  end();
  return "<g><title>" + core::html_escaped(series.name) + "</title>" + out + "</g>";
}

}  // namespace

std::string svg(const LineChart& chart) {
  constexpr double kHeight = 260;
  constexpr double kTop = 12;
  constexpr double kBottom = 218;
  ChartBounds across;
  ChartBounds up;
  std::vector<std::string> names;
  for (const auto& series : chart.series) {
    names.push_back(series.name);
    for (const auto& [x, y] : series.points) {
      across.take(x);
      up.take(y);
    }
  }
  if (!across.any() || !up.any()) return "";
  const bool logarithmic = up.low > 0 && up.high / up.low >= kManyDecades;
  const Axis x(across.low, across.high, kChartLeft, kChartRight);
  const Axis y(up.low, up.high, kBottom, kTop, logarithmic);
  std::string out = svg_open(kHeight, chart.y + " over " + chart.x);
  for (const double tick : y.ticks(5)) {
    out += svg_line(kChartLeft, y.at(tick), kChartRight, y.at(tick), "grid") +
           svg_text(kChartLeft - 6, y.at(tick) + 4, number_text(tick), "end");
  }
  for (const double tick : x.ticks(8)) {
    out += svg_text(x.at(tick), kBottom + 16, number_text(tick), "middle");
  }
  out += svg_line(kChartLeft, kBottom, kChartRight, kBottom, "axis") +
         svg_text((kChartLeft + kChartRight) / 2, kHeight - 6, chart.x, "middle");
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    out += drawn(chart.series[i], svg_colour(i) + (i >= kChartColours ? " dashed" : ""), x, y);
  }
  return out + "</svg>" + chart_legend(names) +
         (logarithmic ? "<p class=\"quiet\">logarithmic scale</p>" : "");
}

std::string svg(const BarChart& chart) {
  constexpr double kRow = 22;
  ChartBounds bounds;
  bounds.take(0);
  for (const auto& [name, value] : chart.bars) bounds.take(value);
  const Axis axis(bounds.low, bounds.high, kNames, kChartRight - 90);
  std::string out = svg_open(kRow * static_cast<double>(chart.bars.size()) + 4, "bars");
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    const auto& [name, value] = chart.bars[i];
    const double top = kRow * static_cast<double>(i) + 2;
    const double from = std::isfinite(value) ? std::min(axis.at(0), axis.at(value)) : 0;
    const double to = std::isfinite(value) ? std::max(axis.at(0), axis.at(value)) : 0;
    out += svg_text(kNames - 8, top + 14, shortened(name), "end");
    if (std::isfinite(value)) out += svg_rect(from, top + 2, to - from, kRow - 6, "bar c0", name);
    out += svg_text(std::max(to, kNames) + 6, top + 14, number_text(value) + chart.unit);
  }
  return out + "</svg>";
}

std::string svg(const Shares& chart) {
  double whole = 0;
  for (const auto& [name, percent] : chart.parts) whole += std::isfinite(percent) ? percent : 0;
  if (!(whole > 0)) return "";
  std::string out = svg_open(36, "shares");
  std::vector<std::string> names;
  double at = 0;
  for (std::size_t i = 0; i < chart.parts.size(); ++i) {
    const auto& [name, percent] = chart.parts[i];
    const double width = std::isfinite(percent) ? kChartWidth * percent / whole : 0;
    const std::string words = name + " " + number_text(percent) + " %";
    out += svg_rect(at, 4, width, 28, svg_colour(i), words);
    at += width;
    names.push_back(words);
  }
  return out + "</svg>" + chart_legend(names);
}

std::string svg(const BoxChart& chart) {
  constexpr double kRow = 26;
  ChartBounds bounds;
  if (chart.unit == "%") {
    bounds.take(0);
    bounds.take(100);
  }
  for (const auto& box : chart.boxes) {
    bounds.take(box.min);
    bounds.take(box.max);
  }
  if (!bounds.any()) return "";
  const Axis axis(bounds.low, bounds.high, kNames, kChartRight - 12);
  const double bottom = kRow * static_cast<double>(chart.boxes.size()) + 4;
  std::string out = svg_open(bottom + 22, "spread in " + chart.unit);
  for (const double tick : axis.ticks(8)) {
    out += svg_line(axis.at(tick), 2, axis.at(tick), bottom, "grid") +
           svg_text(axis.at(tick), bottom + 16, number_text(tick), "middle");
  }
  for (std::size_t i = 0; i < chart.boxes.size(); ++i) {
    const auto& box = chart.boxes[i];
    const double middle = kRow * (static_cast<double>(i) + 0.5) + 2;
    out += svg_text(kNames - 8, middle + 4, shortened(box.name), "end") +
           svg_line(axis.at(box.min), middle, axis.at(box.max), middle, "whisker") +
           svg_rect(axis.at(box.p05), middle - 8, axis.at(box.p95) - axis.at(box.p05), 16, "box c0",
                    box.name + ": p05 " + number_text(box.p05) + ", p50 " + number_text(box.p50) +
                        ", p95 " + number_text(box.p95)) +
           svg_line(axis.at(box.p50), middle - 9, axis.at(box.p50), middle + 9, "median");
  }
  return out + "</svg><p class=\"quiet\">" + core::html_escaped(chart.unit) +
         "; box p05 to p95, mark p50, line min to max</p>";
}

std::string svg(const Timeline& chart) {
  constexpr double kRow = 22;
  if (chart.lanes.empty()) return "";
  const Axis axis(chart.from, chart.to, kNames, kChartRight - 12);
  const double bottom = kRow * static_cast<double>(chart.lanes.size()) + 4;
  std::string out = svg_open(bottom + 34, "issues over " + chart.x);
  for (const double tick : axis.ticks(8)) {
    out += svg_line(axis.at(tick), 2, axis.at(tick), bottom, "grid") +
           svg_text(axis.at(tick), bottom + 15, number_text(tick), "middle");
  }
  out += svg_text((kNames + kChartRight) / 2, bottom + 30, chart.x, "middle");
  for (std::size_t i = 0; i < chart.lanes.size(); ++i) {
    const auto& lane = chart.lanes[i];
    const double top = kRow * static_cast<double>(i) + 2;
    out += svg_text(kNames - 8, top + 15, shortened(lane.name), "end");
    for (const auto& span : lane.spans) {
      const double from = axis.at(span.from);
      const double width = std::max(axis.at(span.to) - from, 4.0);
      out += svg_rect(std::min(from, kChartRight - 12 - width), top + 4, width, kRow - 8,
                      "g-" + span.grade, span.text);
    }
  }
  return out + "</svg>";
}

}  // namespace tocsin::app::report
