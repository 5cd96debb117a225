// Text of others on one line, for people: nothing in it is invisible.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace tocsin::core {

inline constexpr std::size_t kUncut = std::numeric_limits<std::size_t>::max();

/// `text` as one line of valid UTF-8. Every character that moves a cursor, breaks a line, changes the
/// direction of what follows, or shows nothing (controls C0 and C1, line separators, bidi marks,
/// zero-width characters, tags, non-characters) is a blank; a broken sequence is U+FFFD. Longer than
/// `limit` bytes, it is cut between two characters and ends in "…", which is part of the limit.
std::string visible(std::string_view text, std::size_t limit = kUncut);

/// The same, with one blank where there were several, and none at either end. Empty: nothing in it is
/// visible.
std::string visible_words(std::string_view text);

}  // namespace tocsin::core
