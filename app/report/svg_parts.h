// Pieces that charts of a report are drawn with.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace tocsin::app::report {

// The canvas is kChartWidth wide; what is drawn over an axis lies between kChartLeft and kChartRight.
inline constexpr double kChartWidth = 720;
inline constexpr double kChartLeft = 64;
inline constexpr double kChartRight = 708;
inline constexpr std::size_t kChartColours = 8;

/// One digit behind the point; 0 for what is not finite.
std::string px(double value);
std::string svg_open(double height, const std::string& label);
std::string svg_line(double x1, double y1, double x2, double y2, const char* kind);
std::string svg_text(double x, double y, const std::string& words, const char* anchor = "start");
std::string svg_rect(double x, double y, double width, double height, const std::string& kind,
                     const std::string& title = "");
/// Class of the i-th colour.
std::string svg_colour(std::size_t i);
/// Names with their colours, as a list below a chart.
std::string chart_legend(const std::vector<std::string>& names);

struct ChartBounds {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value);
  [[nodiscard]] bool any() const { return low <= high; }
};

}  // namespace tocsin::app::report
