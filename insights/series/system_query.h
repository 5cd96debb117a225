// Samples of the nodes of a run as they are drawn: curves over time, and all cores and GPUs at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "insights/series/heat_query.h"
#include "insights/series/series_reader.h"

namespace tocsin::insights {

/// Times are milliseconds, UTC.
struct SystemAsk {
  std::string run;
  std::string node = ".*";               // regular expression, of the whole name
  std::string name = ".*";               // the same, of a series with its labels
  std::optional<std::int64_t> from, to;  // [from, to); not given: when the nodes served the run
  std::int64_t points = 600;
  std::size_t most = 64;              // series
  std::optional<std::int64_t> until;  // as it was at that moment, without what came later
};

/// The series of one node that are asked for, in the order of cores and devices.
struct NodeSeries {
  ServedNode node;
  std::vector<NamedFamilies> series;
};
/// invalid_argument: not a regular expression, and why.
core::Result<std::vector<NodeSeries>> choose_samples(SeriesReader& reader, const SystemAsk& ask);

struct SystemLine {
  std::string node;
  NameLine name;
  std::int64_t stored = 0;
  std::vector<std::pair<std::int64_t, Bucket>> points;  // the bucket's first millisecond
};

struct SystemAnswer {
  std::int64_t level = 0;  // a bucket holds 2^level milliseconds
  std::int64_t from = 0, to = 0;
  std::size_t left_out = 0;  // series beyond `most`
  bool settled = false;      // no sample will come that lies before `to`
  std::vector<SystemLine> lines;
};
core::Result<SystemAnswer> ask_system(SeriesReader& reader, const SystemAsk& ask);

/// A row for each core and each GPU that fits `name`; cells are the mean unless `value` says else.
struct CoreAsk {
  SystemAsk of;
  std::int64_t columns = 600;
  std::int64_t rows = 400;  // at most; then neighbours are one row
  HeatValue value = HeatValue::mean;
};
core::Result<HeatAnswer> ask_cores(SeriesReader& reader, const CoreAsk& ask);

}  // namespace tocsin::insights
