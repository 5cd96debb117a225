// Rows of a summary frame as rules see them.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>

#include "core/codes.h"
#include "core/frame.h"

namespace tocsin::rules {

struct Name;
class LossCourse;
class NameTable;
struct Worker;

/// Tells one shape of a tensor from another; 0: not known, or it is nullptr.
std::uint64_t shape_hash(const Name* name);

/// One row of a summary frame, read column by column: a rule pays only for what it looks at.
class Row {
 public:
  Row(const std::byte* columns, std::size_t rows, std::size_t at) noexcept
      : columns_(columns), rows_(rows), at_(at) {}
  [[nodiscard]] std::size_t index() const noexcept { return at_; }
  [[nodiscard]] std::uint64_t name() const noexcept { return whole(core::summary_column::name); }
  [[nodiscard]] std::uint64_t count() const noexcept { return whole(core::summary_column::count); }
  [[nodiscard]] double n() const noexcept { return static_cast<double>(count()); }
  [[nodiscard]] double sum() const noexcept { return real(core::summary_column::sum); }
  [[nodiscard]] double mean() const noexcept { return sum() / n(); }
  [[nodiscard]] double sumsq() const noexcept { return real(core::summary_column::sumsq); }
  [[nodiscard]] double m2() const noexcept { return real(core::summary_column::m2); }
  [[nodiscard]] double l2() const noexcept { return std::sqrt(sumsq()); }
  /// Of the population; NaN when an element is no finite number.
  [[nodiscard]] double variance() const noexcept { return real(core::summary_column::m2) / n(); }
  [[nodiscard]] double abs_sum() const noexcept { return real(core::summary_column::abs_sum); }
  [[nodiscard]] double abs_mean() const noexcept { return abs_sum() / n(); }
  [[nodiscard]] double min() const noexcept { return real(core::summary_column::min); }
  [[nodiscard]] double max() const noexcept { return real(core::summary_column::max); }
  [[nodiscard]] double abs_max() const noexcept {
    const double low = min();
    const double high = max();
    return std::isnan(low) || std::isnan(high) ? std::nan("")
                                               : std::max(std::fabs(low), std::fabs(high));
  }
  [[nodiscard]] std::uint64_t nan() const noexcept { return whole(core::summary_column::nan); }
  [[nodiscard]] std::uint64_t posinf() const noexcept {
    return whole(core::summary_column::posinf);
  }
  [[nodiscard]] std::uint64_t neginf() const noexcept {
    return whole(core::summary_column::neginf);
  }
  [[nodiscard]] std::uint64_t non_finite() const noexcept { return nan() + posinf() + neginf(); }
  [[nodiscard]] std::uint64_t zero() const noexcept { return whole(core::summary_column::zero); }
  [[nodiscard]] std::uint64_t negative() const noexcept {
    return whole(core::summary_column::negative);
  }
  [[nodiscard]] std::uint64_t positive() const noexcept {
    return count() - nan() - zero() - negative();
  }
  [[nodiscard]] std::uint64_t meta() const noexcept { return whole(core::summary_column::meta); }
  [[nodiscard]] core::Role role() const noexcept { return core::meta::role(meta()); }
  [[nodiscard]] core::Dtype dtype() const noexcept { return core::meta::dtype(meta()); }

 private:
  template <typename T>
  [[nodiscard]] T load(std::size_t column) const noexcept {
    T value;
    std::memcpy(&value, columns_ + (column * rows_ + at_) * core::kColumnBytes, sizeof value);
    return value;
  }
  [[nodiscard]] std::uint64_t whole(std::size_t column) const noexcept {
    return load<std::uint64_t>(column);
  }
  [[nodiscard]] double real(std::size_t column) const noexcept { return load<double>(column); }

  const std::byte* columns_;
  std::size_t rows_;
  std::size_t at_;
};

/// The rows of one frame with what they share. Valid during one call.
struct RowBatch {
  static constexpr std::uint32_t kSkip = 0xFFFFFFFFU;

