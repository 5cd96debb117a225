// What curves.db holds and what it costs, by class of series.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/series/series_schema.h"

namespace tocsin::insights {

/// Bytes are those of the stored numbers: without SQLite's pages and indices.
struct ClassStats {
  std::string name;                   // scalars, clocks, tensors, system, spans
  std::int64_t series = 0, rows = 0;  // rows that were taken in
  std::int64_t values = 0;            // numbers of these rows: rows times columns
  FamilyKind kind = FamilyKind::scalar;
  std::int64_t rows_gone = 0;  // of the rows, by their age
  std::int64_t row_bytes = 0, pyramid_bytes = 0, histogram_bytes = 0;
};

struct SeriesStats {
  std::vector<ClassStats> classes;  // those that have series
  std::int64_t runs = 0, nodes = 0;
  std::int64_t newest = 0;  // when a run or node was heard of last; microseconds, UTC; 0: none was
  std::int64_t bytes = 0, free_bytes = 0;  // of the file; free: can be used again
};

/// How many rows each run has, by its uid; nodes are left out. Errors: as those of check_series.
core::Result<std::map<std::string, std::int64_t>> rows_of_runs(const std::string& path);

/// Reads all pages once. Errors: as those of check_series.
core::Result<SeriesStats> series_stats(const std::string& path);

}  // namespace tocsin::insights
