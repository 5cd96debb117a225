// Statistics of a tensor in one pass: the 14 canonical columns (docs/statistics.md), on the CPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/codes.h"
#include "core/frame.h"

namespace tocsin::collectors {

/// The canonical columns of `count` contiguous elements at `data` (any alignment; little-endian as
/// in memory). `name` stays 0; `meta` is the dtype, with kApproximate when integers beyond 2^53
/// were rounded to binary64. Pure, allocates nothing, safe from any thread.
///
/// Counts, min and max are exact. Sums are within 1e-5 of Σ|x|, `sumsq` and `m2` within 1e-5 of
/// themselves; f64 and integer input accumulates in binary64. Non-finite input propagates as
/// docs/statistics.md says. Booleans: any byte but 0 is 1. Complex: min and max are those of |x|,
/// sum and m2 are NaN, a number with a NaN part counts as nan, else one with an infinite part as
/// posinf. unknown and text: every sum is NaN. `count` 0: sums 0, min and max 0 (read `count`).
/// The floating-point environment (flush-to-zero, denormals-are-zero) of the caller is kept and
/// does not change the result.
core::SummaryRow reduce(core::Dtype dtype, const void* data, std::uint64_t count) noexcept;

/// The most dimensions that reduce_strided takes.
inline constexpr std::size_t kMaxDims = 8;

/// The same for a strided view: `shape` and `strides` in elements, equal length, at most kMaxDims;
/// strides may be negative or 0, `data` is the element at index 0. A transposed or permuted dense
/// tensor costs the same as a contiguous one. A shape that is not valid (too many dimensions, other
/// length, negative extent) gives a row with count 0 and kEmptyHere.
core::SummaryRow reduce_strided(core::Dtype dtype, const void* data,
                                std::span<const std::int64_t> shape,
                                std::span<const std::int64_t> strides) noexcept;

/// What changed between two values of one tensor; NaN and infinities propagate.
struct DeltaNorms {
  double delta_l2 = 0;       // ‖now − prev‖₂
  double prev_l2 = 0;        // ‖prev‖₂
  double delta_max_abs = 0;  // max |now − prev|
};

/// Both norms in one pass over two contiguous arrays of the same dtype. Complex: of the moduli.
/// unknown and text: NaN. `count` 0: zeros.
DeltaNorms delta(core::Dtype dtype, const void* now, const void* prev,
                 std::uint64_t count) noexcept;

/// Name of the instruction set that the kernel runs on this machine: "AVX2", "AVX3_ZEN4", "NEON", …
const char* reduce_target() noexcept;

/// For tests and benchmarks only: the targets this machine can run, and forcing one of them for the
/// whole process (0 = choose the best again). Not thread-safe.
std::vector<std::int64_t> reduce_targets();
std::string reduce_target_name(std::int64_t target);
void force_reduce_target(std::int64_t target) noexcept;

}  // namespace tocsin::collectors
