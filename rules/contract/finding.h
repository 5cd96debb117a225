// Why a rule fired: its part of an issue. The engine adds who, where and when.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "core/value.h"

namespace tocsin::rules {

/// Built in one expression:
///   return Finding::that("zero_percent", share).is(">=", "threshold", cfg.threshold)
///       .titled(subject.name, Verb::is, "zero")
///       .says(sentence("{} is zero at {}.", subject.name, subject.place()))
///       .advises("Check its input.")
///       .with("count", row->count());
/// What a title is made with: messages put it into the past when the issue is over.
enum class Verb : std::uint8_t { is, are, has, have, does_not, do_not };

struct Finding {
  core::NamedNumber observed;
  std::string op;
  std::optional<core::NamedNumber> threshold;
  std::string summary;     // one plain sentence with its numbers
  std::string title = {};  // a few words for the subject of a message: titled()
  std::string description = {};
  std::string recommendation = {};
  core::ValueMap values = {};
  std::optional<core::Severity> severity = {};  // of this kind; else the rule's
  std::optional<std::int64_t> first_step = {};  // window, when longer than the step itself
  std::uint64_t points = 1;
  std::vector<std::pair<std::string, double>> worst = {};
  std::optional<core::TensorRef> tensor = {};  // where the rule knows it better than the engine

  static Finding that(std::string name, double value) {
    Finding out;
    out.observed = {std::move(name), value};
    return out;
  }
  Finding& is(std::string_view how, std::string name, double limit) {
    op = how;
    threshold = core::NamedNumber{std::move(name), limit};
    return *this;
  }
  Finding& says(std::string text) {
    summary = std::move(text);
    return *this;
  }
  /// The finding in a few words, without step, limit and full stop: ("loss", Verb::is, "NaN").
  /// `what` may be a name of the user's: it is shown as core::visible_words().
  Finding& titled(std::string_view what, Verb verb, std::string_view rest);
  /// One more sentence of the description.
  Finding& adds(std::string_view text) {
    if (!description.empty()) description += ' ';
    description += text;
    return *this;
  }
  Finding& advises(std::string text) {
    recommendation = std::move(text);
    return *this;
  }
  Finding& with(std::string name, core::Value value) {
    values.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  /// The window: from `step` on, so many points of it.
  Finding& since(std::int64_t step, std::uint64_t number) {
    first_step = step;
    points = number;
    return *this;
  }
};

}  // namespace tocsin::rules
