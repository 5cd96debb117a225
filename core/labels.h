// Labels of an issue, and what they identify (docs/routing.md).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin::core {

/// Name → value, ascending byte order of names, no empty value (an empty value is an absent label).
class Labels {
 public:
  using Entry = std::pair<std::string, std::string>;

  Labels() = default;
  Labels(std::initializer_list<Entry> entries);

  /// Sets, replaces, or (empty value) removes.
  void set(std::string_view name, std::string_view value);
  /// Empty when the label is absent.
  [[nodiscard]] const std::string& get(std::string_view name) const noexcept;
  [[nodiscard]] bool has(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
  [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
  friend auto operator<=>(const Labels&, const Labels&) = default;

 private:
  std::vector<Entry> entries_;
};

/// 64-bit FNV-1a over `name 0xFF value 0xFF`, 16 hex digits; what Prometheus tools compute.
std::string fingerprint(const Labels& labels);
/// First 16 bytes of SHA-256 over the same bytes without `severity`, base32: key of durable state.
std::string issue_key(const Labels& labels);

}  // namespace tocsin::core
