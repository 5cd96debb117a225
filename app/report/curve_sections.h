// The part of a report that shows how the training went: its curves, with what happened on them.
#pragma once

#include <string>
#include <vector>

#include "app/report/run_report.h"
#include "app/report/sections.h"
#include "core/result.h"
#include "insights/insights.h"

namespace tocsin::app::report {

/// What happened to a run, by the step of its training: issues, the stop and the checkpoint. Of several
/// issues at one step the first stands for all.
std::vector<CurveChart::Mark> marks_of(const RunReport& report);

/// Losses, then metrics, learning rates, the rest, and the time of steps: a chart for each name and mode. Of several
/// workers the mean, and the band from the least to the greatest. Empty where nothing was stored of the run.
core::Result<Section> curve_section(insights::SeriesReader& reader, const RunReport& report);

}  // namespace tocsin::app::report
