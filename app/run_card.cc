#include "app/run_card.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <utility>

#include "app/printable.h"
#include "app/summary_text.h"

namespace tocsin::app {
namespace {

constexpr std::array<std::string_view, 3> kAnswers{"hit", "undecided", "ok"};
constexpr std::string_view kLow = "_low";
constexpr std::string_view kHigh = "_high";
constexpr std::size_t kMostOfANumber = 200;  // bytes of one that is a text

std::string words(std::string_view name) {
  std::string out = printable(name);
  std::replace(out.begin(), out.end(), '_', ' ');
  return out;
}

// "0.7121", "1400", "nothing".
std::string shown(const core::Value& value) {
  if (const auto* real = core::as<double>(value); real != nullptr && std::isfinite(*real)) {
    const bool whole = *real == std::trunc(*real) && std::fabs(*real) < 1e15;
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.4g", *real);
    return text.data();
  }
  return summary_line({{"", value}}, kMostOfANumber).substr(1);
}

bool is_bound(const core::ValueMap& numbers, std::string_view name) {
  for (const std::string_view end : {kLow, kHigh}) {
    if (!name.ends_with(end)) continue;
    if (core::find(numbers, name.substr(0, name.size() - end.size())) != nullptr) return true;
  }
  return false;
}

std::string numbers_of(const core::ValueMap& numbers) {
  std::string out;
  for (const auto& [name, value] : numbers) {
    if (is_bound(numbers, name)) continue;
    out += (out.empty() ? "" : ", ") + words(name) + " " + shown(value);
    const core::Value* low = core::find(numbers, name + std::string(kLow));
    const core::Value* high = core::find(numbers, name + std::string(kHigh));
    if (low != nullptr && high != nullptr) out += " (" + shown(*low) + " to " + shown(*high) + ")";
  }
  return out;
}

}  // namespace

bool is_card(const core::ValueMap& summary) {
  return !summary.empty() && std::all_of(summary.begin(), summary.end(), [](const auto& entry) {
    return std::find(kAnswers.begin(), kAnswers.end(), entry.first) != kAnswers.end() &&
           core::as<core::ValueMap>(entry.second) != nullptr;
  });
}

std::vector<CardLine> card_of(const core::RuleStatusEvent& rule) {
  std::vector<CardLine> out;
  for (const std::string_view answer : kAnswers) {
    const auto* subjects = core::as<core::ValueMap>(core::find(rule.summary, answer));
    if (subjects == nullptr) continue;
    for (const auto& [subject, value] : *subjects) {
      const auto* numbers = core::as<core::ValueMap>(value);
      out.push_back({std::string(answer), printable(rule.rule), printable(subject),
                     numbers == nullptr ? shown(value) : numbers_of(*numbers)});
    }
  }
  return out;
}

}  // namespace tocsin::app
