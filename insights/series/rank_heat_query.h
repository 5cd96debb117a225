// One number of every rank at once: rows of ranks, columns of steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "insights/series/heat_query.h"

namespace tocsin::insights {

struct RankHeatAsk {
  TensorAsk of;
  std::optional<std::size_t>
      statistic;  // this column of tensors; else values of scalars and clocks
  std::optional<std::int64_t> from, to;  // steps: [from, to)
  std::int64_t columns = 600;            // at most
  std::int64_t rows = 400;               // at most; then neighbouring ranks are folded
  HeatValue value = HeatValue::max;      // of a cell's values: of its steps, names and folded ranks
};

/// `first` and `last` of a row are called as the workers are.
struct RankHeat {
  HeatAnswer grid;
  std::int64_t count = 0;           // ranks
  std::vector<std::int64_t> ranks;  // of each row, the first
};

core::Result<RankHeat> ask_rank_heat(SeriesReader& reader, const RankHeatAsk& ask);

}  // namespace tocsin::insights
