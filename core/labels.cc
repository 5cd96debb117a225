#include "core/labels.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "core/identity.h"

namespace tocsin::core {
namespace {

std::string hashed_bytes(const Labels& labels, std::string_view without) {
  std::string out;
  for (const auto& [name, value] : labels.entries()) {
    if (name == without) continue;
    out += name;
    out += '\xff';
    out += value;
    out += '\xff';
  }
  return out;
}

bool before(const Labels::Entry& entry, std::string_view name) { return entry.first < name; }

}  // namespace

Labels::Labels(std::initializer_list<Entry> entries) {
  for (const auto& [name, value] : entries) set(name, value);
}

void Labels::set(std::string_view name, std::string_view value) {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  const bool found = at != entries_.end() && at->first == name;
  if (value.empty()) {
    if (found) entries_.erase(at);
  } else if (found) {
    at->second = value;
  } else {
    entries_.insert(at, Entry{name, value});
  }
}

const std::string& Labels::get(std::string_view name) const noexcept {
  static const std::string kAbsent;
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name, before);
  return at != entries_.end() && at->first == name ? at->second : kAbsent;
}

bool Labels::has(std::string_view name) const noexcept { return !get(name).empty(); }

std::string fingerprint(const Labels& labels) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : hashed_bytes(labels, {})) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3ULL;
  }
  std::string text(16, '0');
  for (std::size_t place = text.size(); place-- > 0; hash >>= 4) {
    text[place] = "0123456789abcdef"[hash & 0xf];
  }
  return text;
}

std::string issue_key(const Labels& labels) {
  const auto sum = sha256(hashed_bytes(labels, "severity"));
  return base32(std::span(sum).first<16>());
}

}  // namespace tocsin::core
