// A family as it was at a time. Internal to series.
#pragma once

#include <cstdint>

#include "insights/series/series_reader.h"

namespace tocsin::insights {

/// Takes out of what is told of `family` the rows behind `until` (microseconds), as if they had not come yet. Where
/// single values are gone, the bucket that holds the moment goes whole. False: nothing had come.
bool cut_family(SeriesReader& reader, std::int64_t until, FamilyLine& family);

}  // namespace tocsin::insights
