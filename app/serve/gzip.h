// Answers in gzip, for clients that take it.
#pragma once

#include <string>
#include <string_view>

#include "app/serve/http_routes.h"

namespace tocsin::app {

/// Whether Accept-Encoding takes gzip (RFC 9110, 12.5.3).
bool takes_gzip(std::string_view accept_encoding);
/// RFC 1952; empty: there is no memory for it.
std::string gzip(std::string_view text);
/// An answer of 1 kB or more, if the client takes it so.
void compress(const HttpRequest& request, HttpAnswer& answer);

}  // namespace tocsin::app
