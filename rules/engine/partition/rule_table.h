// The rules of an engine: the configured ones, then its own; and who of them takes what.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rules/contract/clock_rule.h"
#include "rules/engine/partition/operational.h"
#include "rules/evaluate/evaluator.h"
#include "rules/rules.h"

namespace tocsin::rules {

/// invalid_argument: two rules of one name, or one without a program.
core::Status check_rules(const RulesConfig& rules);

struct RuleTable {
  template <typename P>
  struct Bound {
    std::uint32_t rule = 0;
    const P* program = nullptr;
  };
  /// Rules of scalars of completed steps.
  struct Series {
    std::uint32_t evaluator = 0;
    const Program* program = nullptr;
  };
  /// Rules that are judged by evaluators, those of series among them.
  struct Evaluated {
    std::uint32_t rule = 0;
    const Program* program = nullptr;
    std::uint64_t identity = 0;  // of name, type, version and parameters
    std::uint64_t heritage = 0;  // of what a family knows: name, type, version and selection
  };

  /// Who goes by the hits of a rule, and as which of its Program::follows.
  struct Follower {
    std::uint32_t evaluator = 0;
    std::size_t which = 0;
  };

  RuleTable() = default;
  explicit RuleTable(std::vector<RuleSettings> configured);

  [[nodiscard]] const RuleSettings& settings(std::uint32_t rule) const { return all[rule]; }
  [[nodiscard]] std::uint32_t own(Operational which) const {
    return first_own + static_cast<std::uint32_t>(which);
  }
  /// Numbers of evaluated rules that take an input (input::…).
  [[nodiscard]] const std::vector<std::uint32_t>& takers_of(std::uint32_t which) const {
    return takers[static_cast<std::size_t>(std::countr_zero(which))];
  }
  /// nullopt: no rule has it.
  [[nodiscard]] std::optional<std::uint32_t> evaluated_as(std::uint64_t identity) const;
  /// Which rule that is: equal lines, equal memory (engine/state/remap.h).
  [[nodiscard]] std::string line(std::uint32_t rule) const;
  /// The lines of all.
  [[nodiscard]] std::string layout() const;
  /// Is this line in that layout?
  [[nodiscard]] static bool names(const std::string& layout, const std::string& line);
  /// Units of rows per part of a snapshot: by what these rules remember of each.
  [[nodiscard]] std::uint32_t slots_per_part() const;

  std::vector<RuleSettings> all;
  std::uint32_t first_own = 0;  // of all: the first operational one
  std::vector<Bound<RowProgram>> rows;
  std::vector<Bound<ClockProgram>> clocks;
  std::vector<Series> series;
  std::vector<Evaluated> evaluated;
  std::array<std::vector<std::uint32_t>, input::kCount> takers;  // by bit of input::…
  std::vector<std::uint32_t> comparing;          // of `evaluated`: those with a Program::other()
  std::vector<std::uint32_t> families;           // of `evaluated`: those with a Program::family()
  std::vector<std::vector<Follower>> followers;  // per rule of `all`
  /// Of `evaluated`: those that follow others, each behind those that it follows.
  std::vector<std::uint32_t> following;

 private:
  void find_followers();
};

/// What the configuration says: rules that judge in this engine, and those that another one judges.
struct ConfiguredRules {
  ConfiguredRules() = default;
  /// As check_rules() has found them right.
  explicit ConfiguredRules(RulesConfig config)
      : table(std::make_shared<const RuleTable>(std::move(config.rules))),
        elsewhere(std::move(config.elsewhere)) {}

  std::shared_ptr<const RuleTable> table = std::make_shared<const RuleTable>();
  std::vector<RuleSettings> elsewhere;
};

}  // namespace tocsin::rules
