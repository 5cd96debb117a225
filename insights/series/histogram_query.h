// Elements of tensors by their magnitude over the steps of a run: columns of steps, bins of values.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/result.h"
#include "insights/series/exponential_counts.h"
#include "insights/series/heat_query.h"

namespace tocsin::insights {

struct HistogramAsk {
  TensorAsk of;                          // elements of several tensors and workers are added up
  std::optional<std::int64_t> from, to;  // steps: [from, to)
  std::int64_t columns = 200;            // at most
  std::int64_t rows = 160;               // bins of both signs and that of 0, at most
};

/// The histograms of a column's steps, added up.
struct HistogramColumn {
  std::int64_t histograms = 0;
  ExponentialCounts counts;  // of the answer's scale
};

struct HistogramAnswer {
  std::optional<core::Mode> mode;
  std::vector<core::Mode> modes;
  std::int64_t level = 0;  // a column holds 2^level steps
  std::int64_t from = 0, to = 0;
  std::int64_t tensors = 0;   // that were asked for and have values
  std::int64_t left_out = 0;  // of these, because they are too many
  bool thinned = false;  // columns have more histograms than were added up: the first ones were
  bool gone = false;     // older ones gave way to newer ones
  int scale = ExponentialCounts::kFinest;
  std::int64_t first = 0, end = 0;  // buckets of a sign that has elements
  bool positive = false, negative = false;
  std::vector<HistogramColumn> columns;
};

core::Result<HistogramAnswer> ask_histogram(SeriesReader& reader, const HistogramAsk& ask);

}  // namespace tocsin::insights
