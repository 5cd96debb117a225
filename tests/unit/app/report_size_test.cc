// Heat strips of a report, and what is cut so that a page stays small.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "app/report/heat_strip.h"
#include "app/report/page_size.h"

namespace tocsin::app::report {
namespace {

using testing::HasSubstr;
using testing::Not;

const double kNone = std::nan("");

HeatStrip strip_of(std::size_t rows, std::size_t columns) {
  HeatStrip out;
  out.title = "Norms of gradients";
  out.logarithmic = true;
  out.tensors = rows;
  std::uint64_t mixed = 1;  // values that do not compress
  for (std::size_t i = 0; i < rows; ++i) {
    HeatStrip::Row row{"layer" + std::to_string(i), "layer" + std::to_string(i), {}, {}, {}};
    for (std::size_t j = 0; j < columns; ++j) {
      mixed = mixed * 6364136223846793005ULL + 1442695040888963407ULL;
      row.cells.push_back(1 + static_cast<double>(mixed >> 40U));
    }
    row.bad.resize(columns);
    out.rows.push_back(std::move(row));
  }
  return out;
}

std::uint32_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8U | static_cast<unsigned char>(bytes[at + i]);
  return out;
}

TEST(ReportHeat, IsAnImageWithACellPerPixel) {
  const std::string png = heat_png(strip_of(3, 5));
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png.substr(12, 4), "IHDR");
  EXPECT_EQ(big_endian(png, 16), 5u);
  EXPECT_EQ(big_endian(png, 20), 3u);
  EXPECT_EQ(png.substr(png.size() - 8, 4), "IEND");
}

TEST(ReportHeat, SaysWhatItShows) {
  HeatStrip strip = strip_of(2, 3);
  strip.rows[0].cells = {1, 20, kNone};
  strip.rows[1].cells = {0.5, kNone, 3};
  strip.rows[1].bad[1] = true;
  strip.rows[1].bad_at = 9;
  strip.width = 8;
  EXPECT_EQ(sentence_of(strip),
            "2 tensors, steps 0 to 23: from 0.5 to 20, the greatest in layer0; not finite for the "
            "first time in layer1, at 9.");
  const Table table = table_of(strip);
  EXPECT_EQ(table.rows[0], (std::vector<std::string>{"layer0", "1", "20", "20", ""}));
  EXPECT_EQ(table.rows[1], (std::vector<std::string>{"layer1", "0.5", "3", "3", "at 9"}));
}

TEST(ReportHeat, NamesOfATrainingAreText) {
  HeatStrip strip = strip_of(1, 2);
  strip.rows[0].first = strip.rows[0].last = "<script>";
  const std::string html = page_within({"t", {}, {{"s", {Block{strip}}}}, ""});
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, HasSubstr("href=\"data:image/png;base64,iVBORw0KGgo"));
  EXPECT_THAT(html, HasSubstr("img-src data:;"));
}

TEST(ReportHeat, FoldedRowsKeepTheGreatestAndWhatIsNotFinite) {
  HeatStrip strip = strip_of(5, 2);
  strip.rows[1].cells = {kNone, 1e9};
  strip.rows[1].bad[0] = true;
  strip.rows[1].bad_at = 7;
  strip.rows[0].bad_at = 9;
  const double alone = strip.rows[0].cells[0];
  fold_rows(strip, 3);
  ASSERT_EQ(strip.rows.size(), 3u);
  EXPECT_EQ(strip.rows[0].first, "layer0");
  EXPECT_EQ(strip.rows[0].last, "layer1");
  EXPECT_EQ(strip.rows[0].cells[0], alone);
  EXPECT_EQ(strip.rows[0].cells[1], 1e9);
  EXPECT_TRUE(strip.rows[0].bad[0]);
  EXPECT_EQ(strip.rows[0].bad_at, 7);
  EXPECT_EQ(strip.rows[2].last, "layer4");
  EXPECT_THAT(sentence_of(strip), HasSubstr("5 tensors,"));
  EXPECT_THAT(sentence_of(strip), HasSubstr("3 rows, each the greatest of its tensors."));
}

