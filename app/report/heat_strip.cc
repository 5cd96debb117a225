#include "app/report/heat_strip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "app/report/axis.h"
#include "app/report/base64.h"
#include "app/report/svg_parts.h"

namespace tocsin::app::report {
namespace {

constexpr std::int64_t kHeatColumns = 400;
constexpr std::int64_t kMostTensors = 2000;
constexpr std::size_t kHeatRows = 100;
constexpr double kHeatLeft = 220;  // names stand before it
constexpr double kMostHeight = 420;

struct StripKind {
  const char* title;
  core::Role role;
  std::size_t column;
  bool logarithmic;
};
constexpr StripKind kStripKinds[] = {
    {"Norms of gradients", core::Role::gradient, insights::tensor_column::l2, true},
    {"Norms of weights", core::Role::weight, insights::tensor_column::l2, true},
    {"Norms of activations", core::Role::activation_out, insights::tensor_column::l2, true},
    {"Share of zeros in activations", core::Role::activation_out, insights::tensor_column::zero,
     false}};

HeatStrip::Row row_of(const insights::HeatRow& row) {
  HeatStrip::Row out{row.first.text, row.last.text, {}, {}, {}};
  for (const auto& cell : row.cells) out.cells.push_back(cell.value_or(std::nan("")));
  out.bad.resize(out.cells.size());
  for (const insights::HeatBad& bad : row.bad) {
    out.bad[static_cast<std::size_t>(bad.column)] = true;
    if (bad.x >= 0 && (!out.bad_at || static_cast<double>(bad.x) < *out.bad_at)) {
      out.bad_at = static_cast<double>(bad.x);
    }
  }
  return out;
}

void join(HeatStrip::Row& into, const HeatStrip::Row& other) {
  into.last = other.last;
  for (std::size_t i = 0; i < into.cells.size(); ++i) {
    into.cells[i] = std::fmax(into.cells[i], other.cells[i]);  // of a number and none the number
    into.bad[i] = into.bad[i] || other.bad[i];
  }
  if (other.bad_at && (!into.bad_at || *other.bad_at < *into.bad_at)) into.bad_at = other.bad_at;
}

std::string name_of(const HeatStrip::Row& row) {
  return row.first == row.last ? row.first : row.first + " … " + row.last;
}

std::string cut_name(const std::string& name) {
  constexpr std::size_t kMostBytes = 32;
  if (name.size() <= kMostBytes) return name;
  std::size_t begin = name.size() - kMostBytes;  // the end tells layers apart
  while ((static_cast<unsigned char>(name[begin]) & 0xC0U) == 0x80U) ++begin;
  return "…" + name.substr(begin);
}

}  // namespace

core::Result<std::vector<HeatStrip>> heat_strips(insights::SeriesReader& reader,
                                                 const RunReport& report) {
  std::vector<HeatStrip> out;
  std::optional<insights::HeatAnswer> answer;
  std::optional<std::size_t> asked;
  for (const StripKind& kind : kStripKinds) {
    if (asked != kind.column) {
      insights::HeatAsk ask;
      ask.of.run = core::to_text(report.run.uid);
      ask.column = kind.column;
      ask.columns = kHeatColumns;
      ask.rows = kMostTensors;
      auto heat = insights::ask_heat(reader, ask);
      if (!heat) return heat.error();
      answer = std::move(*heat);
      asked = kind.column;
    }
    HeatStrip strip;
    strip.title = kind.title;
    strip.logarithmic = kind.logarithmic;
    strip.width = static_cast<double>(std::int64_t{1} << answer->level);
    strip.from = std::floor(static_cast<double>(answer->from) / strip.width) * strip.width;
    for (const insights::HeatRow& row : answer->rows) {
      if (row.first.role == kind.role) strip.rows.push_back(row_of(row));
    }
    if (strip.rows.empty()) continue;
    strip.tensors = strip.rows.size();
    fold_rows(strip, kHeatRows);
    out.push_back(std::move(strip));
  }
  return out;
}

void fold_rows(HeatStrip& strip, std::size_t most) {
  if (most == 0 || strip.rows.size() <= most) return;
  const std::size_t together = (strip.rows.size() + most - 1) / most;
  std::vector<HeatStrip::Row> rows;
  for (std::size_t i = 0; i < strip.rows.size(); ++i) {
    if (i % together == 0) {
      rows.push_back(std::move(strip.rows[i]));
    } else {
      join(rows.back(), strip.rows[i]);
    }
  }
  strip.rows = std::move(rows);
}

std::string svg(const HeatStrip& strip) {
  if (strip.rows.empty() || strip.rows.front().cells.empty()) return "";
  const auto rows = static_cast<double>(strip.rows.size());
  const auto columns = static_cast<double>(strip.rows.front().cells.size());
  const double tall = std::min(14.0, kMostHeight / rows);
  const double bottom = 4 + tall * rows;
  std::string out = svg_open(bottom + 34, strip.title + " over steps") +
                    "<image class=\"heat\" x=\"" + px(kHeatLeft) + "\" y=\"4\" width=\"" +
                    px(kChartRight - kHeatLeft) + "\" height=\"" + px(bottom - 4) +
                    "\" preserveAspectRatio=\"none\" href=\"data:image/png;base64," +
                    base64(heat_png(strip)) + "\"/>";
  const auto every = static_cast<std::size_t>(std::ceil(12 / tall));
  for (std::size_t i = 0; i < strip.rows.size(); i += every) {
    out += svg_text(kHeatLeft - 6, 4 + tall * (static_cast<double>(i) + 0.5) + 4,
                    cut_name(strip.rows[i].first), "end");
  }
  const Axis axis(strip.from, strip.from + columns * strip.width, kHeatLeft, kChartRight);
  for (const double tick : axis.ticks(8)) {
    out += svg_text(axis.at(tick), bottom + 15, number_text(tick), "middle");
  }
  return out + svg_text((kHeatLeft + kChartRight) / 2, bottom + 30, "step", "middle") + "</svg>";
}

Table table_of(const HeatStrip& strip) {
  Table out{{"tensor", "least", "greatest", "newest", "not finite"}, {}};
  for (const HeatStrip::Row& row : strip.rows) {
    ChartBounds bounds;
    double newest = std::nan("");
    for (const double cell : row.cells) {
      bounds.take(cell);
      if (std::isfinite(cell)) newest = cell;
    }
    out.rows.push_back({name_of(row), bounds.any() ? number_text(bounds.low) : "",
                        bounds.any() ? number_text(bounds.high) : "",
                        bounds.any() ? number_text(newest) : "",
                        row.bad_at ? "at " + number_text(*row.bad_at) : ""});
  }
  return out;
}

std::string sentence_of(const HeatStrip& strip) {
  ChartBounds bounds;
  const HeatStrip::Row* greatest = nullptr;
  const HeatStrip::Row* bad = nullptr;
  for (const HeatStrip::Row& row : strip.rows) {
    for (const double cell : row.cells) {
      if (std::isfinite(cell) && (greatest == nullptr || cell > bounds.high)) greatest = &row;
      bounds.take(cell);
    }
    if (row.bad_at && (bad == nullptr || *row.bad_at < *bad->bad_at)) bad = &row;
  }
  const std::size_t columns = strip.rows.empty() ? 0 : strip.rows.front().cells.size();
  std::string out = std::to_string(strip.tensors) + (strip.tensors == 1 ? " tensor" : " tensors") +
                    ", steps " + number_text(strip.from) + " to " +
                    number_text(strip.from + static_cast<double>(columns) * strip.width - 1) + ":";
  if (greatest == nullptr) {
    out += " no finite number";
  } else {
    out += " from " + number_text(bounds.low) + " to " + number_text(bounds.high) +
           ", the greatest in " + name_of(*greatest);
  }
  if (bad != nullptr) {
    out +=
        "; not finite for the first time in " + name_of(*bad) + ", at " + number_text(*bad->bad_at);
  }
  out += ".";
  if (strip.rows.size() < strip.tensors) {
    out += " " + std::to_string(strip.rows.size()) + " rows, each the greatest of its tensors.";
  }
  return out;
}

}  // namespace tocsin::app::report
