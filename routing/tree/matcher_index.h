// Which of several sets of matchers hold for given labels, without trying them all.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/labels.h"
#include "routing/tree/matchers.h"

namespace tocsin::routing {

/// A set that names a value (`rule="nan"`) is tried only where the labels have it; the rest (regular
/// expressions and negations alone) are tried each time. A question costs O(labels + sets tried), and
/// nothing is allocated for it.
class MatcherIndex {
 public:
  MatcherIndex() = default;
  explicit MatcherIndex(std::vector<Matchers> sets);

  /// Indices of the sets that match, ascending; `out` is cleared.
  void match(const core::Labels& labels, std::vector<std::size_t>& out) const;

 private:
  using View = std::pair<std::string_view, std::string_view>;  // name, value
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const View& key) const noexcept {
      const std::hash<std::string_view> hash;
      return hash(key.first) * 31 + hash(key.second);
    }
    std::size_t operator()(const core::Labels::Entry& key) const noexcept {
      return (*this)(View(key.first, key.second));
    }
  };

  std::vector<Matchers> sets_;
  std::unordered_map<core::Labels::Entry, std::vector<std::size_t>, Hash, std::equal_to<>>
      by_value_;
  std::vector<std::size_t> rest_;  // sets that name no value
};

}  // namespace tocsin::routing
