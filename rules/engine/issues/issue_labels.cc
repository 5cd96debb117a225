#include "rules/engine/issues/issue_labels.h"

#include <algorithm>

#include "core/limits.h"
#include "rules/rules.h"

namespace tocsin::rules {

void bound_issue_labels(core::Labels& labels) {
  core::bound_labels(labels, core::limit::kLabels, [](std::string_view name) {
    const auto ours = issue_labels();
    return std::find(ours.begin(), ours.end(), name) != ours.end();
  });
}

}  // namespace tocsin::rules
