// Errors of the API: application/problem+json (RFC 9457).
#pragma once

#include <string>
#include <string_view>

#include "app/serve/http_routes.h"
#include "core/result.h"

namespace tocsin::app {

/// `kind` in words with hyphens ("unknown-parameter") names what is wrong, for programs; `detail` is one sentence.
/// `field`: the parameter or field that it is about; empty: none.
[[nodiscard]] HttpAnswer problem(int status, std::string_view kind, std::string_view detail,
                                 std::string_view field = {});
/// 400, 404, 409, 503 … by the code of the error.
[[nodiscard]] HttpAnswer problem(const core::Error& error);

}  // namespace tocsin::app
