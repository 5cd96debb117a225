// Numbers of 8 bytes one behind the other: what a fold keeps of something that it has begun.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace tocsin::insights {

class OpenBytes {
 public:
  void put(std::uint64_t word) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof word);
    std::memcpy(bytes_.data() + at, &word, sizeof word);
  }
  void put(double number) {
    std::uint64_t word = 0;
    std::memcpy(&word, &number, sizeof word);
    put(word);
  }
  [[nodiscard]] const std::string& text() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Reads them back; what is not there is 0, and `short_of` says so.
class OpenReading {
 public:
  explicit OpenReading(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t word() {
    std::uint64_t out = 0;
    if (bytes_.size() < sizeof out) {
      short_ = true;
      return 0;
    }
    std::memcpy(&out, bytes_.data(), sizeof out);
    bytes_.remove_prefix(sizeof out);
    return out;
  }
  double number() {
    const std::uint64_t bits = word();
    double out = 0;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  [[nodiscard]] bool short_of() const { return short_; }

 private:
  std::string_view bytes_;
  bool short_ = false;
};

}  // namespace tocsin::insights
