// All tensors of a run at once: rows of tensors, columns of steps, one number per cell.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "insights/series/series_query.h"

namespace tocsin::insights {

/// Which tensors of a run are meant.
struct TensorAsk {
  std::string run;
  std::string name = ".*";    // regular expression, of the whole name
  std::string worker = ".*";  // the same
  std::optional<core::Mode>
      mode;  // not given: train if there is any, else the one with most values
};

struct TensorChoice {
  std::optional<core::Mode> mode;      // that was taken; nullopt: there are no tensors
  std::vector<core::Mode> modes;       // that there are
  std::vector<NamedFamilies> tensors;  // in model order
};
/// invalid_argument: not a regular expression, and why.
core::Result<TensorChoice> choose_tensors(SeriesReader& reader, const TensorAsk& ask);
/// The same of other kinds.
core::Result<TensorChoice> choose_families(SeriesReader& reader, const TensorAsk& ask,
                                           std::span<const FamilyKind> kinds);

enum class HeatOrder { model, name, value };
enum class HeatValue { max, min, mean };

struct HeatAsk {
  TensorAsk of;
  std::size_t column = tensor_column::l2;
  std::optional<std::int64_t> from, to;  // steps: [from, to)
  std::int64_t columns = 600;            // at most
  std::int64_t rows = 400;               // at most; then tensors are folded
  HeatOrder order = HeatOrder::model;
  HeatValue value = HeatValue::max;  // of a cell's values: of its steps, workers and folded tensors
};

/// Values of a cell that are not finite.
struct HeatBad {
  std::int64_t column = 0;
  std::uint32_t nan = 0, posinf = 0, neginf = 0;
  std::int64_t x = -1;  // the first of them
};

struct HeatRow {
  NameLine first, last;  // of the folded ones; the same if there is one
  std::int64_t folded = 1;
  std::vector<std::optional<double>> cells;  // of the finite values
  std::vector<HeatBad> bad;
};

/// What is read of the buckets of a row's cells.
HeatRow row_of_cells(const std::vector<Bucket>& cells, HeatValue how);

struct HeatAnswer {
  std::optional<core::Mode> mode;
  std::vector<core::Mode> modes;
  std::int64_t level = 0;  // a column holds 2^level steps
  std::int64_t from = 0, to = 0;
  std::int64_t tensors = 0;   // that were asked for and have values
  std::int64_t left_out = 0;  // of these, because they are too many
  std::vector<HeatRow> rows;
};

core::Result<HeatAnswer> ask_heat(SeriesReader& reader, const HeatAsk& ask);

}  // namespace tocsin::insights