TEST(ReportHeat, WithoutAnyNumberIsDrawnToo) {
  HeatStrip strip = strip_of(1, 2);
  strip.rows[0].cells = {kNone, std::numeric_limits<double>::max()};
  EXPECT_FALSE(heat_png(strip).empty());
  strip.rows[0].cells = {kNone, kNone};
  EXPECT_THAT(sentence_of(strip), HasSubstr("no finite number"));
  EXPECT_FALSE(heat_png(strip).empty());
  EXPECT_TRUE(svg(HeatStrip{}).empty());
}

CurveChart long_curve() {
  CurveChart chart;
  chart.title = "loss";
  chart.x = "step";
  CurveChart::Series series{"worker_0", {}};
  for (int step = 0; step < 4000; ++step) {
    series.points.push_back({double(step), -1.0 * step, 1, 2.0 * step, true, {}, 1});
  }
  series.points[1001].finite = false;
  series.points[1001].bad_at = 1001;
  series.points[2002].mean = 5;
  series.points[2002].weight = 3;
  chart.series.push_back(std::move(series));
  return chart;
}

Page page_of(const HeatStrip& strip, const CurveChart& chart) {
  Page out{"t", {}, {}, "Note."};
  out.sections.push_back({"How the training went", {}});
  out.sections.back().add(strip);
  out.sections.back().blocks.push_back(Block{Group{"more", {Block{chart}}}});
  out.json = "{\"a\":\"" + std::string(3000, 'x') + "\"}";
  return out;
}

TEST(ReportSize, WhatFitsIsLeftAsItIs) {
  const Page page = page_of(strip_of(20, 50), long_curve());
  EXPECT_EQ(page_within(page), page_html(page));
}

TEST(ReportSize, StripsLoseRowsFirst) {
  const Page page = page_of(strip_of(400, 400), long_curve());
  const std::size_t whole = page_html(page).size();
  const std::string html = page_within(page, whole - 50'000);
  EXPECT_LE(html.size(), whole - 50'000);
  EXPECT_THAT(html, HasSubstr(" heat strips have 200 rows at most."));
  EXPECT_THAT(html, Not(HasSubstr("charts have")));
  EXPECT_THAT(html, HasSubstr("Note. This page was cut to "));
}

TEST(ReportSize, ThenChartsLosePointsAndKeepTheirExtremes) {
  const Page page = page_of(strip_of(8, 4), long_curve());
  const std::string html = page_within(page, 60'000);
  EXPECT_LE(html.size(), 60'000u);
  EXPECT_THAT(html, HasSubstr(" charts have "));
  EXPECT_THAT(html, Not(HasSubstr("rows at most")));
  EXPECT_THAT(html, HasSubstr("least -3999"));
  EXPECT_THAT(html, HasSubstr("greatest 7998"));
  EXPECT_THAT(html, HasSubstr("not finite for the first time at 1001"));
  EXPECT_THAT(html, HasSubstr("id=\"report\""));
}

TEST(ReportSize, TheMeanOfAJoinedPointCountsItsNumbers) {
  CurveChart chart = long_curve();
  auto& points = chart.series[0].points;
  points = {{2002, 0, 5, 9, true, {}, 3}, {2003, 0, 1, 1, true, {}, 1}};
  Page page{"t", {}, {{"s", {Block{chart}}}}, ""};
  page.sections[0].blocks.push_back(Block{long_curve()});
  const std::string html = page_within(page, page_html(page).size() - 1);
  EXPECT_THAT(html, HasSubstr("<td class=\"n\">2002</td><td class=\"n\">4</td><td "
                              "class=\"n\">0</td><td class=\"n\">9</td>"));
}

TEST(ReportSize, AtLastTheDataForProgramsAreLeftOut) {
  Page page = page_of(strip_of(8, 4), CurveChart{});
  page.json = "{\"a\":\"" + std::string(300'000, 'x') + "\"}";
  const std::string html = page_within(page, 50'000);
  EXPECT_LE(html.size(), 50'000u);
  EXPECT_THAT(html, Not(HasSubstr("id=\"report\"")));
  EXPECT_THAT(html, HasSubstr("the data for programs are left out (tocsin report -o json"));
}

}  // namespace
}  // namespace tocsin::app::report
