#include "core/first_signs.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace tocsin::core {
namespace {

constexpr std::int64_t kNotOver = std::numeric_limits<std::int64_t>::max();

// The two that were open longest, of two keys: one of them is not the issue that asks.
struct LongestOpen {
  std::string_view key, other_key;
  std::int64_t until = std::numeric_limits<std::int64_t>::min();
  std::int64_t other_until = std::numeric_limits<std::int64_t>::min();

  void add(const IssueSpan& one) {
    const std::int64_t end = one.closed.value_or(kNotOver);
    if (one.key == key) {
      until = std::max(until, end);
    } else if (end > until) {
      other_key = std::exchange(key, one.key);
      other_until = std::exchange(until, end);
    } else if (one.key == other_key || end > other_until) {
      other_until = std::max(other_until, end);
      other_key = one.key;
    }
  }
  [[nodiscard]] bool any_before(const IssueSpan& one) const {
    return (one.key == key ? other_until : until) >= one.opened;
  }
};

}  // namespace

bool began_before(const IssueSpan& other, const IssueSpan& one) {
  return other.key != one.key && other.attempt == one.attempt && other.mode == one.mode &&
         other.step && one.step && *other.step < *one.step &&
         (!other.closed || *other.closed >= one.opened);
}

std::vector<bool> preceded(const std::vector<IssueSpan>& issues) {
  std::vector<std::size_t> order(issues.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t at) { return !issues[at].step; });
  const auto course = [&](std::size_t at) {
    return std::tuple(issues[at].attempt, issues[at].mode);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tuple_cat(course(a), std::tuple(*issues[a].step)) <
           std::tuple_cat(course(b), std::tuple(*issues[b].step));
  });
  std::vector<bool> out(issues.size());
  LongestOpen before;
  std::size_t told = 0;  // of those in `order`, that `before` knows
  for (std::size_t at = 0; at < order.size(); ++at) {
    const IssueSpan& one = issues[order[at]];
    if (at > 0 && course(order[at - 1]) != course(order[at])) {
      before = {};
      told = at;
    }
    for (; *issues[order[told]].step < *one.step; ++told) before.add(issues[order[told]]);
    out[order[at]] = before.any_before(one);
  }
  return out;
}

}  // namespace tocsin::core
