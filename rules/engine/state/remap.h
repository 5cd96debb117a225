// State that other rules wrote: rules that are the same (name, type and parameters) keep their memory
// under their new numbers, new ones start without any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rules/engine/memory/run.h"
#include "rules/engine/partition/rule_table.h"

namespace tocsin::rules {

class Remap {
 public:
  /// `before`: RuleTable::layout() of the rules that the state belongs to.
  Remap(const std::string& before, const RuleTable& after);

  /// The new number; nullopt: no rule is the same any more.
  [[nodiscard]] std::optional<std::uint32_t> number(std::uint32_t before) const;
  /// Name, type and hash of what is gone, and its line; nullopt: there was no such rule.
  [[nodiscard]] std::optional<RuleSettings> gone(std::uint32_t before) const;
  [[nodiscard]] const std::string& line(std::uint32_t before) const;
  /// Everything but the evaluators, which are found again by identity.
  void apply(Run& run) const;

 private:
  /// A rule as an earlier engine knew it.
  struct Known {
    std::string text;  // whole line: equal text, equal memory
    std::string name;
    std::string type;
    std::string hash;
    char shape = '-';
  };
  static std::vector<Known> parse(std::string_view layout);
  [[nodiscard]] std::vector<std::uint32_t> numbers(const std::vector<Known>& after,
                                                   char shape) const;

  std::vector<Known> before_;
  std::vector<std::uint32_t> all_;   // old number → new number,
  std::vector<std::uint32_t> rows_;  // and among those of rows
  std::size_t rules_ = 0;            // after,
  std::size_t row_rules_ = 0;        // and of rows
};

}  // namespace tocsin::rules
