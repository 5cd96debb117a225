#include "rules/engine/partition/rule_table.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "core/identity.h"
#include "core/json.h"
#include "rules/engine/memory/rosters.h"

namespace tocsin::rules {
namespace {

constexpr std::size_t kPartBytes = 128 * 1024;  // about, of the units of one part

// What a family has learned outlives a change of thresholds, not one of what is looked at.
std::uint64_t heritage_of(const RuleSettings& rule) {
  constexpr std::string_view kSelecting[] = {"collection_names", "tensor_regex", "modes",
                                             "workers",          "start_step",   "end_step"};
  std::string text = rule.name + '\x1f' + rule.type + '\x1f' + rule.version;
  for (const core::Parameter& parameter : rule.parameters) {
    if (std::find(std::begin(kSelecting), std::end(kSelecting), parameter.name) ==
        std::end(kSelecting)) {
      continue;
    }
    text += '\x1f' + core::to_json(parameter.value, true);
  }
  return core::name_hash(text);
}

}  // namespace

core::Status check_rules(const RulesConfig& rules) {
  std::set<std::string_view> names;
  for (const RuleSettings& rule : rules.rules) {
    if (!rule.program) return core::invalid_argument("rule " + rule.name + " has no program");
    if (!names.insert(rule.name).second) {
      return core::invalid_argument("two rules are called " + rule.name);
    }
  }
  return core::ok();
}

RuleTable::RuleTable(std::vector<RuleSettings> configured)
    : all(std::move(configured)), first_own(static_cast<std::uint32_t>(all.size())) {
  for (const OperationalRule& rule : operational_rules()) {
    all.push_back(operational_settings(rule));
  }
  for (std::uint32_t i = 0; i < first_own; ++i) {
    const RuleSettings& rule = all[i];
    const Program& program = *rule.program;
    if (const auto* row = dynamic_cast<const RowProgram*>(&program)) {
      rows.push_back({i, row});
    } else if (const auto* clock = dynamic_cast<const ClockProgram*>(&program)) {
      clocks.push_back({i, clock});
    }
    const std::uint32_t inputs = program.inputs();
    if (inputs == 0) continue;
    const auto number = static_cast<std::uint32_t>(evaluated.size());
    evaluated.push_back(
        {i, &program, unit_number({rule.name, rule.type, rule.version, rule.params_hash})});
    if (program.other() != nullptr) comparing.push_back(number);
    if (!program.family().empty()) {
      families.push_back(number);
      evaluated.back().heritage = heritage_of(rule);
    }
    if ((inputs & input::kValues) != 0) series.push_back({number, &program});
    for (std::size_t bit = 0; bit < takers.size(); ++bit) {
      if ((inputs & (1U << bit)) != 0) takers[bit].push_back(number);
    }
  }
  find_followers();
}

// A rule that is not configured (any more) is never heard of.
void RuleTable::find_followers() {
  followers.resize(all.size());
  std::map<std::string_view, std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < first_own; ++i) numbers[all[i].name] = i;
  std::vector<bool> placed(evaluated.size(), false);
  const std::function<void(std::uint32_t)> place = [&](std::uint32_t number) {
    const std::vector<Followed>& follows = evaluated[number].program->follows;
    if (follows.empty() || placed[number]) return;
    placed[number] = true;
    for (std::size_t which = 0; which < follows.size(); ++which) {
      const auto rule = numbers.find(follows[which].rule);
      if (rule == numbers.end()) continue;
      followers[rule->second].push_back({number, which});
      for (std::uint32_t other = 0; other < evaluated.size(); ++other) {
        if (evaluated[other].rule == rule->second) place(other);
      }
    }
    following.push_back(number);
  };
  for (std::uint32_t number = 0; number < evaluated.size(); ++number) place(number);
}

std::optional<std::uint32_t> RuleTable::evaluated_as(std::uint64_t identity) const {
  for (std::uint32_t i = 0; i < evaluated.size(); ++i) {
    if (evaluated[i].identity == identity) return i;
  }
  return std::nullopt;
}

std::string RuleTable::line(std::uint32_t rule) const {
  const Program* program = all[rule].program.get();
  char shape = '-';
  if (dynamic_cast<const RowProgram*>(program) != nullptr) shape = 'r';
  if (dynamic_cast<const ClockProgram*>(program) != nullptr) shape = 'c';
  std::string text;
  for (const std::string& field : {all[rule].name, all[rule].type, all[rule].params_hash}) {
    text += field + '\x1f';
  }
  text += shape;
  text += '\n';
  return text;
}

std::string RuleTable::layout() const {
  std::string text;
  for (std::uint32_t i = 0; i < all.size(); ++i) text += line(i);
  return text;
}

bool RuleTable::names(const std::string& layout, const std::string& line) {
  return ('\n' + layout).find('\n' + line) != std::string::npos;
}

std::uint32_t RuleTable::slots_per_part() const {
  std::size_t each = sizeof(Slot) + sizeof(std::uint16_t) + sizeof(Match);
  for (const auto& row : rows) {
    each += row.program->state_bytes() + sizeof(Life) + sizeof(Match);
  }
  return static_cast<std::uint32_t>(
      std::bit_floor(std::clamp<std::size_t>(kPartBytes / each, 16, 4096)));
}

}  // namespace tocsin::rules
