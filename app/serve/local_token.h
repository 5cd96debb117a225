// The token of who runs the server on this machine, where the configuration names none.
#pragma once

#include <string>
#include <string_view>

#include "app/serve/http_config.h"
#include "core/result.h"

namespace tocsin::app {

/// A server that only this machine reaches, and whose configuration lets nobody change anything, gets
/// the token `local` with the role admin. It stands in `folder`/page-token, which only the server's
/// user may read, and is made once. Returns the file's path; empty: such a token is not needed.
/// unavailable: it cannot be made.
core::Result<std::string> add_local_token(AccessConfig& access, std::string_view listen,
                                          const std::string& folder);

}  // namespace tocsin::app
