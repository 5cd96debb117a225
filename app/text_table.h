// Rows of cells as text for a terminal.
#pragma once

#include <string>
#include <vector>

namespace tocsin::app {

using TableRow = std::vector<std::string>;

/// Columns as wide as their widest cell, the last one as it is; each row is indented by two blanks.
std::string text_table(const std::vector<TableRow>& rows);

}  // namespace tocsin::app
