// The numbers of a chart as a table: beside it on a page, and instead of it in a text.
#pragma once

#include "app/report/page.h"

namespace tocsin::app::report {

/// Of more than 200 points of a line every n-th, and the last.
Table table_of(const LineChart& chart);
Table table_of(const BarChart& chart);
Table table_of(const Shares& chart);
Table table_of(const BoxChart& chart);
Table table_of(const Timeline& chart);

}  // namespace tocsin::app::report
