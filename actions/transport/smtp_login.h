// How to log in to an SMTP server: which mechanisms are tried, in which order. Internal to actions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tocsin::actions {

/// Words of the key `auth`: "auto", then the mechanisms as users write them.
std::vector<std::string> smtp_login_names();

/// What to try, each a libcurl login option ("AUTH=PLAIN"; two joined by ';' are tried on one
/// connection), in this order. `auth`: one of smtp_login_names(). `offered`: what follows AUTH in
/// the server's answer to EHLO, any case; empty: not known yet. With "auto" the simple ones come
/// first: the password goes over TLS only, and they are what every server can do that offers them.
std::vector<std::string> smtp_logins(std::string_view auth, std::string_view offered);

}  // namespace tocsin::actions
