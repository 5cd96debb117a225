// The evaluators of one run: made when the first input comes, kept by the number of their rule.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rules/engine/memory/part_mark.h"
#include "rules/evaluate/evaluator.h"

namespace tocsin::rules {

/// One rule's evaluator, and where it stands among the snapshots.
struct EvaluatorPart {
  std::unique_ptr<Evaluator> evaluator;  // null: no input has come
  /// Of rule name, type, version and parameters: what finds its state again, whatever else has
  /// changed among the rules.
  std::uint64_t identity = 0;
  PartMark mark;
};

using EvaluatorParts = std::vector<EvaluatorPart>;

inline bool has_evaluator(const EvaluatorParts& parts, std::uint32_t number) {
  return number < parts.size() && parts[number].evaluator != nullptr;
}

/// Of those that are there.
inline std::vector<std::uint64_t> identities_of(const EvaluatorParts& parts) {
  std::vector<std::uint64_t> out;
  for (const EvaluatorPart& part : parts) {
    if (part.evaluator) out.push_back(part.identity);
  }
  return out;
}

}  // namespace tocsin::rules
