// What rules found, one document for each, with the names and keys of Amazon SageMaker Debugger's reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "app/report/run_report.h"
#include "core/value.h"

namespace tocsin::app::report {

/// By the original's name ("CPUBottleneck"; of several rules of one type the later ones with their own name behind it) the keys
/// RuleTriggered, Violations, Datapoints, Details and RuleParameters. In the order of `report.rules`; rules of ours
/// and those that only sum up have none.
std::vector<std::pair<std::string, core::ValueMap>> original_reports(const RunReport& report);

}  // namespace tocsin::app::report
