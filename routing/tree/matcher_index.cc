#include "routing/tree/matcher_index.h"

#include <algorithm>
#include <map>

namespace tocsin::routing {
namespace {

/// A missing label compares as the empty text: `a=""` holds where there is no label to look up.
bool names_a_value(const Matchers::Term& term) {
  return term.op == MatchOperator::equal && !term.value.empty();
}

}  // namespace

MatcherIndex::MatcherIndex(std::vector<Matchers> sets) : sets_(std::move(sets)) {
  std::map<core::Labels::Entry, std::size_t> shared;  // by how many sets
  for (const Matchers& set : sets_) {
    for (const Matchers::Term& term : set.terms()) {
      if (names_a_value(term)) ++shared[{term.name, term.value}];
    }
  }
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const Matchers::Term* rarest = nullptr;
    for (const Matchers::Term& term : sets_[i].terms()) {
      if (!names_a_value(term)) continue;
      const auto count = [&](const Matchers::Term& one) { return shared[{one.name, one.value}]; };
      if (rarest == nullptr || count(term) < count(*rarest)) rarest = &term;
    }
    if (rarest == nullptr) {
      rest_.push_back(i);
    } else {
      by_value_[{rarest->name, rarest->value}].push_back(i);
    }
  }
}

void MatcherIndex::match(const core::Labels& labels, std::vector<std::size_t>& out) const {
  out.clear();
  const auto try_all = [&](const std::vector<std::size_t>& candidates) {
    for (const std::size_t i : candidates) {
      if (sets_[i].matches(labels)) out.push_back(i);
    }
  };
  if (!by_value_.empty()) {
    for (const auto& entry : labels.entries()) {
      const auto found = by_value_.find(entry);
      if (found != by_value_.end()) try_all(found->second);
    }
  }
  try_all(rest_);
  std::sort(out.begin(), out.end());
}

}  // namespace tocsin::routing
