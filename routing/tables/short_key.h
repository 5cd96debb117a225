// The key of a state, which the state, the agenda and what was told hold a copy of each.
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace tocsin::routing {

class ShortKey;
template <typename T>
concept TextBeside = !std::same_as<T, ShortKey> && std::convertible_to<const T&, std::string_view>;

/// A text in 32 bytes: up to 31 lie in it, as keys of issues and groups do. Only a longer one takes
/// memory of its own, which a std::string does from 16 on.
class ShortKey {
 public:
  ShortKey() noexcept = default;
  // Implicit on purpose: either is written where the other would be.
  // NOLINTNEXTLINE(google-explicit-constructor)
  ShortKey(std::string_view text) {
    char* const to = room_for(text.size());
    if (!text.empty()) std::memcpy(to, text.data(), text.size());
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  ShortKey(const std::string& text) : ShortKey(std::string_view(text)) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  ShortKey(const char* text) : ShortKey(std::string_view(text)) {}
  ShortKey(const ShortKey& other) : ShortKey(std::string_view(other)) {}
  ShortKey(ShortKey&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  ShortKey& operator=(ShortKey other) noexcept {
    bytes_.swap(other.bytes_);
    return *this;
  }
  ~ShortKey() {
    if (is_long()) delete[] far().text;
  }

  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::string_view() const noexcept {
    if (!is_long()) return {bytes_.data(), static_cast<std::size_t>(bytes_.back())};
    const Far at = far();
    return {at.text, at.size};
  }
  [[nodiscard]] std::string text() const { return std::string(std::string_view(*this)); }
  [[nodiscard]] bool empty() const noexcept { return bytes_.back() == 0; }

  friend bool operator==(const ShortKey& a, const ShortKey& b) noexcept {
    return std::string_view(a) == std::string_view(b);
  }
  template <TextBeside T>
  friend bool operator==(const ShortKey& a, const T& b) noexcept {
    return std::string_view(a) == std::string_view(b);
  }
  friend std::strong_ordering operator<=>(const ShortKey& a, const ShortKey& b) noexcept {
    return std::string_view(a) <=> std::string_view(b);
  }
  template <TextBeside T>
  friend std::strong_ordering operator<=>(const ShortKey& a, const T& b) noexcept {
    return std::string_view(a) <=> std::string_view(b);
  }

 private:
  static constexpr char kLong = 127;
  static constexpr std::size_t kMost = 31;
  struct Far {
    char* text;
    std::size_t size;
  };

  [[nodiscard]] bool is_long() const noexcept { return bytes_.back() == kLong; }
  [[nodiscard]] Far far() const noexcept {
    Far out{};
    std::memcpy(&out, bytes_.data(), sizeof out);
    return out;
  }
  char* room_for(std::size_t size) {
    if (size <= kMost) {
      bytes_.back() = static_cast<char>(size);
      return bytes_.data();
    }
    const Far at{new char[size], size};
    std::memcpy(bytes_.data(), &at, sizeof at);
    bytes_.back() = kLong;
    return at.text;
  }

  std::array<char, kMost + 1> bytes_{};  // the text, or a Far; the last one: its size, or kLong
};

/// For maps that are asked with any text. Not noexcept: then the library's tables keep each hash, and
/// neither a search past other keys nor a table that grows makes it anew.
struct KeyHash {
  using is_transparent = void;
  // NOLINTNEXTLINE(bugprone-exception-escape)
  std::size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
};

}  // namespace tocsin::routing
