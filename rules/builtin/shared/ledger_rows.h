// What the loss calls of one step say (docs/ledger.md): rows `ledger/<call>/<field>`, added up over
// the calls of the step and over workers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "rules/builtin/shared/reward_names.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

/// The fields of one loss call at one step.
struct LedgerCall {
  enum Field : std::size_t {
    samples,
    loss,
    trivial,
    pairs,
    wins,
    straight,
    crossed,
    one_target,
    no_targets,
    calls,
    output_spread,
    target_spread,
    right,
    answers,
    labels,
    ceiling,
    kFields
  };
  static constexpr std::array<std::string_view, kFields> kNames{
      "samples", "loss",       "trivial",    "pairs",  "wins",          "straight",
      "crossed", "one_target", "no_targets", "calls",  "output_spread", "target_spread",
      "right",   "answers",    "labels",     "ceiling"};

  std::string_view name;  // of the call; lives as long as the dictionary's entry
  std::array<double, kFields> sums{};
  std::array<double, kFields> rows{};  // how many were added up

  [[nodiscard]] double operator[](Field field) const { return sums[field]; }
  [[nodiscard]] bool has(Field field) const { return rows[field] > 0; }
  /// Whether what the loss is compared with is known of all workers that sent a loss.
  [[nodiscard]] bool comparable() const {
    return has(loss) && rows[loss] == rows[trivial] && rows[loss] == rows[samples] &&
           sums[samples] > 0;
  }
  void add(Field field, double value) {
    // The least loss of a sample is no sum.
    sums[field] = field == ceiling ? std::max(sums[field], value) : sums[field] + value;
    ++rows[field];
  }
};

/// `ledger/<call>/<field>`.
struct LedgerName {
  static constexpr std::string_view kPrefix = "ledger/";
  std::string_view call;
  std::string_view field;

  static std::optional<LedgerName> read(std::string_view text) {
    if (!text.starts_with(kPrefix)) return std::nullopt;
    text.remove_prefix(kPrefix.size());
    const std::size_t at = text.rfind('/');
    if (at == std::string_view::npos) return std::nullopt;
    return LedgerName{text.substr(0, at), text.substr(at + 1)};
  }
};

/// A step's ledger.
struct LedgerStep {
  std::vector<LedgerCall> calls;          // by name
  std::optional<double> planned_updates;  // where it was sent
  std::optional<double> rate;             // learning rate, the largest of the workers
  bool rewarded = false;                  // a logged name says that the job learns by reward

  LedgerStep(const StepSet& set, const Scope& scope) {
    for (const StepRow& row : set.rows) {
      if (!row.scalar || !std::isfinite(row.row.sum)) continue;
      const Name* name = scope.find(row.name());
      if (name == nullptr) continue;
      if (name->text == "learning_rate") rate = std::max(rate.value_or(row.row.sum), row.row.sum);
      const auto read = LedgerName::read(name->text);
      if (!read && learns_by_reward(name->text)) rewarded = true;
      if (read && read->call == "plan") {
        if (read->field == "updates") planned_updates = row.row.sum;
      } else if (read) {
        add(*read, row.row.sum);
      }
    }
  }

 private:
  void add(const LedgerName& name, double value) {
    const auto* const field =
        std::find(LedgerCall::kNames.begin(), LedgerCall::kNames.end(), name.field);
    if (field == LedgerCall::kNames.end()) return;
    auto at = std::lower_bound(calls.begin(), calls.end(), name.call,
                               [](const LedgerCall& a, std::string_view b) { return a.name < b; });
    if (at == calls.end() || at->name != name.call) {
      at = calls.insert(at, LedgerCall{});
      at->name = name.call;
    }
    at->add(static_cast<LedgerCall::Field>(field - LedgerCall::kNames.begin()), value);
  }
};

}  // namespace tocsin::rules
