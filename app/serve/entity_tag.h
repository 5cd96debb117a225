// Answers that a client may keep: an ETag, and 304 when it has that answer already (RFC 9110, 8.8.3 and 13.1.2).
#pragma once

#include <string>
#include <string_view>

#include "app/serve/http_routes.h"

namespace tocsin::app {

/// A weak tag of what an answer means: the same on every replica, and whatever its encoding is.
std::string weak_tag(std::string_view meaning);
/// Whether If-None-Match names the tag; a tag's weakness does not count there.
bool names_tag(std::string_view if_none_match, std::string_view tag);
/// Lets the client keep `answer` for ten minutes. `meaning`: the body without what each process says
/// for itself, such as the time of the answer. If the client has it, the answer is 304.
void let_keep(const HttpRequest& request, std::string_view meaning, HttpAnswer& answer);

}  // namespace tocsin::app
