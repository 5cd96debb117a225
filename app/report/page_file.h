// A report as a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/issue.h"
#include "core/result.h"

namespace tocsin::app::report {

/// "<job>-<first 8 of the uid>-<attempt>.html"; whatever a file's name should not have is '_'.
std::string page_name(const core::RunRef& run);
/// A reader never sees half a page. unavailable: it cannot be written, and why.
core::Status write_page(const std::string& path, std::string_view text);

}  // namespace tocsin::app::report
