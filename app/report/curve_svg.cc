#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "app/report/axis.h"
#include "app/report/chart_svg.h"
#include "app/report/svg_parts.h"
#include "core/html_text.h"

namespace tocsin::app::report {
namespace {

constexpr double kCurveTop = 20;      // signs of marks stand above it
constexpr double kCurveBottom = 196;  // of the lines
constexpr double kBadTop = 200;       // lane of what is not finite
constexpr double kBadHeight = 7;
constexpr double kCurveHeight = 244;
constexpr double kThreeDecades = 1000;

// The same signs as on the run's page.
struct Sign {
  std::string_view kind, sign, style;
};
constexpr Sign kSigns[] = {{"sign", "◇", "m-sign"},
                           {"alarm", "■", "m-alarm"},
                           {"stop", "▼", "m-stop"},
                           {"checkpoint", "◆", "m-checkpoint"}};

Sign sign_of(const std::string& kind) {
  const auto* found = std::find_if(std::begin(kSigns), std::end(kSigns),
                                   [&](const Sign& s) { return s.kind == kind; });
  return found == std::end(kSigns) ? kSigns[0] : *found;
}

std::string place(double x, double y) { return px(x) + "," + px(y); }

struct Frame {
  Axis x;
  Axis y;
  bool logarithmic;
};

/// Points that follow each other and have finite numbers.
std::string piece_of(const CurveChart::Point* begin, const CurveChart::Point* end,
                     const std::string& kind, const Frame& frame) {
  const auto x_of = [&](const CurveChart::Point& point) { return frame.x.at(point.x); };
  const auto shown = [&](double value) { return !frame.logarithmic || value > 0; };
  std::string out;
  if (end - begin == 1) {
    return shown(begin->mean) ? "<circle class=\"dot " + kind + "\" cx=\"" + px(x_of(*begin)) +
                                    "\" cy=\"" + px(frame.y.at(begin->mean)) + "\" r=\"2.5\"/>"
                              : "";
  }
  const bool band = std::any_of(begin, end, [](const auto& one) { return one.low < one.high; });
  if (band && std::all_of(begin, end, [&](const auto& one) { return shown(one.low); })) {
    std::string above;
    std::string below;
    for (const auto* one = begin; one != end; ++one) {
      above += place(x_of(*one), frame.y.at(one->high)) + " ";
      below = place(x_of(*one), frame.y.at(one->low)) + " " + below;
    }
    out += "<polygon class=\"band " + kind + "\" points=\"" + above + below + "\"/>";
  }
  std::string line;
  for (const auto* one = begin; one != end; ++one) {
    if (shown(one->mean)) line += place(x_of(*one), frame.y.at(one->mean)) + " ";
  }
  return out + "<polyline class=\"line " + kind + "\" points=\"" + line + "\"/>";
}

std::string drawn_curve(const CurveChart::Series& series, std::size_t which, double width,
                        const Frame& frame) {
  const std::string kind = svg_colour(which) + (which >= kChartColours ? " dashed" : "");
  std::string out;
  const CurveChart::Point* begin = series.points.data();
  const CurveChart::Point* last = begin + series.points.size();
  while (begin != last) {
    const CurveChart::Point* end = begin;
    while (end != last && end->finite) ++end;
    if (end != begin) out += piece_of(begin, end, kind, frame);
    begin = std::find_if(end, last, [](const auto& one) { return one.finite; });
  }
  for (const auto& point : series.points) {
    if (!point.bad_at) continue;
    const double from = frame.x.at(point.x);
    out += svg_rect(from, kBadTop, std::max(frame.x.at(point.x + width) - from, 2.0), kBadHeight,
                    "notfinite");
  }
  return "<g><title>" + core::html_escaped(series.name) + "</title>" + out + "</g>";
}

std::string drawn_marks(const CurveChart& chart, const Frame& frame) {
  constexpr double kSignWidth = 12;
  std::string out;
  std::map<double, int> at;  // signs at one place stand beside each other
  for (const auto& mark : chart.marks) {
    const Sign sign = sign_of(mark.kind);
    const double x = frame.x.at(mark.x);
    const double aside = kSignWidth * at[mark.x]++;
    out += "<g class=\"" + std::string(sign.style) + "\"><title>" + core::html_escaped(mark.text) +
           "</title>" + svg_line(x, kCurveTop, x, kBadTop + kBadHeight, "mark") +
           svg_text(x - aside, kCurveTop - 6, std::string(sign.sign), "middle") + "</g>";
  }
  return out;
}

/// What the signs say, for who has no pointer to hold over them, and on paper.
std::string mark_list(const CurveChart& chart) {
  if (chart.marks.empty()) return "";
  std::string out = "<ul class=\"marks\">";
  for (const auto& mark : chart.marks) {
    const Sign sign = sign_of(mark.kind);
    out += "<li><span class=\"" + std::string(sign.style) + "\">" + std::string(sign.sign) +
           "</span> " + core::html_escaped(mark.text) + "</li>";
  }
  return out + "</ul>";
}

}  // namespace

std::string svg(const CurveChart& chart) {
  ChartBounds across;
  ChartBounds up;
  std::vector<std::string> names;
  for (const auto& series : chart.series) {
    names.push_back(series.name);
    for (const auto& point : series.points) {
      across.take(point.x);
      across.take(point.x + chart.width - 1);
      if (!point.finite) continue;
      up.take(point.low);
      up.take(point.high);
    }
  }
  for (const auto& mark : chart.marks) across.take(mark.x);
  if (!across.any()) return "";
  if (!up.any()) up.take(0);  // nothing but what is not finite
  const bool logarithmic = up.low > 0 && up.high / up.low >= kThreeDecades;
  const Frame frame{Axis(across.low, across.high, kChartLeft, kChartRight),
                    Axis(up.low, up.high, kCurveBottom, kCurveTop, logarithmic), logarithmic};
  std::string out = svg_open(kCurveHeight, chart.title + " over " + chart.x);
  for (const double tick : frame.y.ticks(5)) {
    out += svg_line(kChartLeft, frame.y.at(tick), kChartRight, frame.y.at(tick), "grid") +
           svg_text(kChartLeft - 6, frame.y.at(tick) + 4, number_text(tick), "end");
  }
  for (const double tick : frame.x.ticks(8)) {
    out += svg_text(frame.x.at(tick), kBadTop + kBadHeight + 14, number_text(tick), "middle");
  }
  out += svg_line(kChartLeft, kBadTop - 2, kChartRight, kBadTop - 2, "axis") +
         svg_text((kChartLeft + kChartRight) / 2, kCurveHeight - 6, chart.x, "middle");
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    out += drawn_curve(chart.series[i], i, chart.width, frame);
  }
  out += drawn_marks(chart, frame) + "</svg>";
  if (names.size() > 1) out += chart_legend(names);
  if (logarithmic) out += "<p class=\"quiet\">logarithmic scale</p>";
  return out + mark_list(chart);
}

}  // namespace tocsin::app::report
