// The life of issues: first hit, repetition, resolution.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rules/engine/issues/held_reports.h"
#include "rules/engine/issues/reports.h"
#include "rules/engine/memory/unit.h"
#include "rules/engine/partition/rule_table.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class IssueBook {
 public:
  IssueBook(const EngineOptions& options, EngineStats& stats, const ConfiguredRules& configured,
            Reports& reports)
      : options_(options), stats_(stats), configured_(configured), reports_(reports) {}

  /// Evaluations and what they came to.
  void count(const Turn& turn, Run& run, std::uint32_t rule, const EvaluationCounts& counts);
  /// An evaluation went wrong. Told once, with the first reason, until recover().
  void fail(const Turn& turn, Run& run, std::uint32_t rule, std::string reason);
  void recover(const Turn& turn, Run& run, std::uint32_t rule);
  /// What the rule has to tell of a run that goes on, as of `period_end`, UTC ns.
  void sum_up(const Turn& turn, Run& run, std::uint32_t rule, std::int64_t period_end,
              core::ValueMap told);
  /// What a rule tells of the run so far, whatever it has found. Its status stays.
  void tell_so_far(const Turn& turn, Run& run, std::uint32_t rule, std::int64_t time,
                   core::ValueMap told);
  /// One verdict about a unit whose life is `life`: may open, repeat or resolve an issue.
  void apply(const Turn& turn, Run& run, std::uint32_t rule, Life& life, const Unit& unit,
             Verdict verdict, const Place& place, Explain explain);
  /// What was found while the present record or decision was worked on is told: in the order of
  /// training, each with what came before it. Whoever hands in a record calls it behind that.
  void settle(const Turn& turn);
  /// Nothing when no such issue is open. `said`: how it ended, else what the
  /// resolution says.
  void resolve(const Turn& turn, Run& run, const OpenKey& key, core::Resolution resolution,
               const Place& place, std::string_view said = {});
  void resolve_all(const Turn& turn, Run& run, core::Resolution resolution, bool lost = false);
  /// The last word of an open issue whose rule is not configured any more, or changed. Nothing is
  /// sent or forgotten by this.
  [[nodiscard]] core::Issue end_of_gone(const Turn& turn, const Run& run, const RuleSettings& gone,
                                        const Open& open, std::uint64_t sequence) const;
  /// It is open no more, whatever its rule says. Nothing is sent.
  static void forget(Run& run, const OpenKey& key);
  /// Clocks stand still and step back: a time of its own for each report of a rule.
  static std::int64_t later(Run& run, std::uint32_t rule, std::int64_t time);

 private:
  void fire(const Turn& turn, Run& run, std::uint32_t rule, Life& life, const Unit& unit,
            unsigned kind, const Place& place, Explain explain);
  void tell_followers(const Turn& turn, Run& run, std::uint32_t rule, const Place& place,
                      const Labels& unit);
  void begin(const Turn& turn, Run& run, std::uint32_t rule, const OpenKey& key, Open& open,
             const core::Issue& issue, const Place& place, const std::optional<core::Role>& role);
  void name_causes(const Turn& turn, const Run& run, const Beginning& beginning,
                   core::Issue& issue) const;

  const EngineOptions& options_;
  EngineStats& stats_;
  const ConfiguredRules& configured_;
  Reports& reports_;
  HeldReports held_;
};

}  // namespace tocsin::rules
