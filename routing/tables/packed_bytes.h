// Values as bytes, one behind the other. Whoever reads knows what was written. They are also stored
// (issue_record.h): what is written may not change without a new number there.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::routing {

/// Numbers take as many bytes as they need, seven bits in each.
class BytesOut {
 public:
  static constexpr bool kReading = false;
  explicit BytesOut(std::string& out) : out_(out) {}

  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  void text(std::string_view text) {
    number(text.size());
    out_ += text;
  }
  /// Without its size, which whoever reads knows.
  void raw(std::string_view bytes) { out_ += bytes; }

 private:
  std::string& out_;
};

/// Behind the end there are zeros and empty texts, and it is not good() any more.
class BytesIn {
 public:
  static constexpr bool kReading = true;
  explicit BytesIn(std::string_view in) : in_(in) {}

  std::uint64_t number() {
    std::uint64_t out = 0;
    for (unsigned shift = 0; shift < 64 && !in_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(in_.front());
      in_.remove_prefix(1);
      out |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return out;
    }
    fail();
    return 0;
  }
  std::string_view text() { return raw(number()); }
  std::string_view raw(std::size_t size) {
    if (size > in_.size()) fail();
    const std::string_view out = in_.substr(0, size);
    in_.remove_prefix(out.size());
    return out;
  }
  /// How many members follow, each of a byte at least.
  std::size_t count() {
    const std::size_t out = number();
    if (out <= in_.size()) return out;
    fail();
    return 0;
  }
  void fail() noexcept {
    good_ = false;
    in_ = {};
  }
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return in_.empty(); }

  /// One value inside another, to a depth that a stack carries.
  template <typename Read>
  void nested(Read&& read) {
    constexpr int kDeepest = 100;
    if (depth_ >= kDeepest) return fail();
    ++depth_;
    read();
    --depth_;
  }

 private:
  std::string_view in_;
  int depth_ = 0;
  bool good_ = true;
};

// One list of members for both ways: io is a BytesOut or a BytesIn, `value` const or not.

/// Small negative numbers take few bytes too.
inline std::uint64_t folded(std::int64_t value) noexcept {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unfolded(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

template <typename T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) void pack(BytesOut& io, T value) {
  io.number(folded(static_cast<std::int64_t>(value)));
}
template <typename T>
requires(std::is_integral_v<T> || std::is_enum_v<T>) void pack(BytesIn& io, T& value) {
  value = static_cast<T>(unfolded(io.number()));
}
inline void pack(BytesOut& io, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  io.text({reinterpret_cast<const char*>(&bits), sizeof bits});
}
inline void pack(BytesIn& io, double& value) {
  const std::string_view bits = io.text();
  if (bits.size() != sizeof value) return io.fail();
  std::memcpy(&value, bits.data(), sizeof value);
}
inline void pack(BytesOut& io, const std::string& value) { io.text(value); }
inline void pack(BytesIn& io, std::string& value) { value = io.text(); }
inline void pack(BytesOut& io, core::WallTime value) { pack(io, core::nanoseconds(value)); }
inline void pack(BytesIn& io, core::WallTime& value) {
  value = core::wall_time(unfolded(io.number()));
}

inline void pack(BytesOut& io, const core::RunUid& uid) {
  io.text({reinterpret_cast<const char*>(uid.bytes.data()), uid.bytes.size()});
}
inline void pack(BytesIn& io, core::RunUid& uid) {
  const std::string_view bytes = io.text();
  if (bytes.size() != uid.bytes.size()) return io.fail();
  std::memcpy(uid.bytes.data(), bytes.data(), bytes.size());
}

// Declared before any of them calls another one: what they hold is of core and std.
template <typename T>
void pack(BytesOut& io, const std::optional<T>& value);
template <typename T>
void pack(BytesIn& io, std::optional<T>& value);
template <typename T>
void pack(BytesOut& io, const std::vector<T>& values);
template <typename T>
void pack(BytesIn& io, std::vector<T>& values);
template <typename IO, typename A, typename B>
void pack(IO& io, std::pair<A, B>& value);
template <typename A, typename B>
void pack(BytesOut& io, const std::pair<A, B>& value);
void pack(BytesOut& io, const core::Value& value);
void pack(BytesIn& io, core::Value& value);

template <typename T>
void pack(BytesOut& io, const std::optional<T>& value) {
  io.number(value ? 1 : 0);
  if (value) pack(io, *value);
}
template <typename T>
void pack(BytesIn& io, std::optional<T>& value) {
  value.reset();
  if (io.number() != 0) pack(io, value.emplace());
}
template <typename T>
void pack(BytesOut& io, const std::vector<T>& values) {
  io.number(values.size());
  for (const T& one : values) pack(io, one);
}
template <typename T>
void pack(BytesIn& io, std::vector<T>& values) {
  values.resize(io.count());
  for (T& one : values) pack(io, one);
}
template <typename IO, typename A, typename B>
void pack(IO& io, std::pair<A, B>& value) {
  pack(io, value.first);
  pack(io, value.second);
}
template <typename A, typename B>
void pack(BytesOut& io, const std::pair<A, B>& value) {
  pack(io, value.first);
  pack(io, value.second);
}

}  // namespace tocsin::routing
