// When a report says it was made.
#pragma once

#include "core/time.h"

namespace tocsin::app::report {

/// The present; or SOURCE_DATE_EPOCH (seconds since 1970), so that two reports of a run that has ended are the same bytes.
core::WallTime report_time();

}  // namespace tocsin::app::report
