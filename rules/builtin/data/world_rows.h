// What a step says of the worlds of training and evaluation (docs/ledger.md, "Worlds"): scalars
// ledger/world/<group>/<field> and ledger/world/<group>/<part>/<field>, added up over calls and workers.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "rules/builtin/data/world_course.h"
#include "rules/evaluate/step_set.h"

namespace tocsin::rules {

inline constexpr std::string_view kLedgerWorld = "ledger/world/";

/// "input/0" of "input/0/2": an image of its channel, the targets of a loss call of its class.
inline std::string_view world_group(std::string_view unit) {
  const std::size_t kind = unit.find('/');
  const std::size_t end = kind == std::string_view::npos ? kind : unit.find('/', kind + 1);
  return unit.substr(0, end);
}

struct WorldStep {
  std::map<std::string, WorldSums, std::less<>> units;  // those that have numbers of their own
  double passes = 0;                                    // over the training data; 0: not sent
  bool averages = false;  // the model evaluates by averages of its past
  bool in_parts = true;   // of a pass: no worker has told of two batches

  WorldStep(const StepSet& set, const Scope& scope) {
    std::map<std::string, WorldSums, std::less<>> groups;
    std::set<std::pair<std::uint64_t, std::uint32_t>> seen;
    for (const StepRow& row : set.rows) {
      const Name* name = row.scalar ? scope.find(row.name()) : nullptr;
      if (name == nullptr || !std::isfinite(row.row.sum) || !name->text.starts_with("ledger/"))
        continue;
      std::string_view text = name->text;
      if (text.ends_with("/calls") && !seen.emplace(row.name(), row.worker).second)
        in_parts = false;
      if (!text.starts_with(kLedgerWorld)) continue;
      text.remove_prefix(kLedgerWorld.size());
      if (text == "passes") passes = std::max(passes, row.row.sum);
      if (text == "averages") averages = averages || row.row.sum > 0;
      const std::size_t at = text.rfind('/');
      if (at == std::string_view::npos) continue;
      const auto* const field =
          std::find(WorldSums::kNames.begin(), WorldSums::kNames.end(), text.substr(at + 1));
      if (field == WorldSums::kNames.end()) continue;
      const auto which = static_cast<std::size_t>(field - WorldSums::kNames.begin());
      auto& into = which <= WorldSums::rows ? groups : units;
      into[std::string(text.substr(0, at))].sums[which] += row.row.sum;
    }
    for (auto& [unit, sums] : units) {
      const auto group = groups.find(world_group(unit));
      if (group != groups.end()) sums.add(group->second);
    }
  }

  /// Batches that models were given.
  [[nodiscard]] double inputs() const {
    double most = 0;
    for (const auto& [unit, sums] : units) {
      if (unit.starts_with("input/")) most = std::max(most, sums[WorldSums::batches]);
    }
    return most;
  }
};

}  // namespace tocsin::rules
