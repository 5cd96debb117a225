#include <algorithm>

#include "app/report/chart_table.h"
#include "app/report/heat_strip.h"
#include "app/report/page.h"
#include "core/visible_text.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kMostMarkdownRows = 50;

/// Nothing in a text of a training begins a table, a link, an image, an element or a mention.
std::string plain(const std::string& text) {
  static constexpr std::string_view kActive = "\\`*_{}[]<>()#+!|~@&";
  std::string out;
  for (const char one : core::visible(text)) {
    if (kActive.find(one) != std::string_view::npos) out += '\\';
    out += one;
  }
  return out;
}

std::string cells_of(const std::vector<std::string>& cells, std::size_t columns) {
  std::string out = "|";
  for (std::size_t i = 0; i < columns; ++i) {
    out += " " + (i < cells.size() ? plain(cells[i]) : "") + " |";
  }
  return out + "\n";
}

std::string markdown_of(const std::vector<Block>& blocks);

std::string markdown_of(const Paragraph& block) {
  const std::string text = plain(block.text);
  return (block.important ? "**" + text + "**" : text) + "\n\n";
}

std::string markdown_of(const Table& block) {
  std::size_t columns = block.head.size();
  for (const auto& row : block.rows) columns = std::max(columns, row.size());
  if (columns == 0) return "";
  std::string out = cells_of(block.head, columns) + "|";
  for (std::size_t i = 0; i < columns; ++i) out += "---|";
  out += "\n";
  const std::size_t shown = std::min(block.rows.size(), kMostMarkdownRows);
  for (std::size_t i = 0; i < shown; ++i) out += cells_of(block.rows[i], columns);
  if (shown < block.rows.size()) {
    out += "\n" + std::to_string(block.rows.size() - shown) + " more rows are in the page.\n";
  }
  return out + "\n";
}

std::string markdown_of(const CurveChart& block) {
  std::string out;
  for (const auto& series : block.series) {
    out += "* **" + plain(block.title) + "** " + plain(sentence_of(block, series)) + "\n";
  }
  return out;
}

std::string markdown_of(const HeatStrip& block) {
  return "* **" + plain(block.title) + "** " + plain(sentence_of(block)) + "\n";
}

// Timelines and the like are told by the table beside them.
template <typename Chart>
std::string markdown_of(const Chart& /*block*/) {
  return "";
}

std::string markdown_of(const std::vector<Block>& blocks) {
  std::string out;
  for (const Block& block : blocks) {
    out += std::visit([](const auto& one) { return markdown_of(one); }, block.of);
  }
  return out;
}

}  // namespace

std::string page_markdown(const Page& page, std::size_t sections) {
  std::string out = "# " + plain(page.title) + "\n\n";
  for (const auto& [name, value] : page.facts) {
    out += "* " + plain(name) + ": " + plain(value) + "\n";
  }
  for (std::size_t i = 0; i < std::min(sections, page.sections.size()); ++i) {
    out += "\n## " + plain(page.sections[i].title) + "\n\n" + markdown_of(page.sections[i].blocks);
  }
  return out;
}

}  // namespace tocsin::app::report
