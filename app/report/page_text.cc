#include <algorithm>

#include "app/report/chart_table.h"
#include "app/report/heat_strip.h"
#include "app/report/page.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kMostPoints = 12;  // of a chart's numbers

std::string indented(const std::string& lines, std::size_t by) {
  std::string out;
  std::size_t at = 0;
  while (at < lines.size()) {
    const std::size_t end = std::min(lines.find('\n', at), lines.size());
    if (end > at) out += std::string(by, ' ') + lines.substr(at, end - at);
    out += "\n";
    at = end + 1;
  }
  return out;
}

std::string text_of(const std::vector<Block>& blocks);

std::string text_of(const Paragraph& block) {
  return (block.important ? "! " : "  ") + core::visible(block.text) + "\n";
}

std::string text_of(const Table& block) {
  std::vector<core::TableRow> rows;
  std::size_t columns = block.head.size();
  for (const auto& row : block.rows) columns = std::max(columns, row.size());
  const auto add = [&](const std::vector<std::string>& cells) {
    core::TableRow row(columns);
    std::transform(cells.begin(), cells.end(), row.begin(),
                   [](const std::string& cell) { return core::visible(cell); });
    rows.push_back(std::move(row));
  };
  if (!block.head.empty()) add(block.head);
  for (const auto& row : block.rows) add(row);
  return rows.empty() ? "" : core::text_table(rows);
}

std::string text_of(const Matrix& block) {
  Table table{{block.rows + " \\ " + block.columns}, {}};
  table.head.insert(table.head.end(), block.names.begin(), block.names.end());
  for (std::size_t i = 0; i < block.cells.size(); ++i) {
    std::vector<std::string> row{i < block.names.size() ? block.names[i] : ""};
    for (const double cell : block.cells[i]) row.push_back(number_text(cell));
    table.rows.push_back(std::move(row));
  }
  return text_of(table);
}

// The numbers of a chart: some of its points.
template <typename Chart>
std::string text_of(const Chart& block) {
  Table table = table_of(block);
  if constexpr (std::is_same_v<Chart, LineChart>) {
    const std::size_t all = table.rows.size();
    if (all > kMostPoints) {
      std::vector<std::vector<std::string>> some;
      for (std::size_t i = 0; i + 1 < kMostPoints; ++i) {
        some.push_back(table.rows[i * (all - 1) / (kMostPoints - 1)]);
      }
      some.push_back(table.rows.back());
      table.rows = std::move(some);
    }
  }
  return text_of(table);
}

std::string text_of(const CurveChart& block) {
  std::string out;
  for (const auto& series : block.series) {
    out +=
        "  " + core::visible(block.title) + "  " + core::visible(sentence_of(block, series)) + "\n";
  }
  return out;
}

std::string text_of(const HeatStrip& block) {
  return "  " + core::visible(block.title) + "  " + core::visible(sentence_of(block)) + "\n";
}

std::string text_of(const Group& block) {
  return block.aside
             ? ""
             : "  " + core::visible(block.title) + "\n" + indented(text_of(block.blocks), 2);
}

std::string text_of(const std::vector<Block>& blocks) {
  std::string out;
  for (const Block& block : blocks) {
    out += std::visit([](const auto& one) { return text_of(one); }, block.of);
  }
  return out;
}

}  // namespace

std::string page_text(const Page& page) {
  std::string out = core::visible(page.title) + "\n";
  std::vector<core::TableRow> facts;
  for (const auto& [name, value] : page.facts) facts.push_back({name, core::visible(value)});
  if (!facts.empty()) out += core::text_table(facts);
  for (const Section& section : page.sections) {
    out += "\n" + core::visible(section.title) + "\n" + text_of(section.blocks);
  }
  return out + "\n" + core::visible(page.note) + "\n";
}

}  // namespace tocsin::app::report
