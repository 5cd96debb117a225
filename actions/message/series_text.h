// Series of issues in Prometheus' text format. Internal to actions.
#pragma once

#include <span>
#include <string>

#include "actions/message/issue_series.h"

namespace tocsin::actions {

/// Text exposition 0.0.4 of all families.
std::string series_text(std::span<const IssueSeries> series);
/// Text exposition 0.0.4 of scalars alone; empty if there are none.
std::string scalars_text(std::span<const IssueSeries> scalars);
/// A label value between quotes.
std::string quoted_label(const std::string& value);

}  // namespace tocsin::actions
