// The rows of frame v1: kinds of frames, their columns and the structs of a row (docs/wire.md).
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tocsin::core {

enum class FrameKind : std::uint8_t {
  summary = 1,
  scalar = 2,
  step_end = 3,
  lifecycle = 4,
  system = 5,
  span = 6,
  dictionary = 7,
  tensor_chunk = 8,
  snapshot = 9,
};

inline constexpr std::size_t kColumnBytes = 8;

/// Column numbers per kind. A further one goes to the end, and into the row below: frames whose
/// writers do not know it yet stay readable.
namespace summary_column {
enum : std::size_t {
  name,
  count,
  sum,
  sumsq,
  m2,
  abs_sum,
  min,
  max,
  nan,
  posinf,
  neginf,
  zero,
  negative,
  meta,
  columns
};
}
namespace scalar_column {
enum : std::size_t { name, step, global_step, time, value, meta, columns };
}
namespace step_end_column {
enum : std::size_t { step, global_step, start, end, micro_steps, meta, columns };
}
namespace system_column {
enum : std::size_t { series, time, value, meta, columns };
}
namespace span_column {
enum : std::size_t { name, track, start, duration, step, args, meta, columns };
}

/// Columns that a row of this kind has at least: those of version 1.0, whatever the enumerations
/// above grow to. A reader takes any frame with these; 0 for kinds without columns.
constexpr std::size_t least_columns(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::summary:
      return 14;
    case FrameKind::scalar:
    case FrameKind::step_end:
      return 6;
    case FrameKind::system:
      return 4;
    case FrameKind::span:
      return 7;
    case FrameKind::lifecycle:
    case FrameKind::dictionary:
    case FrameKind::tensor_chunk:
    case FrameKind::snapshot:
      return 0;
  }
  return 0;
}

/// A row of a summary frame: 14 canonical columns. n = count elements.
struct SummaryRow {
  std::uint64_t name = 0;
  std::uint64_t count = 0;
  double sum = 0;
  double sumsq = 0;
  double m2 = 0;  // Σ (x − mean)²
  double abs_sum = 0;
  double min = 0;  // NaN when any element is NaN; meaningless when count is 0
  double max = 0;
  std::uint64_t nan = 0;
  std::uint64_t posinf = 0;
  std::uint64_t neginf = 0;
  std::uint64_t zero = 0;      // ±0
  std::uint64_t negative = 0;  // −Inf counts, NaN does not
  std::uint64_t meta = 0;

  [[nodiscard]] double n() const noexcept { return static_cast<double>(count); }
  [[nodiscard]] double mean() const noexcept { return sum / n(); }
  [[nodiscard]] double abs_mean() const noexcept { return abs_sum / n(); }
  [[nodiscard]] double l1() const noexcept { return abs_sum; }
  [[nodiscard]] double l2() const noexcept { return std::sqrt(sumsq); }
  [[nodiscard]] double variance() const noexcept { return m2 / n(); }  // population
  [[nodiscard]] double std() const noexcept { return std::sqrt(variance()); }
  [[nodiscard]] double abs_max() const noexcept {
    return std::isnan(min) || std::isnan(max) ? std::nan("")
                                              : std::fmax(std::fabs(min), std::fabs(max));
  }
  [[nodiscard]] std::uint64_t positive() const noexcept { return count - nan - zero - negative; }
  [[nodiscard]] std::uint64_t non_finite() const noexcept { return nan + posinf + neginf; }
};
static_assert(sizeof(SummaryRow) == summary_column::columns * kColumnBytes);

/// A row of a scalar frame: one value of one metric at one step.
struct ScalarRow {
  std::uint64_t name = 0;
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t time = 0;  // UTC ns
  double value = 0;       // may be NaN or infinite
  std::uint64_t meta = 0;
};
static_assert(sizeof(ScalarRow) == scalar_column::columns * kColumnBytes);

/// A row of a step-end frame: one finished step of one worker.
struct StepEndRow {
  std::int64_t step = 0;
  std::int64_t global_step = 0;
  std::int64_t start = 0;  // UTC ns
  std::int64_t end = 0;    // UTC ns
  std::uint64_t micro_steps = 1;
  std::uint64_t meta = 0;
};
static_assert(sizeof(StepEndRow) == step_end_column::columns * kColumnBytes);

/// A row of a system frame: one sample of one series; meta 1 = monotonic counter.
struct SystemRow {
  std::uint64_t series = 0;
  std::int64_t time = 0;  // UTC ns; one time for all samples of a sweep
  double value = 0;
  std::uint64_t meta = 0;
};
static_assert(sizeof(SystemRow) == system_column::columns * kColumnBytes);

/// A row of a span frame: something that took time on one track.
struct SpanRow {
  std::uint64_t name = 0;
  std::uint64_t track = 0;
  std::int64_t start = 0;     // UTC ns
  std::int64_t duration = 0;  // ns; -1 = an instant
  std::int64_t step = 0;
  std::uint64_t args = 0;  // hash of the arguments, 0 none
  std::uint64_t meta = 0;
};
static_assert(sizeof(SpanRow) == span_column::columns * kColumnBytes);

}  // namespace tocsin::core
