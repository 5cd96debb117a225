// All tensors of one kind over the steps of a run: a row for each, colours for numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/report/page.h"
#include "app/report/run_report.h"
#include "core/result.h"
#include "insights/insights.h"

namespace tocsin::app::report {

/// Norms of gradients, weights and activations, and the zeros of activations, as far as the run has them.
core::Result<std::vector<HeatStrip>> heat_strips(insights::SeriesReader& reader,
                                                 const RunReport& report);
/// Joins neighbours until there are at most so many rows: of several values the greatest stands, and what is not finite stays.
void fold_rows(HeatStrip& strip, std::size_t most);

/// An image of 8 bits per cell, its palette with it; row by row.
std::string heat_png(const HeatStrip& strip);
std::string svg(const HeatStrip& strip);
/// A row for each: least, greatest, newest, and where it was not finite first.
Table table_of(const HeatStrip& strip);
/// "12 tensors, steps 0 to 191: from 0.001 to 31000, the greatest of fc2.weight; not finite first in fc1.weight, at 186."
std::string sentence_of(const HeatStrip& strip);

}  // namespace tocsin::app::report
