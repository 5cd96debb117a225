// The parts of a mail's text that have their own encodings. Pure. Internal to actions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace tocsin::actions {

/// RFC 2045 §6.7, lines of at most 76 characters, CRLF line ends; takes \n or \r\n.
std::string quoted_printable(std::string_view text);
/// Header text in lines of at most 76 characters, of which the first begins at `column`. Printable ASCII
/// is as it is; from the first other word to the last, RFC 2047 words (UTF-8, base64) of at most 75.
std::string header_text(std::string_view text, std::size_t column = 0);
/// "Fri, 02 Jan 2026 03:04:05 +0000" (RFC 5322 §3.3).
std::string mail_date(core::WallTime time);

struct Mailbox {
  std::string name;     // display name, may be empty
  std::string address;  // local@domain, ASCII without blanks, quotes or brackets
};
/// "a@b.c" or "Name <a@b.c>", exactly one; nullopt for anything else, and for line breaks.
std::optional<Mailbox> parse_mailbox(std::string_view text);
/// "Name" <a@b.c>, folded likewise.
std::string to_header(const Mailbox& mailbox, std::size_t column = 0);

}  // namespace tocsin::actions
