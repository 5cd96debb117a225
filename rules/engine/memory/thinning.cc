#include "rules/engine/memory/thinning.h"

#include <algorithm>

#include "rules/contract/rule.h"
#include "rules/contract/sentence.h"

namespace tocsin::rules {

void note_thinning(Job& job, const core::Lifecycle& applied) {
  if (!applied.version.starts_with("governor/")) return;
  const auto* factors = core::as<core::ValueMap>(applied.left_out);
  if (factors == nullptr) return;
  for (const auto& [collection, value] : *factors) {
    const auto* factor = core::as<std::int64_t>(value);
    if (factor == nullptr || *factor < 2) continue;
    std::int64_t& most = job.thinned[collection];  // of any worker, at any time
    most = std::max(most, *factor);
  }
}

std::string thinned_words(const Job& job, const Program& program) {
  std::string names;
  std::int64_t most = 0;
  for (const Need& need : program.needs) {
    const auto at = job.thinned.find(need.collection);
    if (at == job.thinned.end()) continue;
    names += (names.empty() ? "" : ", ") + need.collection;
    most = std::max(most, at->second);
  }
  if (names.empty()) return {};
  return sentence(
      "to keep its overhead limit, the hook captured {} at 1 of {} of its steps. Raise "
      "capture.overhead, or capture less",
      names, most);
}

}  // namespace tocsin::rules