  const std::byte* columns = nullptr;
  std::size_t rows = 0;
  std::span<const std::uint32_t> slots;   // unit of each row; kSkip = not to be judged
  std::uint32_t first = kSkip;            // the first of them, where they stand side by side
  std::span<const std::uint64_t> shapes;  // per unit: shape_of(); may be empty
  core::Mode mode = core::Mode::global;
  std::int64_t step = 0;
  std::int64_t time = 0;         // of measurement, UTC ns
  std::uint32_t world_size = 0;  // 0 unknown
  double loss_scale = 1;         // last one the worker stated; gradients are not yet divided by it
  // Passes through this mode that the worker had begun before; NaN: its producer counts none.
  double epoch = std::numeric_limits<double>::quiet_NaN();
  bool scalar = false;  // one logged value, count 1
  std::span<const core::SparseColumn> sparse;
  std::span<const core::SparseVector> vectors;
  // What the worker last said of its learning rate, and the most it ever said; NaN: nothing.
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  double max_learning_rate = std::numeric_limits<double>::quiet_NaN();
  double learning_share = std::numeric_limits<double>::quiet_NaN();  // of the two, divided once
  const NameTable* names = nullptr;  // what the run's dictionaries say
  const Worker* worker = nullptr;    // whose rows these are; it may know better
  const LossCourse* losses =
      nullptr;  // of the worker's training, so far; nullptr: nothing is known

  void set_learning_rate(double rate, double most) noexcept {
    learning_rate = rate;
    max_learning_rate = most;
    learning_share = rate / most;
  }
  /// A column from one row on, for rules that look at several rows at once.
  template <typename T>
  [[nodiscard]] core::ColumnView<T> column(std::size_t number, std::size_t from) const noexcept {
    return {columns + (number * rows + from) * core::kColumnBytes, rows - from};
  }
  /// A statistic sent for this row on request, whatever its parameters.
  [[nodiscard]] std::optional<double> statistic(core::SparseStat stat, std::size_t row) const {
    if (sparse.empty()) return std::nullopt;
    return sent(stat, row);
  }
  /// The same with exactly these parameters: one of others says something else.
  [[nodiscard]] std::optional<double> statistic(core::SparseStat stat, std::size_t row,
                                                std::initializer_list<double> parameters) const {
    if (sparse.empty()) return std::nullopt;
    return sent(stat, row, parameters);
  }
  [[nodiscard]] std::optional<std::uint64_t> digest(std::size_t row) const {
    const std::optional<double> bits = statistic(core::SparseStat::digest, row);
    if (!bits) return std::nullopt;
    return std::bit_cast<std::uint64_t>(*bits);
  }
  /// How many elements of the row have this value: statistic `value_counts`, where it was asked
  /// for the value.
  [[nodiscard]] std::optional<double> count_of(double value, std::size_t row) const;
  /// The dictionary's entry of the row; nullptr: none came yet.
  [[nodiscard]] const Name* about(const Row& row) const;
  /// Tells one shape of a tensor from another; 0: not known.
  [[nodiscard]] std::uint64_t shape_of(const Row& row) const {
    const std::uint32_t slot = slots[row.index()];
    return slot < shapes.size() ? shapes[slot] : shape_hash(about(row));
  }
  /// By what its statistics are to be divided: the loss scale, for a gradient that still has it.
  [[nodiscard]] double scale_of(const Row& row) const noexcept {
    const bool scaled =
        row.role() == core::Role::gradient && (row.meta() & core::meta::kUnscaled) == 0;
    return scaled ? loss_scale : 1.0;
  }

 private:
  [[nodiscard]] std::optional<double> sent(core::SparseStat stat, std::size_t row) const;
  [[nodiscard]] std::optional<double> sent(core::SparseStat stat, std::size_t row,
                                           std::initializer_list<double> parameters) const;
};

/// Large states of many units stand in no cache: fetches that of a row which comes soon. `at`: of
/// the present one among `rows`.
inline void fetch_ahead(const RowBatch& batch, std::span<const std::uint32_t> rows, std::size_t at,
                        const std::byte* states, std::size_t size) noexcept {
  constexpr std::size_t kAhead = 4;
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kMost = 8 * kLine;
  if (at + kAhead >= rows.size()) return;
  const std::byte* const state = states + batch.slots[rows[at + kAhead]] * size;
  for (std::size_t line = 0; line < std::min(size, kMost); line += kLine)
    __builtin_prefetch(state + line, 1);
}

}  // namespace tocsin::rules
