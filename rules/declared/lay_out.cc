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

bool has_ringed(const Formula& formula, std::size_t source) {
  return std::any_of(
      formula.aggregates.begin(), formula.aggregates.end(),
      [&](const Aggregate& one) { return one.source == source && ringed(one.kind); });
}

bool has_ringed_of(const Formula& formula, std::size_t source, std::size_t argument) {
  return std::any_of(formula.aggregates.begin(), formula.aggregates.end(),
                     [&](const Aggregate& one) {
                       return one.source == source && one.argument == argument && ringed(one.kind);
                     });
}

// How many points the rings of a source hold.
std::uint32_t ring_capacity(const Formula& formula) {
  const std::int64_t span = formula.window.size.steps
                                ? std::min<std::int64_t>(formula.window.size.amount, kMostPoints)
                                : kMostPoints;
  const std::int64_t hop = formula.window.hop ? 1 : 0;  // the point that shows the end
  return static_cast<std::uint32_t>(span * (formula.doubled ? 2 : 1) + hop);
}

// Places marks, or steps and times, then the rings of arguments. Returns where the next words stand.
std::uint32_t place_rings(const Formula& formula, std::size_t s, Source& source) {
  source.capacity = ring_capacity(formula);
  source.inverse = UINT64_MAX / source.capacity + 1;
  std::uint32_t next = kHeadWords;
  if (marks_suffice(formula)) {
    source.marks = next = kMarkedWords;
    next += Marks::words(source.capacity);
  } else {
    source.steps = next;
    next += source.capacity;
    source.times = next;
    next += source.capacity;
  }
  for (std::size_t a = 0; a < source.arguments.size(); ++a) {
    if (!has_ringed_of(formula, s, a)) continue;
    source.arguments[a].ring = next;
    next += source.capacity;
  }
  return next;
}

void set_words(const Formula& formula, Aggregate& one) {
  if (one.kind == Kind::prev) {
    one.words = static_cast<std::uint32_t>(one.number) + 1;
  } else if (one.kind == Kind::newest) {
    one.words = 1;
  } else if (!formula.slides()) {
    // The value of the piece before, then what is running.
    one.words = 1 + (one.kind == Kind::quantile ? Histogram::kWords : Running::kWords);
  }
}

}  // namespace

void lay_out(Formula& formula) {
  for (std::size_t s = 0; s < formula.sources.size(); ++s) {
    Source& source = formula.sources[s];
    const bool rings = formula.slides() && has_ringed(formula, s);
    std::uint32_t next = rings ? place_rings(formula, s, source) : kHeadWords;
    for (Aggregate& one : formula.aggregates) {
      if (one.source != s) continue;
      set_words(formula, one);
      one.offset = next;
      next += one.words;
    }
    source.words = next;
  }
}

}  // namespace tocsin::rules::declared
