// Columns of steps that pictures of a run share: as many as asked, not narrower than its grid of steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "insights/series/series_query.h"

namespace tocsin::insights {

struct StepGrid {
  std::int64_t level = 0;         // a column holds 2^level steps
  std::int64_t from = 0, to = 0;  // at bounds of columns

  [[nodiscard]] std::int64_t width() const noexcept { return std::int64_t{1} << level; }
  [[nodiscard]] std::size_t columns() const noexcept {
    return static_cast<std::size_t>((to - from) >> level);
  }
};

struct StepRange {
  std::optional<std::int64_t> from, to;  // [from, to)
  std::int64_t columns = 600;            // at most
};
StepGrid grid_of_steps(const StepRange& asked, const std::vector<NamedFamilies>& all);

/// Adds the values of one name to the cells of its columns; what a later attempt went over is left out.
void add_cells(SeriesReader& reader, const std::vector<FamilyLine>& families, std::size_t column,
               const StepGrid& grid, std::vector<Bucket>& cells);

}  // namespace tocsin::insights
