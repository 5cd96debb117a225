#include "routing/tables/seen_record.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "core/fields/json_in.h"
#include "core/identity.h"
#include "routing/tables/packed_bytes.h"

namespace tocsin::routing {
namespace {

constexpr std::size_t kMaxSeenBytes = std::size_t{1} << 20;
// A record begins with it; another layout is another number, and this one is read on.
constexpr char kSeenForm = 1;
constexpr std::size_t kSeenSumBytes = 8;

struct SeenRows {
  std::vector<std::pair<std::string, std::int64_t>> seen;  // hash, nanoseconds
};
template <typename A>
void fields(A& io, core::Of<A, SeenRows>& rows) {
  io.rows("seen", rows.seen);
}

/// Of core::base32().
std::optional<SeenEvent::Hash> seen_hash_of(std::string_view text) {
  constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  SeenEvent::Hash out{};
  if (text.size() != (out.size() * 8 + 4) / 5) return std::nullopt;
  std::size_t filled = 0;
  std::uint32_t buffer = 0;
  unsigned bits = 0;
  for (const char letter : text) {
    const std::size_t digit = kAlphabet.find(letter);
    if (digit == std::string_view::npos) return std::nullopt;
    buffer = (buffer << 5) | static_cast<std::uint32_t>(digit);
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    out[filled++] = static_cast<std::uint8_t>(buffer >> bits);
  }
  return out;
}

core::Error not_what_was_seen() { return {core::Code::data_loss, "not what was seen"}; }

core::Result<std::vector<SeenEvent>> seen_from_bytes(std::string_view value) {
  if (value.size() <= kSeenSumBytes) return not_what_was_seen();
  const std::string_view bytes = value.substr(0, value.size() - kSeenSumBytes);
  std::uint64_t sum = 0;
  std::memcpy(&sum, value.data() + bytes.size(), sizeof sum);
  if (core::name_hash(bytes) != sum) return not_what_was_seen();
  BytesIn io(bytes.substr(1));
  std::vector<SeenEvent> out(io.count());
  std::int64_t time = 0;
  for (SeenEvent& one : out) {
    const std::string_view hash = io.raw(one.hash.size());
    std::copy(hash.begin(), hash.end(), one.hash.begin());
    time += unfolded(io.number());
    one.at = core::wall_time(time);
  }
  if (out.empty() || !io.good()) return not_what_was_seen();
  return out;
}

core::Result<std::vector<SeenEvent>> seen_from_text(std::string_view key, std::string_view value) {
  SeenRows rows;
  if (value.starts_with('{')) {
    const core::Status read = core::read_json(value, kMaxSeenBytes, rows);
    if (!read || rows.seen.empty()) return not_what_was_seen();
  } else {
    std::int64_t time = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), time);
    if (error != std::errc{} || end != value.data() + value.size()) return not_what_was_seen();
    rows.seen.emplace_back(key, time);
  }
  std::vector<SeenEvent> out;
  out.reserve(rows.seen.size());
  for (const auto& [text, time] : rows.seen) {
    const auto hash = seen_hash_of(text);
    if (!hash) return not_what_was_seen();
    out.push_back({*hash, core::wall_time(time)});
  }
  return out;
}

}  // namespace

std::string write_seen_record(const std::vector<SeenEvent>& events) {
  std::string out(1, kSeenForm);
  out.reserve(events.size() * (sizeof(SeenEvent::Hash) + 4) + 32);
  BytesOut io(out);
  io.number(events.size());
  std::int64_t before = 0;
  for (const SeenEvent& one : events) {
    io.raw({reinterpret_cast<const char*>(one.hash.data()), one.hash.size()});
    const std::int64_t time = core::nanoseconds(one.at);
    io.number(folded(time - before));
    before = time;
  }
  const std::uint64_t sum = core::name_hash(out);
  out.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return out;
}

core::Result<std::vector<SeenEvent>> read_seen_record(std::string_view key,
                                                      std::string_view value) {
  return value.starts_with(kSeenForm) ? seen_from_bytes(value) : seen_from_text(key, value);
}

}  // namespace tocsin::routing
