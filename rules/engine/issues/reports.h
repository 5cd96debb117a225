// What is said to the outside: issues, statuses of rules and news of jobs, as events of the partition
// that is being worked on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rules/engine/partition/rule_table.h"
#include "rules/engine/partition/turn.h"

namespace tocsin::rules {

class Reports {
 public:
  Reports(const EngineOptions& options, EngineStats& stats, const ConfiguredRules& configured)
      : options_(options), stats_(stats), configured_(configured) {}

  /// Nothing while the partition is silent.
  void emit(const Turn& turn, Event event);
  /// An identified one, with its number.
  void send(const Turn& turn, Run& run, std::uint32_t rule, core::Issue issue);
  /// The tensors of the run are spread over so many shards: rules that join several say that they are
  /// given none.
  void spread(const Turn& turn, Run& run, std::uint16_t shards);
  /// A rule of the user's stands at `state` from now on; `as_of`, UTC ns: what its summary speaks of,
  /// else as far as the run has come.
  void status(const Turn& turn, Run& run, std::uint32_t rule, core::RuleState state,
              std::string reason = {}, core::ValueMap summary = {},
              std::optional<std::int64_t> as_of = {});
  /// What a rule of the engine's own has to tell of a run that goes on.
  void sum_up_own(const Turn& turn, const Run& run, std::uint32_t rule, core::ValueMap told,
                  std::int64_t time);
  [[nodiscard]] core::Issue make_issue(const Turn& turn, const Run& run, const RuleSettings& which,
                                       const Open& open, const Place& place) const;
  /// The same event, however often it is made, has the same id.
  static void identify(const Run& run, core::Issue& issue, const Open& open, const Place& place);
  [[nodiscard]] core::JobEvent job_event(const Turn& turn, const Run& run, core::JobPhase phase,
                                         std::uint64_t number, std::int64_t time) const;

 private:
  void tell_reports(const Turn& turn, Run& run, const core::Issue& issue);

  const EngineOptions& options_;
  EngineStats& stats_;
  const ConfiguredRules& configured_;
};

}  // namespace tocsin::rules
