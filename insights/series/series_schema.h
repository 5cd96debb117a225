// Tables of series, and what families have for columns. Internal to series.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "insights/store/database.h"

namespace tocsin::insights {

inline constexpr std::int64_t kSeriesStoreId = 0x544F4343;  // "TOCC": the file is one of ours
inline constexpr std::int64_t kSeriesVersion = 4;           // of the tables

/// What has one x. Numbers are stored: never renumber them.
/// What is not a family but has names is beside them (name_kind).
enum class FamilyKind : std::int64_t { tensor = 1, scalar = 2, clock = 3, system = 5, span = 7 };

/// Kinds of names beside those of families.
namespace name_kind {
inline constexpr std::int64_t kWorker = 4;
inline constexpr std::int64_t kSpanName = 6;
inline constexpr std::int64_t kSentSeries = 8;  // of a node, as its agent calls it
}  // namespace name_kind

/// A column of a family, in the order in which rows have them.
struct ColumnForm {
  std::string_view name;
  bool rolled = false;  // it has a pyramid
};
/// Scalar: the value, and when it was logged (microseconds, UTC). Clock: the seconds of the step, its
/// end (microseconds, UTC), the global step, the micro-steps. Tensor: its statistics, from which every
/// count of a frame comes back exactly (docs/statistics.md). System: the sample; its x is milliseconds,
/// UTC. Span: its x is its place among those of its track, in order of arrival, since spans that hold
/// others arrive behind them.
std::span<const ColumnForm> columns_of(FamilyKind kind);
inline constexpr std::size_t kValueColumn = 0;
inline constexpr std::size_t kTimeColumn = 1;

/// Columns of a tensor. `zero` and `negative` are shares of its elements, what follows are counts.
namespace tensor_column {
enum : std::size_t {
  l2,
  time,
  mean,
  std,
  min,
  max,
  abs_max,
  abs_mean,
  zero,
  negative,
  nan,
  posinf,
  neginf,
  count,
  columns
};
}

/// Columns of a span. Times are microseconds, UTC; the hash of its name is in two halves, each of which
/// a double holds exactly.
namespace span_column_of {
enum : std::size_t { end, start, nanos, name_high, name_low, step, columns };
}

/// The column of a tensor that a statistic's name means: those of docs/statistics.md that are kept.
std::optional<std::size_t> tensor_column_of(std::string_view statistic);
/// Their names, without `time`.
std::vector<std::string> tensor_statistics();

/// Makes the tables in an empty file, and what a file of version 3 lacks. failed_precondition: another program's file, or of another
/// version.
core::Status prepare_series(StoreDatabase& database);

}  // namespace tocsin::insights
