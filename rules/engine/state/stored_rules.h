// Rules as rules-state keeps them: the lines by which they are found again (RuleTable::line), each
// with what the rule was made from, so that what they judged can be judged again after they were
// removed or changed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rules/engine/partition/rule_table.h"

namespace tocsin::rules {

/// What this rule is made from, as an item of `rules:` in JSON; empty: it is a program of the user's,
/// whose files may be others by now.
std::string definition_of(const RuleSettings& rule);
/// The rule that a definition describes; nullopt: this program makes none of it.
std::optional<RuleSettings> read_definition(const std::string& definition);

/// These rules as a state keeps them: RuleTable::layout(), each line with the rule's definition.
std::string stored_text(const RuleTable& rules);
/// What was stored, without the definitions: RuleTable::layout() of the rules.
std::string layout_of(std::string_view stored);
/// `configured`, where it is what was stored, word for word; else the rules as they were.
std::shared_ptr<const RuleTable> stored_table(const std::string& stored,
                                              const std::shared_ptr<const RuleTable>& configured);
/// The stored rules as they were, in their order. Those that cannot be made again (states of earlier
/// programs, programs of the user's) are those of `configured` with the same line, or left out.
RuleTable make_stored(std::string_view stored, const RuleTable& configured);

}  // namespace tocsin::rules
