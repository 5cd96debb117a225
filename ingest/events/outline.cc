#include "ingest/events/outline.h"

#include <xxhash.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "core/json.h"
#include "ingest/events/envelope.h"
#include "ingest/events/plain_text.h"

namespace tocsin::ingest {
namespace {

constexpr std::ptrdiff_t kMostDigits = 18;  // an integer holds them, whatever they are
constexpr std::ptrdiff_t kMostFraction = 24;
constexpr std::ptrdiff_t kMostExponent = 2;  // a double holds it

/// What may stand in one place and in another event be another one of its kind.
enum class Free { nothing, text, time, whole, number };
enum class Place { elsewhere, data, annotations, stages, evidence, values };

struct Inside {
  Place place = Place::elsewhere;
  Free free = Free::nothing;
};

constexpr bool digit(char c) noexcept { return c >= '0' && c <= '9'; }

std::uint64_t eight(const char* bytes) noexcept {
  std::uint64_t out = 0;
  std::memcpy(&out, bytes, sizeof out);
  return out;
}

/// In place, as the length is known: a comparison of texts of any length is a call.
template <std::size_t kSize>
bool is(std::string_view key, const char (&name)[kSize]) noexcept {
  return key.size() == kSize - 1 && std::memcmp(key.data(), name, kSize - 1) == 0;
}

Inside under_data(std::string_view key) noexcept {
  switch (key.size()) {
    case 4:
      if (is(key, "step")) return {Place::elsewhere, Free::whole};
      break;
    case 5:
      if (is(key, "epoch")) return {Place::elsewhere, Free::whole};
      break;
    case 6:
      if (is(key, "stages")) return {Place::stages};
      break;
    case 8:
      if (is(key, "evidence")) return {Place::evidence};
      break;
    case 11:
      if (is(key, "global_step")) return {Place::elsewhere, Free::whole};
      if (is(key, "annotations")) return {Place::annotations};
      break;
    default:
      break;
  }
  return {};
}

Inside under_stages(std::string_view key) noexcept {
  const bool time = is(key, "measured_at") || is(key, "published_at") || is(key, "evaluated_at");
  return {Place::elsewhere, time ? Free::time : Free::nothing};
}

/// A name of the evidence means the same at every depth of it: wherever fields() reads such a name,
/// any value of the kind that is free there will do.
Inside under_evidence(std::string_view key) noexcept {
  constexpr Inside kWhole{Place::evidence, Free::whole};
  constexpr Inside kTime{Place::evidence, Free::time};
  switch (key.size()) {
    case 3:
      if (is(key, "hit")) return kWhole;
      break;
    case 4:
      if (is(key, "last")) return kWhole;
      break;
    case 5:
      if (is(key, "value")) return {Place::evidence, Free::number};
      if (is(key, "first")) return kWhole;
      break;
    case 6:
      if (is(key, "values")) return {Place::values};
      if (is(key, "points")) return kWhole;
      break;
    case 9:
      if (is(key, "last_time")) return kTime;
      if (is(key, "evaluated")) return kWhole;
      break;
    case 10:
      if (is(key, "first_time") || is(key, "first_seen")) return kTime;
      break;
    case 11:
      if (is(key, "occurrences")) return kWhole;
      break;
    default:
      break;
  }
  return {Place::evidence};
}

/// What stands under `key`. By their lengths first: most names are none of these.
Inside under(Place place, std::string_view key) noexcept {
  switch (place) {
    case Place::elsewhere:
      break;
    case Place::data:
      return under_data(key);
    case Place::annotations:
      return {Place::elsewhere, Free::text};
    case Place::stages:
      return under_stages(key);
    case Place::evidence:
      return under_evidence(key);
    case Place::values:
      return {Place::values, Free::number};
  }
  return {};
}

/// Of this century, before the 29th, as to_rfc3339() writes it: parse_rfc3339() takes it, and need
/// not be asked. An issue has seven times, and reading them was a fifth of its outline.
bool usual_time(std::string_view text) noexcept {
  static constexpr std::string_view kZero = "2000-00-00T00:00:00.000000000Z";
  // What makes a byte of a difference reach 0x80: ten where a digit stands (but for the century's),
  // else one.
  static constexpr auto kReach = [] {
    std::array<char, kZero.size()> reach{};
    for (std::size_t i = 0; i < kZero.size(); ++i)
      reach[i] = i >= 2 && digit(kZero[i]) ? 0x76 : 0x7f;
    return reach;
  }();
  if (text.size() != kZero.size()) return false;
  std::uint64_t wrong = 0;
  for (const std::size_t at : {std::size_t{0}, std::size_t{8}, std::size_t{16}, kZero.size() - 8}) {
    const std::uint64_t apart = eight(&text[at]) ^ eight(&kZero[at]);
    wrong |= apart | (apart + eight(&kReach[at]));
  }
  const auto two = [text](std::size_t at) { return (text[at] - '0') * 10 + text[at + 1] - '0'; };
  const int month = two(5);
  const int day = two(8);
  return (wrong & 0x8080'8080'8080'8080U) == 0 && month >= 1 && month <= 12 && day >= 1 &&
         day <= 28 && two(11) <= 23 && text[14] <= '5' && text[17] <= '5';
}

bool is_time(std::string_view text) noexcept {
  return usual_time(text) || core::parse_rfc3339(text).has_value();
}

/// Copies a text of JSON without what is free in it. Two texts of which it copies the same have the
/// same shape: both are JSON that fields() takes, or neither is.
///
/// Each reader is given the place where something begins and returns the one behind it. null: there
/// is none, or it needs care. Places are arguments, and so stay in registers.
class Copy {
 public:
  Copy(std::string_view text, std::string& kept)
      : from_(text.data()), end_(text.data() + text.size()), kept_(kept) {}

  /// False: it needs care.
  bool whole() {
    const char* at = behind_space(from_);
    if (at == end_ || *at != '{') return false;
    at = object(at, Place::data, 0);
    if (at == nullptr || behind_space(at) != end_) return false;
    kept_.append(from_, end_);
    return true;
  }
  [[nodiscard]] std::optional<core::WallTime> starts_at() const { return starts_at_; }

 private:
  const char* behind_space(const char* at) const noexcept {
    while (at != end_ && *at <= ' ' && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) {
      ++at;
    }
    return at;
  }
  /// Moves behind `c` and the space before it. False: something else is there.
  bool take(const char*& at, char c) const noexcept {
    if (at == end_ || *at != c) at = behind_space(at);
    if (at == end_ || *at != c) return false;
    ++at;
    return true;
  }
  /// Instead of what stands from `begin` to `at`. No text of JSON has such a byte where a value is.
  const char* leave_out(const char* begin, const char* at, Free free) {
    kept_.append(from_, begin);
    kept_ += static_cast<char>(free);
    return from_ = at;
  }

  const char* value(const char* at, Inside inside, std::size_t depth) {
    at = behind_space(at);
    if (at == end_) return nullptr;
    const char first = *at;
    if (first == '"') return text(at, inside.free);
    if (first == '{' || first == '[') {
      if (inside.place == Place::elsewhere) return nothing_free(at);
      return first == '{' ? object(at, inside.place, depth) : list(at, inside, depth);
    }
    if (first == '-' || digit(first)) return number(at, inside.free);
    if (first < 'a' || first > 'z') return nullptr;
    while (at != end_ && *at >= 'a' && *at <= 'z') ++at;
    return at;
  }

  /// An object or a list where nothing is free: to the bracket that closes it. Whether it is JSON
  /// need not be known, as all of it is copied.
  const char* nothing_free(const char* at) const noexcept {
    std::size_t open = 0;
    while (at != end_) {
      const char c = *at;
      if (c == '"') {
        at = any_text(at);
        if (at == nullptr) return nullptr;
        continue;
      }
      ++at;
      if (c == '{' || c == '[') ++open;
      if ((c == '}' || c == ']') && --open == 0) return at;
    }
    return nullptr;
  }

  const char* object(const char* at, Place place, std::size_t depth) {
    if (depth == core::kMaxJsonDepth) return nullptr;
    ++at;
    if (take(at, '}')) return at;
    do {
      at = behind_space(at);
      const char* const begin = at + 1;
      at = plain_text(at);
      if (at == nullptr) return nullptr;
      const std::string_view key(begin, static_cast<std::size_t>(at - begin - 1));
      if (!take(at, ':')) return nullptr;
      if (place == Place::data && is(key, "ends_at") && !is_null(at)) return nullptr;
      const bool start = place == Place::data && is(key, "starts_at");
      at = start ? start_time(at) : value(at, under(place, key), depth + 1);
      if (at == nullptr) return nullptr;
    } while (take(at, ','));
    return take(at, '}') ? at : nullptr;
  }

  /// What is free under a name is free in its list only where everything is.
  const char* list(const char* at, Inside inside, std::size_t depth) {
    if (depth == core::kMaxJsonDepth) return nullptr;
    if (inside.place != Place::values) inside.free = Free::nothing;
    ++at;
    if (take(at, ']')) return at;
    do {
      at = value(at, inside, depth + 1);
      if (at == nullptr) return nullptr;
    } while (take(at, ','));
    return take(at, ']') ? at : nullptr;
  }

  /// Whether an end fits depends on the start.
  bool is_null(const char* at) const noexcept {
    at = behind_space(at);
    return at != end_ && *at == 'n';
  }

  /// Once, as a time that can be read.
  const char* start_time(const char* at) {
    const char* const begin = behind_space(at);
    at = plain_text(begin);
    if (at == nullptr || starts_at_) return nullptr;
    starts_at_ = core::parse_rfc3339(inside_of(begin, at));
    return starts_at_ ? leave_out(begin, at, Free::time) : nullptr;
  }

  /// Without its quotes.
  static std::string_view inside_of(const char* begin, const char* behind) noexcept {
    return {begin + 1, static_cast<std::size_t>(behind - begin - 2)};
  }

  /// In printable ASCII without a backslash.
  const char* plain_text(const char* at) const noexcept {
    if (at == end_ || *at != '"') return nullptr;
    at = past_plain(at + 1, end_);
    return at != end_ && *at == '"' ? at + 1 : nullptr;
  }

  /// Whatever is in it.
  const char* any_text(const char* at) const noexcept {
    ++at;
    while (at = past_plain(at, end_), at != end_ && *at != '"') {
      at += *at == '\\' && at + 1 != end_ ? 2 : 1;
    }
    return at != end_ ? at + 1 : nullptr;
  }

  const char* text(const char* begin, Free free) {
    if (free == Free::text || free == Free::time) {
      if (const char* const at = plain_text(begin)) {
        const bool fits = free == Free::text || is_time(inside_of(begin, at));
        return fits ? leave_out(begin, at, free) : at;
      }
    }
    return any_text(begin);
  }

  /// Behind as many as there are.
  const char* digits(const char* at) const noexcept {
    while (at != end_ && digit(*at)) ++at;
    return at;
  }

  /// False: every double holds it, or there is none. Moves behind what it looked at.
  bool too_fine(const char*& at) const noexcept {
    const auto none_or_more_than = [&](std::ptrdiff_t most) {
      const char* const begin = at;
      at = digits(at);
      return at == begin || at - begin > most;
    };
    if (at != end_ && *at == '.') {
      ++at;
      if (none_or_more_than(kMostFraction)) return true;
    }
    if (at == end_ || (*at != 'e' && *at != 'E')) return false;
    ++at;
    if (at != end_ && (*at == '+' || *at == '-')) ++at;
    return none_or_more_than(kMostExponent);
  }

  const char* number(const char* begin, Free free) {
    const char* at = begin;
    const bool minus = *at == '-';
    if (minus) ++at;
    const char* const first = at;
    at = digits(at);
    const std::ptrdiff_t count = at - first;
    bool fits = count > 0 && count <= kMostDigits && !(*first == '0' && count > 1);
    if (free == Free::number) fits = fits && !too_fine(at);
    if (free == Free::whole) fits = fits && !minus;
    const char* const behind = at;
    while (at != end_ &&
           (digit(*at) || *at == '.' || *at == 'e' || *at == 'E' || *at == '+' || *at == '-')) {
      ++at;
    }
    const bool is_free = free == Free::whole || free == Free::number;
    return is_free && fits && at == behind ? leave_out(begin, at, free) : at;
  }

  const char* from_;  // what is to be kept next
  const char* const end_;
  std::string& kept_;
  std::optional<core::WallTime> starts_at_;
};

void add(std::string& kept, std::string_view attribute) {
  const std::uint64_t size = attribute.size();
  kept.append(reinterpret_cast<const char*>(&size), sizeof size);
  kept.append(attribute);
}

}  // namespace

std::optional<EventOutline> outline_of(const core::RecordView& record, const EventLimits& limits) {
  const auto header = [&](std::string_view name) {
    return record.header(name).value_or(std::string_view{});
  };
  if (record.tombstone || header("ce_type") != event_type::kIssue) return std::nullopt;
  if (header("content-type") != "application/json") return std::nullopt;
  if (header("ce_specversion") != "1.0") return std::nullopt;
  const std::string_view text = record.text();
  if (text.size() > limits.event_bytes) return std::nullopt;
  EventOutline out;
  out.source = header("ce_source");
  out.id = header("ce_id");
  if (out.source.empty() || out.id.empty()) return std::nullopt;
  out.sequence = parse_sequence(header("ce_sequence")).value_or(0);
  if (const std::string_view time = header("ce_time"); !time.empty()) {
    out.time = core::parse_rfc3339(time);
    if (!out.time) return std::nullopt;
  }
  thread_local std::string kept;  // for the next one too: no memory is taken for each
  kept.clear();
  Copy copy(text, kept);
  if (!copy.whole()) return std::nullopt;
  out.starts_at = copy.starts_at();
  add(kept, out.source);
  add(kept, header("ce_subject"));
  const XXH128_hash_t sum = XXH3_128bits(kept.data(), kept.size());
  out.rest = {sum.low64, sum.high64};
  return out;
}

}  // namespace tocsin::ingest
