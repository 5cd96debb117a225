// JSON text as to_json() writes it, a piece at a time.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::core {

/// In quotation marks, with its escapes; bytes from 0x80 on as they are.
void append_json_text(std::string& out, std::string_view text);
/// The shortest text that reads back the same; one that is not finite as a text.
void append_json_number(std::string& out, double value);

}  // namespace tocsin::core
