// The parts of a mail's text that have their own encodings. Pure. Internal to actions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace tocsin::actions {

/// RFC 2045 §6.7, lines of at most 76 characters, CRLF line ends; takes \n or \r\n.
std::string quoted_printable(std::string_view text);
/// Header text as it is when it is printable ASCII, else as RFC 2047 words (UTF-8, base64), folded.
std::string header_text(std::string_view text);
/// "Fri, 02 Jan 2026 03:04:05 +0000" (RFC 5322 §3.3).
std::string mail_date(core::WallTime time);

struct Mailbox {
  std::string name;     // display name, may be empty
  std::string address;  // local@domain, ASCII without blanks, quotes or brackets
};
/// "a@b.c" or "Name <a@b.c>", exactly one; nullopt for anything else, and for line breaks.
std::optional<Mailbox> parse_mailbox(std::string_view text);
std::string to_header(const Mailbox& mailbox);

}  // namespace tocsin::actions
