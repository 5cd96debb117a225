// What is measured of a tensor beyond the base columns (docs/statistics.md). A statistic is one file
// here and one line in collectors/CMakeLists.txt; its names and numbers stand in core/statistics.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/frame.h"

namespace tocsin::collectors {

/// One tensor at one capture; all is borrowed for the call.
struct TensorSample {
  std::uint64_t id = 0;  // the same for the same tensor at every capture
  core::Dtype dtype = core::Dtype::unknown;
  const void* data = nullptr;  // its elements fill one block of memory, at any alignment
  std::uint64_t count = 0;
  std::span<const std::int64_t> shape;
  bool row_major = true;  // false: the elements come in another order of the dimensions
  std::int64_t step = 0;
  core::SummaryRow row;  // its base columns
  core::Role role = core::Role::other;
  std::string_view op_type = {};  // of the module that has it; empty: not known
  std::int64_t global_step = 0;   // tells steps of different modes apart
};

/// Counts of magnitudes: bucket i holds 2^(i/8) < |x| <= 2^((i+1)/8). The first of each sign has
/// the number `offset`.
struct ExponentialHistogram {
  std::int32_t positive_offset = 0;
  std::int32_t negative_offset = 0;
  std::vector<std::uint64_t> positive;
  std::vector<std::uint64_t> negative;
};

/// Takes what is measured of one sample. Parameters are those of the request that a value depends
/// on: a reader whose own are others passes it over.
class StatisticSink {
 public:
  using Numbers = std::span<const double>;

  virtual ~StatisticSink() = default;
  /// The bits of a binary64, or of the integer that a `digest` is.
  virtual void bits(core::SparseStat stat, std::uint64_t bits, Numbers parameters) = 0;
  virtual void vector(core::VectorStat stat, Numbers values, Numbers parameters) = 0;
  virtual void histogram(const ExponentialHistogram& histogram) = 0;
  /// What is given was taken of some of the elements only.
  virtual void approximate() = 0;

  void number(core::SparseStat stat, double value, Numbers parameters = {}) {
    bits(stat, std::bit_cast<std::uint64_t>(value), parameters);
  }
};

/// A tensor that a statistic would have to keep something of. `name` outlives the call.
struct Wish {
  std::uint64_t id = 0;
  std::size_t bytes = 0;
  std::string_view name;
};

/// What the statistics of one process may keep between captures.
struct StatisticLimits {
  std::uint64_t memory = 0;  // bytes
};

/// One per process and request, with what it keeps of each tensor. Not thread-safe.
class TensorStatistic {
 public:
  virtual ~TensorStatistic() = default;
  /// Gives what it can say of the sample; nothing where it cannot (its type, its order, no earlier
  /// value).
  virtual void measure(const TensorSample& sample, StatisticSink& out) = 0;

  // ---- only for those that keep something
  /// Whether this tensor is to be wished for before it is measured.
  [[nodiscard]] virtual bool is_new(std::uint64_t /*id*/) const { return false; }
  /// All tensors of a capture that are new, at once, so that room is shared among them.
  virtual void admit(std::vector<Wish> /*wishes*/) {}
  [[nodiscard]] virtual std::uint64_t kept_bytes() const { return 0; }
  /// Names of those that found no room.
  [[nodiscard]] virtual std::span<const std::string> left_out() const { return {}; }
};

struct StatisticDescriptor {
  std::string_view request;             // the word of `statistics:`; empty: measured unasked
  std::vector<std::string_view> gives;  // names of core/statistics.h that this word asks for
  bool in_order = false;                // reads elements in row-major order, and so by their place
  /// `parameters`: those of the request. Null: no values that they could have.
  std::unique_ptr<TensorStatistic> (*make)(const StatisticLimits& limits,
                                           std::span<const double> parameters) = nullptr;
};

/// In the order of the lines in collectors/CMakeLists.txt.
std::span<const StatisticDescriptor> builtin_statistics();

}  // namespace tocsin::collectors
