// What a loss call says of its classes (docs/ledger.md, "Classes"): scalars ledger/<call>/class_<field>/<class>,
// added up over workers and over what one pass of evaluation sends.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

struct LedgerClass {
  enum Field : std::size_t { labels, answers, right, loss, pairs, wins, trained, kFields };
  static constexpr std::array<std::string_view, kFields> kNames{
      "labels", "answers", "right", "loss", "pairs", "wins", "trained"};
  std::array<double, kFields> sums{};
  double senders = 0;  // of its labels

  [[nodiscard]] double operator[](Field field) const { return sums[field]; }
  /// Of its samples, that get it as their answer.
  [[nodiscard]] double right_share() const {
    return sums[labels] > 0 ? sums[right] / sums[labels] : 0;
  }
  template <typename A>
  friend void io(A& a, LedgerClass& c) {
    io_all(a, c.sums, c.senders);
  }
};

/// Of one call, over one window.
struct LedgerClasses {
  std::map<std::uint32_t, LedgerClass> classes;
  double samples = 0;
  double count = 0;    // Σ over senders of the classes that have samples there
  double trained = 0;  // targets that training has had
  double senders = 0;

  template <typename A>
  friend void io(A& a, LedgerClasses& c) {
    io_all(a, c.classes, c.samples, c.count, c.trained, c.senders);
  }

  /// More of the same pass. What training has had is not of the pass: the newest counts.
  void add(const LedgerClasses& more) {
    for (auto& [number, one] : classes) one.sums[LedgerClass::trained] = 0;
    for (const auto& [number, one] : more.classes) {
      LedgerClass& mine = classes[number];
      for (std::size_t f = 0; f < LedgerClass::kFields; ++f) mine.sums[f] += one.sums[f];
      mine.senders = std::max(mine.senders, one.senders);
    }
    samples += more.samples;
    count = std::max(count, more.count);
    trained = more.trained;
    senders = std::max(senders, more.senders);
  }
  /// All classes were told by each sender: there are few.
  [[nodiscard]] bool whole() const { return count <= kTold * senders; }
  /// How many there are: of many each sender chooses some by what they look like.
  [[nodiscard]] double hypotheses() const {
    return whole() ? std::max(static_cast<double>(classes.size()), 1.0) : count;
  }
  static constexpr double kTold = 64;
};

using ClassesByCall = std::map<std::string, LedgerClasses, std::less<>>;

/// Takes `ledger/<call>/class_…`.
inline void take_classes(ClassesByCall& calls, std::string_view name, double value) {
  constexpr std::string_view kPrefix = "ledger/";
  constexpr std::string_view kClass = "/class_";
  const std::size_t at = name.rfind(kClass);
  if (!name.starts_with(kPrefix) || at == std::string_view::npos || at < kPrefix.size() ||
      !std::isfinite(value) || value < 0) {
    return;
  }
  const std::string_view call = name.substr(kPrefix.size(), at - kPrefix.size());
  std::string_view field = name.substr(at + kClass.size());
  const std::size_t slash = field.find('/');
  if (slash == std::string_view::npos) {
    LedgerClasses& all = calls[std::string(call)];
    if (field == "samples") all.samples += value;
    if (field == "trained") all.trained += value;
    if (field == "count") {
      all.count += value;
      ++all.senders;
    }
    return;
  }
  const std::string_view number = field.substr(slash + 1);
  field = field.substr(0, slash);
  std::uint32_t which = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), which);
  const auto* const known =
      std::find(LedgerClass::kNames.begin(), LedgerClass::kNames.end(), field);
  if (read.ec != std::errc{} || read.ptr != number.data() + number.size() ||
      known == LedgerClass::kNames.end()) {
    return;
  }
  LedgerClass& one = calls[std::string(call)].classes[which];
  one.sums[static_cast<std::size_t>(known - LedgerClass::kNames.begin())] += value;
  if (field == "labels") ++one.senders;
}

inline ClassesByCall classes_of(const StepSet& set, const Scope& scope) {
  ClassesByCall out;
  for (const StepRow& row : set.rows) {
    const Name* name = scope.find(row.name());
    if (name != nullptr && row.scalar) take_classes(out, name->text, row.row.sum);
  }
  return out;
}

}  // namespace tocsin::rules
