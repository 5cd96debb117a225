#include "app/text_table.h"

#include <algorithm>

#include "core/text.h"

namespace tocsin::app {

std::string text_table(const std::vector<TableRow>& rows) {
  std::vector<std::size_t> widths;
  for (const TableRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      widths[i] = std::max(widths[i], core::count_code_points(row[i]));
  }
  std::string out;
  for (const TableRow& row : rows) {
    out += "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - core::count_code_points(row[i]) + 2, ' ');
    }
    out += "\n";
  }
  return out;
}

}  // namespace tocsin::app
