// Tables of series, and what families have for columns. Internal to series.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/result.h"
#include "insights/store/database.h"

namespace tocsin::insights {

inline constexpr std::int64_t kSeriesStoreId = 0x544F4343;  // "TOCC": the file is one of ours
inline constexpr std::int64_t kSeriesVersion = 1;           // of the tables

/// What has one x. Numbers are stored: never renumber them.
enum class FamilyKind : std::int64_t { scalar = 2, clock = 3 };

/// A column of a family, in the order in which rows have them.
struct ColumnForm {
  std::string_view name;
  bool rolled = false;  // it has a pyramid
};
/// Scalar: the value, and when it was logged (microseconds, UTC). Clock: the seconds of the step, its
/// end (microseconds, UTC), the global step, the micro-steps.
std::span<const ColumnForm> columns_of(FamilyKind kind);
inline constexpr std::size_t kValueColumn = 0;
inline constexpr std::size_t kTimeColumn = 1;

/// Makes the tables in an empty file. failed_precondition: another program's file, or of another
/// version.
core::Status prepare_series(StoreDatabase& database);

}  // namespace tocsin::insights
