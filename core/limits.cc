#include "core/limits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <vector>

#include "core/identity.h"
#include "core/text.h"

namespace tocsin::core {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kMark = "\xE2\x80\xA6#";        // "…#"
constexpr std::size_t kHashDigits = 8;
constexpr std::string_view kNoName = "(no name)";
constexpr std::size_t kShortestCut = 64;
constexpr std::size_t kPiece = 64;
constexpr std::size_t kAroundLabel = 6;  // "":"",

// Bytes that are no UTF-8, and NUL; of a name also what else has no glyph.
bool replace_unfit(std::string& text, bool name) {
  const auto unfit = [&](char c) {
    return c == '\0' || (name && static_cast<unsigned char>(c) < 0x20);
  };
  if (!first_invalid_utf8(text) && std::none_of(text.begin(), text.end(), unfit)) return false;
  std::string out;
  std::string_view left = text;
  while (!left.empty()) {
    // In pieces: of a long text with many such bytes each would else be looked at again and again.
    const std::string_view piece = left.substr(0, kPiece);
    const std::size_t bad = first_invalid_utf8(piece).value_or(piece.size());
    const bool cut_off = bad < piece.size() && piece.size() < left.size() && piece.size() - bad < 4;
    for (const char c : piece.substr(0, bad)) {
      if (unfit(c)) {
        out += kReplacement;
      } else {
        out += c;
      }
    }
    left.remove_prefix(bad);
    if (bad == piece.size() || (cut_off && bad > 0)) continue;
    out += kReplacement;
    left.remove_prefix(1);
  }
  text = std::move(out);
  return true;
}

void cut(std::string& text, std::size_t most) {
  std::array<std::uint8_t, 4> bytes{};
  const std::uint64_t hash = name_hash(text);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(hash >> (56 - 8 * i));
  }
  const std::string digits = hex(bytes);
  text = std::string(cut_utf8(text, most - kMark.size() - kHashDigits));
  text += kMark;
  text += digits;
}

std::size_t bytes_of(const Labels& labels) {
  std::size_t out = 0;
  for (const auto& [name, value] : labels.entries()) {
    out += json_bytes(name) + json_bytes(value) + kAroundLabel;
  }
  return out;
}

std::size_t number_in(const std::string& text) {
  std::size_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

void leave_out(Labels& labels, std::size_t most, FunctionRef<bool(std::string_view)> needed,
               LabelsBound& bound) {
  if (labels.entries().size() <= most) return;
  const std::size_t before = number_in(labels.get(kLabelsLeftOut));
  std::vector<std::string> spare;
  for (const auto& [name, value] : labels.entries()) {
    if (!needed(name) && name != kLabelsLeftOut) spare.push_back(name);
  }
  const std::size_t room = labels.has(kLabelsLeftOut) ? 0 : 1;
  const std::size_t over = std::min(labels.entries().size() + room - most, spare.size());
  for (std::size_t i = spare.size() - over; i < spare.size(); ++i) labels.set(spare[i], {});
  bound.left_out = over;
  labels.set(kLabelsLeftOut, std::to_string(before + over));
}

// The last that is not needed; false: there is none.
bool leave_one_out(Labels& labels, FunctionRef<bool(std::string_view)> needed, LabelsBound& bound) {
  const auto& entries = labels.entries();
  const auto spare = std::find_if(entries.rbegin(), entries.rend(), [&](const auto& label) {
    return !needed(label.first) && label.first != kLabelsLeftOut;
  });
  if (spare == entries.rend()) return false;
  labels.set(std::string(spare->first), {});
  ++bound.left_out;
  labels.set(kLabelsLeftOut, std::to_string(number_in(labels.get(kLabelsLeftOut)) + 1));
  return true;
}

void shorten(Labels& labels, FunctionRef<bool(std::string_view)> needed, LabelsBound& bound) {
  while (bytes_of(labels) > limit::kLabelsBytes) {
    const auto& entries = labels.entries();
    const auto longest = std::max_element(
        entries.begin(), entries.end(),
        [](const auto& a, const auto& b) { return json_bytes(a.second) < json_bytes(b.second); });
    if (longest->second.size() <= kShortestCut) {
      if (!leave_one_out(labels, needed, bound)) return;
      continue;
    }
    const std::string name = longest->first;
    std::string value = longest->second;
    cut(value, std::max(value.size() / 2, kShortestCut));
    labels.set(name, value);
    ++bound.changed;
  }
}

}  // namespace

bool bound_text(std::string& text, std::size_t most) {
  const bool changed = replace_unfit(text, false);
  if (text.size() <= most) return changed;
  cut(text, most);
  return true;
}

bool bound_name(std::string& name, std::size_t most) {
  if (name.empty()) {
    name = kNoName;
    return true;
  }
  const bool changed = replace_unfit(name, true);
  return bound_text(name, most) || changed;
}

std::size_t json_bytes(std::string_view text) noexcept {
  std::size_t out = text.size();
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) out += 5;
    if (c == '"' || c == '\\') out += 1;
  }
  return out;
}

LabelsBound bound_labels(Labels& labels, std::size_t most,
                         FunctionRef<bool(std::string_view)> needed) {
  LabelsBound bound;
  Labels out;
  for (const auto& [given, text] : labels.entries()) {
    std::string name = given;
    std::string value = text;
    if (bound_name(name, limit::kLabelNameBytes)) ++bound.changed;
    if (bound_text(value, limit::kLabelValueBytes)) ++bound.changed;
    out.set(name, value);
  }
  if (bound.changed > 0) labels = std::move(out);
  leave_out(labels, most, needed, bound);
  shorten(labels, needed, bound);
  return bound;
}

LabelsBound bound_run_labels(Labels& labels) {
  return bound_labels(labels, limit::kRunLabels, [](std::string_view) { return false; });
}

}  // namespace tocsin::core
