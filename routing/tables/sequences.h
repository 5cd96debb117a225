// The highest number that each source of an issue's reports has given. Nearly always there is one
// source, so they lie in a list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "routing/tables/shared_text.h"

namespace tocsin::routing {

/// Ascending by source; named as a map of them would be.
class Sequences {
 public:
  using Entry = std::pair<SharedText, std::uint64_t>;
  using const_iterator = std::vector<Entry>::const_iterator;

  Sequences() = default;
  Sequences(std::initializer_list<Entry> entries) {
    for (const Entry& one : entries) (*this)[one.first] = one.second;
  }

  std::uint64_t& operator[](std::string_view source) { return of(source); }
  /// The same; a new one shares the text.
  std::uint64_t& of_shared(const SharedText& source) { return of(source); }
  [[nodiscard]] const_iterator find(std::string_view source) const {
    const auto at = std::lower_bound(all_.begin(), all_.end(), source, before);
    return at != all_.end() && at->first == source ? at : all_.end();
  }
  void erase(std::string_view source) {
    if (const auto at = find(source); at != end()) erase(at);
  }
  void erase(const_iterator at) { all_.erase(at); }
  void share_with(SharedTexts& texts) {
    for (Entry& one : all_) texts.share(one.first);
  }
  [[nodiscard]] const_iterator begin() const { return all_.begin(); }
  [[nodiscard]] const_iterator end() const { return all_.end(); }
  [[nodiscard]] std::size_t size() const { return all_.size(); }
  friend bool operator==(const Sequences&, const Sequences&) = default;

 private:
  template <typename Source>
  std::uint64_t& of(const Source& source) {
    const std::string_view name = source;
    const auto at = std::lower_bound(all_.begin(), all_.end(), name, before);
    if (at != all_.end() && at->first == name) return at->second;
    return all_.emplace(at, SharedText(source), 0)->second;
  }
  static bool before(const Entry& one, std::string_view source) {
    return std::string_view(one.first) < source;
  }

  std::vector<Entry> all_;
};

}  // namespace tocsin::routing
