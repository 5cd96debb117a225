// The small enumerations of the wire (docs/wire.md, docs/events.md) and their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tocsin::core {

enum class Mode : std::uint8_t { global = 0, train = 1, eval = 2, predict = 3 };

enum class Dtype : std::uint8_t {
  unknown = 0,
  f32 = 1,
  f64 = 2,
  f16 = 3,
  bf16 = 4,
  f8_e4m3 = 5,
  f8_e5m2 = 6,
  i8 = 10,
  i16 = 11,
  i32 = 12,
  i64 = 13,
  u8 = 20,
  u16 = 21,
  u32 = 22,
  u64 = 23,
  boolean = 30,
  c64 = 31,
  c128 = 32,
  text = 40,
};

enum class Role : std::uint8_t {
  other = 0,
  weight = 1,
  bias = 2,
  gradient = 3,
  loss = 4,
  metric = 5,
  input = 6,
  output = 7,
  activation_in = 8,
  activation_out = 9,
  optimizer = 10,
  label = 11,
  prediction = 12,
  importance = 13,
  shap = 14,
  tree = 15,
  hyperparameter = 16,
  ledger = 17,  // what a loss call says of its task (docs/ledger.md)
};

/// Ordered: info < warning < error < critical. No built-in rule starts above error.
enum class Severity : std::uint8_t { info = 0, warning = 1, error = 2, critical = 3 };

std::string_view to_string(Mode mode) noexcept;
std::string_view to_string(Dtype dtype) noexcept;
std::string_view to_string(Role role) noexcept;
std::string_view to_string(Severity severity) noexcept;
std::optional<Mode> mode_from(std::string_view name) noexcept;
std::optional<Dtype> dtype_from(std::string_view name) noexcept;
std::optional<Role> role_from(std::string_view name) noexcept;
std::optional<Severity> severity_from(std::string_view name) noexcept;

/// Role of a logged scalar whose caller names none: loss when the name is `loss` or ends in it
/// after
/// `_`, `/` or `.`, metric else (docs/wire.md).
Role scalar_role(std::string_view name) noexcept;

/// Bytes of one element; 0 for unknown and text.
std::size_t size_of(Dtype dtype) noexcept;
/// f32, f64, f16, bf16, f8: types that can hold NaN or Inf.
bool is_floating(Dtype dtype) noexcept;

/// Row flags in a row's `meta` column (bits 16…22); bits 0–7 dtype, 8–15 role.
namespace meta {
inline constexpr std::uint64_t kApproximate = 1ULL << 16;
inline constexpr std::uint64_t kSparse = 1ULL << 17;
inline constexpr std::uint64_t kUnscaled = 1ULL << 18;  // already divided by the loss scale
inline constexpr std::uint64_t kPartial = 1ULL << 19;   // additive partial of a shard
inline constexpr std::uint64_t kOptimizerSkipped = 1ULL << 20;
inline constexpr std::uint64_t kNotTrainable = 1ULL << 21;
inline constexpr std::uint64_t kEmptyHere = 1ULL << 22;

constexpr std::uint64_t make(Dtype dtype, Role role, std::uint64_t flags = 0) noexcept {
  return static_cast<std::uint64_t>(dtype) | (static_cast<std::uint64_t>(role) << 8) | flags;
}
constexpr Dtype dtype(std::uint64_t value) noexcept { return static_cast<Dtype>(value & 0xff); }
constexpr Role role(std::uint64_t value) noexcept { return static_cast<Role>((value >> 8) & 0xff); }
}  // namespace meta

}  // namespace tocsin::core
