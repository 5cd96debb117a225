// label=value, as the guards of an action are written. Internal to actions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/issue.h"

namespace tocsin::actions {

struct LabelIs {
  std::string name;
  std::string value;
};

/// name=value or name="value"; nullopt for anything else, other matchers too.
std::optional<LabelIs> parse_label(std::string_view text);

/// Does the issue have that label? `job` is the run's where the issue has none. False for what
/// parse_label() does not take.
bool meets(const core::Issue& issue, std::string_view text);

/// The texts of a list such as "env=prod, team=research".
std::vector<std::string> label_list(const std::string& text);

}  // namespace tocsin::actions
