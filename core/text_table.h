// Rows of cells as text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tocsin::core {

using TableRow = std::vector<std::string>;

/// Columns as wide as their widest cell, the last one as it is; each row is indented by two blanks.
std::string text_table(const std::vector<TableRow>& rows);

/// Words of `text` behind `lead`, broken before `columns`; further lines are indented by `indent` blanks. Ends in a
/// line's end.
std::string wrapped(const std::string& lead, std::string_view text, std::size_t columns,
                    std::size_t indent);

}  // namespace tocsin::core
