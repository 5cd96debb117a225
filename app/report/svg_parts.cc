#include "app/report/svg_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/html_text.h"

namespace tocsin::app::report {

std::string px(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", std::isfinite(value) ? value : 0.0);
  return text.data();
}

std::string svg_open(double height, const std::string& label) {
  return "<svg viewBox=\"0 0 " + px(kChartWidth) + " " + px(height) +
         "\" role=\"img\" aria-label=\"" + core::html_escaped(label) + "\">";
}

std::string svg_line(double x1, double y1, double x2, double y2, const char* kind) {
  return "<line class=\"" + std::string(kind) + "\" x1=\"" + px(x1) + "\" y1=\"" + px(y1) +
         "\" x2=\"" + px(x2) + "\" y2=\"" + px(y2) + "\"/>";
}

std::string svg_text(double x, double y, const std::string& words, const char* anchor) {
  return "<text x=\"" + px(x) + "\" y=\"" + px(y) + "\" text-anchor=\"" + anchor + "\">" +
         core::html_escaped(words) + "</text>";
}

std::string svg_rect(double x, double y, double width, double height, const std::string& kind,
                     const std::string& title) {
  const std::string head = "<rect class=\"" + kind + "\" x=\"" + px(x) + "\" y=\"" + px(y) +
                           "\" width=\"" + px(std::max(width, 0.0)) + "\" height=\"" + px(height) +
                           "\"";
  return title.empty() ? head + "/>"
                       : head + "><title>" + core::html_escaped(title) + "</title></rect>";
}

std::string svg_colour(std::size_t i) { return "c" + std::to_string(i % kChartColours); }

std::string chart_legend(const std::vector<std::string>& names) {
  std::string out = "<ul class=\"legend\">";
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += "<li><span class=\"swatch " + svg_colour(i) + "\"></span>" +
           core::html_escaped(names[i]) + "</li>";
  }
  return out + "</ul>";
}

void ChartBounds::take(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

}  // namespace tocsin::app::report
