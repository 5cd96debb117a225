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
/// Of more than 200 points every n-th, those with numbers that are not finite, and the last.
Table table_of(const CurveChart& chart);

/// "loss of train, steps 0 to 190: from 2.95 to 1.55, least 1.2 at step 150; not finite from step 186 on."
std::string sentence_of(const CurveChart& chart, const CurveChart::Series& series);

}  // namespace tocsin::app::report
