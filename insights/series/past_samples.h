// Samples of a node as they were at a time.
#pragma once

#include <cstdint>

#include "insights/series/series_reader.h"

namespace tocsin::insights {

/// Takes out of what is told of `family` the samples behind `until` (milliseconds, UTC), as if they had not come yet.
/// Where single samples are gone by their age, as exact as the buckets that are kept. False: nothing had come.
bool cut_samples(SeriesReader& reader, std::int64_t until, FamilyLine& family);

}  // namespace tocsin::insights
