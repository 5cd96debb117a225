// What a run says it captures, in its start record.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/value.h"

namespace tocsin::core {

/// The effective capture plan of a producer: as it was sent, and what of it is common to all.
class CapturedPlan {
 public:
  struct Collection {
    std::string name;
    std::vector<std::string> statistics;
  };

  CapturedPlan() = default;
  /// `collections` of the plan: a list of names, or a map from name to {statistics: [..]}. What is
  /// neither counts as not said.
  CapturedPlan(Value plan);  // NOLINT(google-explicit-constructor): a plan is written as a value

  [[nodiscard]] const Value& value() const noexcept { return value_; }
  [[nodiscard]] const std::vector<Collection>& collections() const noexcept { return collections_; }
  friend bool operator==(const CapturedPlan& a, const CapturedPlan& b) {
    return a.value_ == b.value_;
  }

 private:
  Value value_;
  std::vector<Collection> collections_;
};

}  // namespace tocsin::core
