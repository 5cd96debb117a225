// Charts of a report as SVG that stands inside the page.
#pragma once

#include <string>

#include "app/report/page.h"

namespace tocsin::app::report {

std::string svg(const LineChart& chart);
std::string svg(const BarChart& chart);
std::string svg(const Shares& chart);
std::string svg(const BoxChart& chart);
std::string svg(const Timeline& chart);
std::string svg(const CurveChart& chart);

}  // namespace tocsin::app::report
