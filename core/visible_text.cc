#include "core/visible_text.h"

#include <utf8.h>

#include <algorithm>
#include <iterator>

#include "core/text.h"

namespace tocsin::core {
namespace {

constexpr std::string_view kMark = "…";

struct Span {
  char32_t first, last;
};
// By blocks, ascending. U+200C and U+200D join letters of some scripts; there a blank is still legible.
constexpr Span kInvisible[] = {
    {0x0000, 0x001F},    // C0
    {0x007F, 0x009F},    // DEL, C1
    {0x00AD, 0x00AD},    // soft hyphen
    {0x034F, 0x034F},    // grapheme joiner
    {0x061C, 0x061C},    // Arabic letter mark
    {0x115F, 0x1160},    // Hangul fillers
    {0x17B4, 0x17B5},    // Khmer vowels that are never shown
    {0x180B, 0x180F},    // Mongolian selectors and separator
    {0x200B, 0x200F},    // zero width, left-to-right and right-to-left marks
    {0x2028, 0x202E},    // line and paragraph separators, embeddings, overrides
    {0x2060, 0x206F},    // word joiner, isolates, deprecated controls
    {0x3164, 0x3164},    // Hangul filler
    {0xE000, 0xF8FF},    // private use: each font shows something else
    {0xFDD0, 0xFDEF},    // non-characters
    {0xFE00, 0xFE0F},    // variation selectors
    {0xFEFF, 0xFEFF},    // byte order mark
    {0xFFA0, 0xFFA0},    // half-width Hangul filler
    {0xFFF0, 0xFFFC},    // interlinear annotations, object replacement
    {0xE0000, 0x10FFFF}  // tags, selectors, private planes
};

bool invisible(char32_t c) {
  if ((c & 0xFFFEU) == 0xFFFEU) return true;  // the last two of every plane
  return std::any_of(std::begin(kInvisible), std::end(kInvisible),
                     [&](const Span& span) { return c >= span.first && c <= span.last; });
}

}  // namespace

std::string visible(std::string_view text, std::size_t limit) {
  // A character of the result has at most three times the bytes that it had, and at least one.
  const bool huge = limit < kUncut / 4 && text.size() > 4 * limit;
  const std::string_view part = huge ? cut_utf8(text, 4 * limit) : text;
  std::string valid;
  utf8::replace_invalid(part.begin(), part.end(), std::back_inserter(valid));
  std::string out;
  for (auto at = valid.begin(); at != valid.end();) {
    const char32_t c = utf8::unchecked::next(at);
    if (invisible(c)) {
      out += ' ';
    } else {
      utf8::unchecked::append(c, std::back_inserter(out));
    }
  }
  if (out.size() <= limit && !huge) return out;
  const std::size_t room = limit > kMark.size() ? limit - kMark.size() : 0;
  return std::string(cut_utf8(out, room)) + std::string(kMark);
}

std::string visible_words(std::string_view text) {
  std::string out;
  for (const char c : visible(text)) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

}  // namespace tocsin::core
