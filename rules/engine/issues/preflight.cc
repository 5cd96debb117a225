#include "rules/engine/issues/preflight.h"

#include "rules/engine/issues/protocol_words.h"

namespace tocsin::rules {
namespace {

using core::Value;
using core::ValueList;

std::string parameters(std::int64_t count, std::string_view what) {
  return std::to_string(count) + std::string(what) + (count == 1 ? " parameter" : " parameters");
}

// ": a, b and 3 more"; nothing without names.
std::string listed(const Value& finding, std::int64_t count) {
  constexpr std::int64_t kShown = 5;
  std::string out;
  std::int64_t shown = 0;
  const auto* names = core::as<ValueList>(core::find(finding, "names"));
  for (const Value& name : names == nullptr ? ValueList() : *names) {
    const auto* text = core::as<std::string>(name);
    if (text == nullptr || shown == kShown) break;
    out += (shown++ == 0 ? ": " : ", ") + *text;
  }
  if (shown > 0 && count > shown) out += " and " + std::to_string(count - shown) + " more";
  return out;
}

constexpr std::int64_t kMostNames = 20;  // that a hook sends of one finding

std::int64_t names_in(const Value& finding) {
  const auto* names = core::as<ValueList>(core::find(finding, "names"));
  return names == nullptr ? 0 : static_cast<std::int64_t>(names->size());
}

std::string with(std::string text, std::string_view place, const std::string& value) {
  if (const auto at = text.find(place); at != std::string::npos) {
    text.replace(at, place.size(), value);
  }
  return text;
}

// Of a kind whose sentence stands in the table; empty for one that this version does not know.
std::string protocol_sentence(const Value& finding, const std::string& kind,
                              const std::string& model, std::int64_t count) {
  const ProtocolWords* const words = protocol_words(kind);
  if (words == nullptr) return {};
  std::string out =
      with(with(std::string(words->text), "{model}", model), "{count}", std::to_string(count));
  if (words->listed)
    out += listed(finding, names_in(finding) < kMostNames ? names_in(finding) : count);
  return out + ".";
}

// Of parameters and layers that are counted; empty for any other kind.
std::string parameters_sentence(const Value& finding, const std::string& kind,
                                const std::string& model, std::int64_t count) {
  const std::string are = count == 1 ? " is" : " are";
  if (kind == "no_optimizer") {
    return parameters(count, " trainable") + " of " + model + are + " in no watched optimizer" +
           listed(finding, count) + ".";
  }
  if (kind == "no_gradient") {
    return parameters(count, "") + " of " + model + " got no gradient" + listed(finding, count) +
           ".";
  }
  if (kind == "foreign_parameters") {
    return "The optimizer of " + model + " holds " + parameters(count, "") +
           " that the model does not have" + listed(finding, count) + ".";
  }
  if (kind == "frozen_fresh") {
    return parameters(count, " frozen") + " of " + model + (count == 1 ? " has" : " have") +
           " freshly initialised values (were pretrained weights not loaded?)" +
           listed(finding, count) + ".";
  }
  if (kind == "dropout_high") {
    return std::to_string(count) + " of the dropouts of " + model +
           " drop nine tenths or more of their input (is it the share to keep?)" +
           listed(finding, count) + ".";
  }
  if (kind == "parts_in_eval") {
    return std::to_string(count) + " of the dropouts of " + model + are +
           " in evaluation mode during training (call train() after from_pretrained())" +
           listed(finding, count) + ".";
  }
  return {};
}

// One sentence; empty for a kind that this version does not know.
std::string sentence_of(const Value& finding) {
  const std::string kind = core::text_at(finding, "kind");
  std::string model = core::text_at(finding, "model");
  if (model.empty()) model = "the model";
  const auto* number = core::as<std::int64_t>(core::find(finding, "count"));
  const std::int64_t count = number == nullptr ? 0 : *number;
  if (const std::string words = parameters_sentence(finding, kind, model, count); !words.empty()) {
    return words;
  }
  if (kind == "gradients_kept") {
    return "Gradients of " + model +
           " are never cleared, so each update sums all gradients since the first: call "
           "optimizer.zero_grad().";
  }
  if (kind == "betas_swapped") {
    return "The optimizer of " + model +
           " cannot converge: its first beta must be below the square root of the second (are they "
           "in the wrong order?)" +
           listed(finding, count) + ".";
  }
  if (kind == "decay_negative") {
    return "The optimizer of " + model +
           " pushes weights away from zero: its weight decay is negative" + listed(finding, count) +
           ".";
  }
  if (kind == "eval_mode") return model + " is trained in evaluation mode.";
  if (kind == "no_step_end") {
    return std::to_string(count) +
           " values were logged in one step that never ends: call hook.step() once per update, or "
           "give watch() the optimizer. If watch() has it, the optimizer makes no updates.";
  }
  if (kind == "updates_left_out") {
    return "The optimizer of " + model + " has made no update while " + std::to_string(count) +
           " values were logged: gradients are not finite, and a gradient scaler skips each such "
           "update" +
           listed(finding, names_in(finding)) + ".";
  }
  if (kind == "monitors_training") {
    return "The best state of " + model +
           " is chosen, or training is stopped, by a metric of the training set" +
           listed(finding, count) + ".";
  }
  if (kind == "clipped_scaled") {
    return "Gradients of " + model +
           " are clipped while they are still multiplied by the loss scale: call "
           "scaler.unscale_(optimizer) before.";
  }
  if (kind == "clipped_late") {
    return "Gradients of " + model +
           " are clipped after the update that used them: clip between backward() and "
           "optimizer.step().";
  }
  if (kind == "targets_broadcast") {
    const std::string shapes = listed(finding, count);
    return model + " compares every output with every target, because their shapes differ" +
           shapes +
           ". Its best output is one constant. Give both the same shape, as with "
           "output.squeeze(-1).";
  }
  if (kind == "empty_steps") {
    return std::to_string(count) +
           " steps end per second with almost no values: call hook.step() once per update.";
  }
  return protocol_sentence(finding, kind, model, count);
}

}  // namespace

std::optional<Finding> preflight_finding(const core::Lifecycle& body) {
  const auto* findings = core::as<ValueList>(body.findings);
  if (findings == nullptr) return std::nullopt;
  Finding finding;
  std::size_t known = 0;
  for (const Value& one : *findings) {
    const std::string sentence = sentence_of(one);
    if (sentence.empty()) continue;
    finding.summary += (known++ == 0 ? "" : " ") + sentence;
  }
  if (known == 0) return std::nullopt;
  finding.observed = {"findings", static_cast<double>(known)};
  return finding;
}

core::ValueMap protocol_kept(const core::Lifecycle& body) {
  core::ValueMap kept;
  const auto* findings = core::as<ValueList>(body.findings);
  for (const Value& one : findings == nullptr ? ValueList() : *findings) {
    if (core::text_at(one, "kind") != "kept") continue;
    const auto* checks = core::as<std::int64_t>(core::find(one, "count"));
    const std::string model = core::text_at(one, "model");
    kept.emplace_back(model.empty() ? "the model" : model,
                      core::ValueMap{{"checks", checks == nullptr ? 0 : *checks}});
  }
  return kept.empty() ? core::ValueMap() : core::ValueMap{{"ok", std::move(kept)}};
}

}  // namespace tocsin::rules
