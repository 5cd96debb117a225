// Rules made from values instead of a file.
#pragma once

#include <string>

#include "core/issue.h"
#include "core/result.h"
#include "rules/rules.h"

namespace tocsin::app {

/// The first of these items of `rules:`, read like those of a configuration; `place` stands for its
/// file. invalid_argument: the first problem.
core::Result<rules::RuleSettings> first_rule(core::ValueList items, const std::string& place);

/// The rule that told this issue, from what the issue says of it: type, parameters and their hash.
/// failed_precondition: this program's rule of that type has another version, is not judged by this
/// program, or cannot be made to have that hash; the message says which.
core::Result<rules::RuleSettings> rule_of(const core::Issue& issue);

}  // namespace tocsin::app
