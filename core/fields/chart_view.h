// The records of chosen curves.
#pragma once

#include <string>
#include <string_view>

#include "core/chart_view.h"
#include "core/record.h"
#include "core/result.h"

namespace tocsin::core {

/// view_…
std::string view_id(std::string_view owner, std::string_view job);
/// A tombstone if it has no charts.
OutRecord view_record(const ChartView& view);

std::string view_json(const ChartView& view);
/// invalid_argument: it is none, it has another ID than its owner and job, or too many charts.
Result<ChartView> read_chart_view(std::string_view json);

}  // namespace tocsin::core
