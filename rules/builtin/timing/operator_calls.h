// Calls of operators on one track, and what each took without those that it made.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "core/time.h"
#include "rules/contract/selection.h"

namespace tocsin::rules {

/// One call of an operator.
struct OperatorCall {
  std::uint64_t track = 0;
  std::uint64_t name = 0;
  std::int64_t start = 0;     // UTC ns
  std::int64_t duration = 0;  // ns

  [[nodiscard]] std::int64_t end() const noexcept { return add(start, core::Duration(duration)); }
};

/// What each of these calls of one thread of execution took by itself, ns, in their order: a call
/// that begins after another one and ends within it was made by it. Of calls that only overlap
/// nobody can say so, nor of those that begin together.
inline std::vector<std::int64_t> own_times(std::span<const OperatorCall> calls) {
  std::vector<std::size_t> order(calls.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (calls[a].start != calls[b].start) return calls[a].start < calls[b].start;
    return calls[a].duration > calls[b].duration;
  });
  std::vector<std::int64_t> out;
  out.reserve(calls.size());
  for (const OperatorCall& call : calls) out.push_back(call.duration);
  std::vector<std::size_t> open;  // those that may hold the next one, the innermost last
  for (const std::size_t i : order) {
    const OperatorCall& call = calls[i];
    while (!open.empty() && calls[open.back()].end() <= call.start) open.pop_back();
    const auto holder = std::find_if(open.rbegin(), open.rend(), [&](std::size_t other) {
      return calls[other].start < call.start && calls[other].end() >= call.end();
    });
    // What runs beside each other within a call can take longer than it.
    if (holder != open.rend())
      out[*holder] = std::max<std::int64_t>(out[*holder] - call.duration, 0);
    open.push_back(i);
  }
  return out;
}

}  // namespace tocsin::rules
