#include "core/capture.h"

namespace tocsin::core {
namespace {

std::vector<std::string> texts_of(const Value* list) {
  std::vector<std::string> out;
  const auto* items = as<ValueList>(list);
  if (items == nullptr) return out;
  for (const Value& item : *items) {
    if (const auto* text = as<std::string>(item)) out.push_back(*text);
  }
  return out;
}

}  // namespace

CapturedPlan::CapturedPlan(Value plan) : value_(std::move(plan)) {
  const Value* collections = find(value_, "collections");
  for (std::string& name : texts_of(collections)) collections_.push_back({std::move(name), {}});
  if (const auto* bodies = as<ValueMap>(collections)) {
    for (const auto& [name, body] : *bodies) {
      Collection collection{name, texts_of(find(body, "statistics"))};
      const auto* raw = as<bool>(find(body, "raw"));
      if (raw != nullptr && *raw) collection.statistics.emplace_back("raw");
      collections_.push_back(std::move(collection));
    }
  }
}

}  // namespace tocsin::core
