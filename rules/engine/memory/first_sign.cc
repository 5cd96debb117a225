#include "rules/engine/memory/first_sign.h"

#include "core/collections.h"
#include "rules/contract/rule.h"

namespace tocsin::rules {
namespace {

enum Stage : std::uint8_t { kInput, kForward, kLoss, kBackward, kUpdate, kComputed };

Stage stage_in_step(core::Role role) {
  using enum core::Role;
  switch (role) {
    case input:
    case label:
      return kInput;
    case activation_in:
    case activation_out:
    case output:
    case prediction:
      return kForward;
    case loss:
    case ledger:
      return kLoss;
    case gradient:
      return kBackward;
    case weight:
    case bias:
    case optimizer:
      return kUpdate;
    case other:
    case metric:
    case importance:
    case shap:
    case tree:
    case hyperparameter:
      break;
  }
  return kComputed;
}

std::optional<std::uint8_t> stage_of_collection(const std::string& name) {
  const core::Collection* known = core::find_collection(name);
  if (known == nullptr) return std::nullopt;
  return known->roles.empty() ? kComputed : stage_in_step(known->roles.front());
}

}  // namespace

std::optional<std::uint8_t> stage_of(const std::optional<core::Role>& role,
                                     const std::optional<core::TensorRef>& tensor,
                                     const Program& program) {
  if (!program.step_clock()) return std::nullopt;
  if (role) return stage_in_step(*role);
  if (tensor) return stage_of_collection(tensor->collection).value_or(kComputed);
  for (const Need& need : program.needs) {
    if (const auto stage = stage_of_collection(need.collection)) return stage;
  }
  return std::nullopt;
}

std::uint32_t position_in_stage(std::uint8_t stage, std::uint32_t slot) {
  switch (stage) {
    case kInput:
    case kForward:
    case kUpdate:
      return slot + 1;
    case kBackward:
      return kNoRoster - slot;
    default:
      return 0;  // losses of a step, and what is computed, are siblings
  }
}

void FirstSigns::add(const Beginning& beginning, const OpenKey& key) {
  entries_.emplace(beginning.onset, beginning.event_id, key);
}

void FirstSigns::remove(const Beginning& beginning, const OpenKey& key) {
  entries_.erase({beginning.onset, beginning.event_id, key});
}

std::vector<OpenKey> FirstSigns::before(const Onset& onset) const {
  std::vector<OpenKey> out;
  for (const auto& [when, id, key] : entries_) {
    if (!(when < onset) || out.size() == kMost) break;
    out.push_back(key);
  }
  return out;
}

void FirstSigns::rebuild(const std::map<OpenKey, Open>& open) {
  entries_.clear();
  for (const auto& [key, one] : open) {
    if (one.beginning.known()) add(one.beginning, key);
  }
}

}  // namespace tocsin::rules
