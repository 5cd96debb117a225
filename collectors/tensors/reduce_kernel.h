// The vector kernels behind reduce() and delta(), chosen for this CPU at run time. Pointers must be
// aligned for their element; the caller has set the default floating-point environment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/tensors/moments.h"
#include "collectors/tensors/reduce.h"

namespace tocsin::collectors::kernel {

// Each merges the statistics of `count` elements into `out`.
void reduce_f32(const float* data, std::size_t count, Moments& out) noexcept;
void reduce_f64(const double* data, std::size_t count, Moments& out) noexcept;
void reduce_f16(const std::uint16_t* data, std::size_t count, Moments& out) noexcept;
void reduce_bf16(const std::uint16_t* data, std::size_t count, Moments& out) noexcept;
void reduce_i16(const std::int16_t* data, std::size_t count, Moments& out) noexcept;
void reduce_u16(const std::uint16_t* data, std::size_t count, Moments& out) noexcept;
void reduce_i8(const std::int8_t* data, std::size_t count, Moments& out) noexcept;
void reduce_u8(const std::uint8_t* data, std::size_t count, Moments& out) noexcept;
/// How many of these bytes are not 0.
std::size_t count_nonzero(const std::uint8_t* data, std::size_t count) noexcept;

/// Σ (now − prev)², Σ prev² and max |now − prev|: each call adds to what is there.
struct DeltaSums {
  double delta_sq = 0;
  double prev_sq = 0;
  double delta_max = 0;
};
void delta_f32(const float* now, const float* prev, std::size_t count, DeltaSums& out) noexcept;
void delta_f64(const double* now, const double* prev, std::size_t count, DeltaSums& out) noexcept;
void delta_f16(const std::uint16_t* now, const std::uint16_t* prev, std::size_t count,
               DeltaSums& out) noexcept;
void delta_bf16(const std::uint16_t* now, const std::uint16_t* prev, std::size_t count,
                DeltaSums& out) noexcept;

}  // namespace tocsin::collectors::kernel
