// Sections of a report of a run, each from what one rule sums up. A section without anything to show
// has no blocks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/report/run_report.h"
#include "core/value.h"

namespace tocsin::app::report {

/// Of the rule of this type; null: it told none.
const core::ValueMap* summary_of(const RunReport& report, std::string_view rule_type);

Section issue_section(const RunReport& report);
Section rule_section(const RunReport& report);
/// Of profiler_report; of the two rules it sums up also where they stand alone.
std::vector<Section> profiler_sections(const RunReport& report);
/// Of create_xgboost_report.
std::vector<Section> xgboost_sections(const core::ValueMap& summary);
/// create_xgboost_report summed up a boosting, and not only the metrics or classes of any training.
bool is_boosting(const core::ValueMap& summary);

/// Anything a rule sums up or gives as evidence: tables, groups, bars of long rows of numbers.
void tell(const core::ValueMap& map, Section& out);
/// A number, or an integer, as one.
std::optional<double> number_of(const core::Value* value);
/// One line for a cell of a table.
std::string cell_text(const core::Value& value);
/// "2026-11-27T18:58:30.613Z": no finer than people read.
std::string moment_text(core::WallTime time);
/// The map of that name; an empty one when it is missing.
const core::ValueMap& map_at(const core::ValueMap& map, std::string_view name);

}  // namespace tocsin::app::report
