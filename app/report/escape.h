// Text from outside inside a page.
#pragma once

#include <string>
#include <string_view>

namespace tocsin::app::report {

/// For text and for attributes in double quotes. Control characters become blanks, what is not UTF-8
/// becomes U+FFFD, and so do the characters that turn the direction of what stands around them.
std::string escaped(std::string_view text);

}  // namespace tocsin::app::report
