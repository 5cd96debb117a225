#include "core/text_table.h"

#include <algorithm>

#include "core/text.h"

namespace tocsin::core {

std::string text_table(const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      widths[i] = std::max(widths[i], count_code_points(row[i]));
  }
  std::string out;
  for (const TableRow& row : rows) {
    out += "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - count_code_points(row[i]) + 2, ' ');
    }
    out += "\n";
  }
  return out;
}

std::string wrapped(const std::string& lead, std::string_view text, std::size_t columns,
                    std::size_t indent) {
  std::string out = lead;
  std::size_t column = count_code_points(lead);
  bool first = true;  // of its line
  while (!text.empty()) {
    const std::size_t end = text.find(' ');
    const std::string_view word = text.substr(0, end);
    const std::size_t width = count_code_points(word);
    if (!first && column + 1 + width > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
      first = true;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width;
    first = false;
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return out + "\n";
}

}  // namespace tocsin::core
