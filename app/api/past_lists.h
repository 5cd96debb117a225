// Lists as they were at a time, and why others cannot be told so.
#pragma once

#include <string>
#include <string_view>

#include "app/api/api_desk.h"
#include "app/api/api_route.h"
#include "core/time.h"

namespace tocsin::app {

/// GET /issues?at=…: those that were open at `at`, or had ended within the hour before it.
HttpAnswer list_past_issues(ApiDesk& desk, const ApiCall& call, core::WallTime at);

/// Why a route without the parameter `at` does not know the past, in a sentence.
std::string why_only_now(std::string_view path);

}  // namespace tocsin::app
