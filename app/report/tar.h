// Files of a report as one: a tar archive (POSIX.1-1988, ustar).
#pragma once

#include <string>
#include <vector>

#include "app/report/bundle.h"
#include "core/result.h"
#include "core/time.h"

namespace tocsin::app::report {

/// All of them in the folder `root`, with this time. invalid_argument: a path is longer than 100 bytes, the root than 155,
/// or a file than 8 GiB.
core::Result<std::string> tar_of(const std::string& root, const std::vector<BundleFile>& files,
                                 core::WallTime made);

}  // namespace tocsin::app::report
