#include <algorithm>

#include "rules/declared/head.h"
#include "rules/declared/histogram.h"
#include "rules/declared/marks.h"
#include "rules/declared/memory.h"
#include "rules/declared/running.h"

namespace tocsin::rules::declared {
namespace {

// Whether nothing but the latest steps is asked of a point: all windows of steps but those that are judged
// at ends of pieces, and where something is measured in seconds.
bool marks_suffice(const Formula& formula) {
  if (formula.stepless || !formula.window.size.steps || formula.window.hop) return false;
  return formula.window.size.amount <= kMostPoints &&
         std::none_of(formula.aggregates.begin(), formula.aggregates.end(),
                      [](const Aggregate& one) { return one.kind == Kind::rate; });
}

}  // namespace

void lay_out(Formula& formula) {
  const bool sliding = formula.slides();
  for (std::size_t s = 0; s < formula.sources.size(); ++s) {
    Source& source = formula.sources[s];
    const bool rings = sliding && std::any_of(formula.aggregates.begin(), formula.aggregates.end(),
                                              [&](const Aggregate& one) {
                                                return one.source == s && ringed(one.kind);
                                              });
    if (rings) {
      const std::int64_t span =
          formula.window.size.steps
              ? std::min<std::int64_t>(formula.window.size.amount, kMostPoints)
              : kMostPoints;
      const std::int64_t hop = formula.window.hop ? 1 : 0;  // the point that shows the end
      source.capacity = static_cast<std::uint32_t>(span * (formula.doubled ? 2 : 1) + hop);
      source.inverse = UINT64_MAX / source.capacity + 1;
    }
    std::uint32_t next = kHeadWords;
    if (rings && marks_suffice(formula)) {
      source.marks = next = kMarkedWords;
      next += Marks::words(source.capacity);
    } else if (rings) {
      source.steps = next;
      next += source.capacity;
      source.times = next;
      next += source.capacity;
    }
    for (std::size_t a = 0; a < source.arguments.size(); ++a) {
      const bool used =
          rings && std::any_of(formula.aggregates.begin(), formula.aggregates.end(),
                               [&](const Aggregate& one) {
                                 return one.source == s && one.argument == a && ringed(one.kind);
                               });
      if (!used) continue;
      source.arguments[a].ring = next;
      next += source.capacity;
    }
    for (Aggregate& one : formula.aggregates) {
      if (one.source != s) continue;
      if (one.kind == Kind::prev) {
        one.words = static_cast<std::uint32_t>(one.number) + 1;
      } else if (one.kind == Kind::newest) {
        one.words = 1;
      } else if (!sliding) {
        // The value of the piece before, then what is running.
        one.words = 1 + (one.kind == Kind::quantile ? Histogram::kWords : Running::kWords);
      }
      one.offset = next;
      next += one.words;
    }
    source.words = next;
  }
}

}  // namespace tocsin::rules::declared
