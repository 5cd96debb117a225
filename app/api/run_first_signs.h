// First signs among the issues of a run, as the API tells them.
#pragma once

#include <vector>

#include "insights/insights.h"

namespace tocsin::app {

/// Leaves `first_sign` to those before which no other of `issues` began (core/first_signs.h). `issues`: as the store has
/// them, all of one run or of several.
void mark_first_signs(std::vector<insights::IssueLine>& issues);

/// Those of `issues`, of the run of `one`, that began before it, the earliest step first.
std::vector<insights::IssueLine> begun_before(const insights::IssueLine& one,
                                              const std::vector<insights::IssueLine>& issues);

}  // namespace tocsin::app
