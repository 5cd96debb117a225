#include "insights/series/step_grid.h"

#include <algorithm>
#include <limits>

namespace tocsin::insights {
namespace {

constexpr std::int64_t kMostRowsRead = 3'000'000;  // beyond it columns are as wide as kept buckets

// Columns are not narrower than the densest grid of steps.
std::int64_t level_of_stride(const std::vector<NamedFamilies>& all) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const NamedFamilies& one : all) {
    for (const FamilyLine& family : one.families) {
      if (family.rows < 2) continue;
      least = std::min(least, (family.x_last - family.x_first) / (family.rows - 1));
    }
  }
  if (least == std::numeric_limits<std::int64_t>::max()) return 0;
  std::int64_t level = 0;
  while (least >> (level + 1) > 0) ++level;
  return level;
}

}  // namespace

StepGrid grid_of_steps(const StepRange& asked, const std::vector<NamedFamilies>& all) {
  StepGrid out;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  std::int64_t rolled = 0;  // the level of the widest of the lowest buckets that are kept
  for (const NamedFamilies& one : all) {
    for (const FamilyLine& family : one.families) {
      first = std::min(first, family.x_first);
      end = std::max(end, family.x_last + 1);
      rolled = std::max(rolled, family.k0);
    }
  }
  if (end == 0) first = 0;
  out.from = asked.from.value_or(first);
  out.to = std::max(out.from + 1, asked.to.value_or(end));
  out.level = std::max(level_of(out.from, out.to, asked.columns), level_of_stride(all));
  std::int64_t rows = 0;
  for (const NamedFamilies& one : all) {
    for (const FamilyLine& family : one.families) {
      const std::int64_t inside =
          std::min(out.to, family.x_last + 1) - std::max(out.from, family.x_first);
      rows += std::clamp(inside, std::int64_t{0}, family.rows);
    }
  }
  if (rows > kMostRowsRead) out.level = std::max(out.level, rolled);
  out.level = kept_level(all, out.from, out.level);
  out.from = out.from / out.width() * out.width();
  out.to = (out.to + out.width() - 1) / out.width() * out.width();
  return out;
}

void add_cells(SeriesReader& reader, const std::vector<FamilyLine>& families, std::size_t column,
               const StepGrid& grid, std::vector<Bucket>& cells) {
  const std::int64_t first = grid.from >> grid.level;
  for (const Stretch& part : stretches(families)) {
    if (part.superseded) continue;
    const std::int64_t lo = std::max(part.lo, grid.from);
    const std::int64_t hi = std::min(part.hi, grid.to);
    if (lo >= hi) continue;
    reader.visit_buckets(part.family, column, lo, hi, grid.level,
                         [&](std::int64_t at, const Bucket& some) {
                           cells[static_cast<std::size_t>(at - first)].append(some);
                         });
  }
}

}  // namespace tocsin::insights
