// How large a report may be.
#pragma once

#include <cstddef>
#include <string>

#include "app/report/page.h"

namespace tocsin::app::report {

inline constexpr std::size_t kMostPageBytes = 5U << 20U;

/// page_html() of the page in at most so many bytes: heat strips lose rows, then charts lose points, then the data for
/// programs are left out. What was cut stands in the footer. Larger only where tables and texts alone are.
std::string page_within(Page page, std::size_t most = kMostPageBytes);

}  // namespace tocsin::app::report
