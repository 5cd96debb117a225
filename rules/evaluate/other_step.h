// A step of a worker by names that two runs share, as the key of what one run says of it to the
// other (Evaluator::publish).
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tocsin::rules {

struct OtherStep {
  /// What says that the run is over, in place of a step.
  static constexpr std::string_view kOver = "over";

  std::uint64_t worker = 0;  // hash of its name
  std::uint8_t mode = 0;
  std::int64_t step = 0;

  /// "00a1b2c3d4e5f607 1 400"
  [[nodiscard]] std::string text() const {
    char out[64];
    std::snprintf(out, sizeof out, "%016llx %u %lld", static_cast<unsigned long long>(worker),
                  unsigned{mode}, static_cast<long long>(step));
    return out;
  }
  static std::optional<OtherStep> parse(std::string_view text) {
    OtherStep out;
    unsigned mode = 0;
    const char* const end = text.data() + text.size();
    auto read = std::from_chars(text.data(), end, out.worker, 16);
    if (read.ec != std::errc{} || read.ptr == end) return std::nullopt;
    read = std::from_chars(read.ptr + 1, end, mode);
    if (read.ec != std::errc{} || read.ptr == end || mode > 3) return std::nullopt;
    read = std::from_chars(read.ptr + 1, end, out.step);
    if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
    out.mode = static_cast<std::uint8_t>(mode);
    return out;
  }
};

}  // namespace tocsin::rules
