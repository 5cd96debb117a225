#include "app/report/page_size.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <variant>

#include "app/report/heat_strip.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kLeastRows = 8;
constexpr std::size_t kLeastPoints = 50;

using Shrink = std::function<void(Block&)>;

void each_block(std::vector<Block>& blocks, const Shrink& what) {
  for (Block& block : blocks) {
    if (auto* group = std::get_if<Group>(&block.of)) each_block(group->blocks, what);
    what(block);
  }
}

void each_block(Page& page, const Shrink& what) {
  for (Section& section : page.sections) each_block(section.blocks, what);
}

std::size_t most_rows(Page& page) {
  std::size_t out = 0;
  each_block(page, [&](Block& block) {
    if (const auto* strip = std::get_if<HeatStrip>(&block.of))
      out = std::max(out, strip->rows.size());
  });
  return out;
}

std::size_t most_points(Page& page) {
  std::size_t out = 0;
  each_block(page, [&](Block& block) {
    const auto* chart = std::get_if<CurveChart>(&block.of);
    if (chart == nullptr) return;
    for (const auto& series : chart->series) out = std::max(out, series.points.size());
  });
  return out;
}

void join_points(CurveChart::Point& into, const CurveChart::Point& next) {
  if (next.bad_at && !into.bad_at) into.bad_at = next.bad_at;
  if (!next.finite) return;
  if (!into.finite) {
    const auto bad_at = into.bad_at;
    const double x = into.x;
    into = next;
    into.x = x;
    into.bad_at = bad_at;
    return;
  }
  const double all = into.weight + next.weight;
  into.mean += (next.mean - into.mean) * (next.weight / all);
  into.low = std::min(into.low, next.low);
  into.high = std::max(into.high, next.high);
  into.weight = all;
}

/// One point for two, where both lie in one bucket of twice the width.
void halve_points(CurveChart& chart) {
  chart.width *= 2;
  for (CurveChart::Series& series : chart.series) {
    std::vector<CurveChart::Point> points;
    for (const CurveChart::Point& point : series.points) {
      const double x = std::floor(point.x / chart.width) * chart.width;
      if (!points.empty() && points.back().x == x) {
        join_points(points.back(), point);
        continue;
      }
      points.push_back(point);
      points.back().x = x;
    }
    series.points = std::move(points);
  }
}

std::string megabytes(std::size_t bytes) {
  return number_text(std::round(static_cast<double>(bytes) / (1U << 20U) * 10) / 10) + " MiB";
}

}  // namespace

std::string page_within(Page page, std::size_t most) {
  std::string out = page_html(page);
  if (out.size() <= most) return out;
  const std::string note = page.note;
  std::string rows;
  std::string points;
  std::string data;
  const auto cut = [&] {
    page.note = note + " This page was cut to " + megabytes(most) + ":" + rows +
                (rows.empty() || points.empty() ? "" : ",") + points +
                (data.empty() || (rows.empty() && points.empty()) ? "" : ",") + data + ".";
    out = page_html(page);
  };
  for (std::size_t left = most_rows(page); out.size() > most && left > kLeastRows;) {
    left = std::max(left / 2, kLeastRows);
    each_block(page, [&](Block& block) {
      if (auto* strip = std::get_if<HeatStrip>(&block.of)) fold_rows(*strip, left);
    });
    rows = " heat strips have " + std::to_string(left) + " rows at most";
    cut();
  }
  for (std::size_t left = most_points(page); out.size() > most && left > kLeastPoints;) {
    each_block(page, [&](Block& block) {
      if (auto* chart = std::get_if<CurveChart>(&block.of)) halve_points(*chart);
    });
    const std::size_t now = most_points(page);
    if (now >= left) break;  // steps that are far apart
    left = now;
    points = " charts have " + std::to_string(left) + " points at most";
    cut();
  }
  if (out.size() > most && !page.json.empty()) {
    page.json.clear();
    data = " the data for programs are left out (tocsin report -o json has them)";
    cut();
  }
  return out;
}

}  // namespace tocsin::app::report
