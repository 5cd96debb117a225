#include "ingest/events/outline.h"

#include <xxhash.h>

#include <string>

#include "core/json.h"
#include "ingest/events/envelope.h"

namespace tocsin::ingest {
namespace {

constexpr std::size_t kMostDigits = 18;  // an integer holds them, whatever they are
constexpr std::size_t kMostFraction = 24;
constexpr std::size_t kMostExponent = 2;  // a double holds it

/// What may stand in one place and in another event be another one of its kind.
enum class Free { nothing, text, time, whole, number };
enum class Place { elsewhere, data, annotations, stages, evidence, values };

struct Inside {
  Place place = Place::elsewhere;
  Free free = Free::nothing;
};

bool digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool any_of(std::string_view key, std::initializer_list<std::string_view> keys) noexcept {
  for (const std::string_view one : keys) {
    if (one == key) return true;
  }
  return false;
}

/// What stands under `key`. A name of the evidence means the same at every depth of it: wherever
/// fields() reads such a name, any value of the kind that is free there will do.
Inside under(Place place, std::string_view key) noexcept {
  switch (place) {
    case Place::elsewhere:
      break;
    case Place::data:
      if (any_of(key, {"step", "global_step", "epoch"})) return {Place::elsewhere, Free::whole};
      if (key == "starts_at") return {Place::elsewhere, Free::time};
      if (key == "annotations") return {Place::annotations};
      if (key == "stages") return {Place::stages};
      if (key == "evidence") return {Place::evidence};
      break;
    case Place::annotations:
      return {Place::elsewhere, Free::text};
    case Place::stages:
      if (any_of(key, {"measured_at", "published_at", "evaluated_at"})) {
        return {Place::elsewhere, Free::time};
      }
      break;
    case Place::evidence:
      if (key == "value") return {Place::evidence, Free::number};
      if (any_of(key, {"first", "last", "points", "occurrences", "hit", "evaluated"})) {
        return {Place::evidence, Free::whole};
      }
      if (any_of(key, {"first_time", "last_time", "first_seen"})) {
        return {Place::evidence, Free::time};
      }
      return {key == "values" ? Place::values : Place::evidence};
    case Place::values:
      return {Place::values, Free::number};
  }
  return {};
}

/// Copies a text of JSON without what is free in it. Two texts of which it copies the same have the
/// same shape: both are JSON that fields() takes, or neither is.
class Copy {
 public:
  Copy(std::string_view text, std::string& kept)
      : at_(text.data()), from_(text.data()), end_(text.data() + text.size()), kept_(kept) {}

  /// False: it needs care.
  bool whole() {
    skip_space();
    if (at_ == end_ || *at_ != '{' || !value({Place::data}, 0)) return false;
    skip_space();
    keep();
    return at_ == end_;
  }
  [[nodiscard]] std::optional<core::WallTime> starts_at() const { return starts_at_; }

 private:
  void skip_space() noexcept {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool take(char c) noexcept {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  void keep() {
    kept_.append(from_, at_);
    from_ = at_;
  }
  /// Instead of what stands from `begin` to here. No text of JSON has such a byte where a value is.
  void leave_out(const char* begin, Free free) {
    kept_.append(from_, begin);
    kept_ += static_cast<char>(free);
    from_ = at_;
  }

  bool value(Inside inside, std::size_t depth) {
    skip_space();
    if (at_ == end_) return false;
    const char first = *at_;
    if (first == '"') return text(inside.free);
    if (first == '{') return object(inside.place, depth);
    if (first == '[') return list(inside, depth);
    if (first == '-' || digit(first)) return number(inside.free);
    if (first < 'a' || first > 'z') return false;
    while (at_ != end_ && *at_ >= 'a' && *at_ <= 'z') ++at_;
    return true;
  }

  bool object(Place place, std::size_t depth) {
    if (depth == core::kMaxJsonDepth) return false;
    ++at_;
    skip_space();
    if (take('}')) return true;
    do {
      skip_space();
      const auto key = plain_text();
      if (!key) return false;
      skip_space();
      if (!take(':')) return false;
      if (place == Place::data && *key == "ends_at" && !is_null()) return false;
      const bool start = place == Place::data && *key == "starts_at";
      if (start ? !start_time() : !value(under(place, *key), depth + 1)) return false;
      skip_space();
    } while (take(','));
    return take('}');
  }

  /// What is free under a name is free in its list only where everything is.
  bool list(Inside inside, std::size_t depth) {
    if (depth == core::kMaxJsonDepth) return false;
    if (inside.place != Place::values) inside.free = Free::nothing;
    ++at_;
    skip_space();
    if (take(']')) return true;
    do {
      if (!value(inside, depth + 1)) return false;
      skip_space();
    } while (take(','));
    return take(']');
  }

  /// Whether an end fits depends on the start.
  bool is_null() noexcept {
    skip_space();
    return at_ != end_ && *at_ == 'n';
  }

  /// Once, as a time that can be read.
  bool start_time() {
    skip_space();
    const char* const begin = at_;
    const auto found = plain_text();
    if (!found || starts_at_) return false;
    starts_at_ = core::parse_rfc3339(*found);
    if (starts_at_) leave_out(begin, Free::time);
    return starts_at_.has_value();
  }

  /// In printable ASCII without a backslash. nullopt: another one, or none; the place is as before.
  std::optional<std::string_view> plain_text() noexcept {
    if (at_ == end_ || *at_ != '"') return std::nullopt;
    const char* const begin = at_ + 1;
    const char* to = begin;
    while (to != end_ && *to >= 0x20 && *to < 0x7f && *to != '"' && *to != '\\') ++to;
    if (to == end_ || *to != '"') return std::nullopt;
    at_ = to + 1;
    return std::string_view(begin, static_cast<std::size_t>(to - begin));
  }

  bool text(Free free) {
    const char* const begin = at_;
    if (free == Free::text || free == Free::time) {
      if (const auto found = plain_text()) {
        if (free == Free::text || core::parse_rfc3339(*found)) leave_out(begin, free);
        return true;
      }
    }
    ++at_;
    while (at_ != end_ && *at_ != '"') at_ += *at_ == '\\' && at_ + 1 != end_ ? 2 : 1;
    return take('"');
  }

  std::size_t digits() noexcept {
    const char* const begin = at_;
    while (at_ != end_ && digit(*at_)) ++at_;
    return static_cast<std::size_t>(at_ - begin);
  }
  /// True: none, or one that every double holds.
  bool fraction_and_exponent() noexcept {
    if (take('.')) {
      const std::size_t count = digits();
      if (count == 0 || count > kMostFraction) return false;
    }
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      const std::size_t count = digits();
      if (count == 0 || count > kMostExponent) return false;
    }
    return true;
  }

  bool number(Free free) {
    const char* const begin = at_;
    const bool minus = take('-');
    const bool zero = at_ != end_ && *at_ == '0';
    const std::size_t count = digits();
    bool fits = count > 0 && count <= kMostDigits && !(zero && count > 1);
    if (free == Free::number) fits = fits && fraction_and_exponent();
    if (free == Free::whole) fits = fits && !minus;
    const char* const behind = at_;
    while (at_ != end_ && (digit(*at_) || *at_ == '.' || *at_ == 'e' || *at_ == 'E' ||
                           *at_ == '+' || *at_ == '-')) {
      ++at_;
    }
    const bool is_free = free == Free::whole || free == Free::number;
    if (is_free && fits && at_ == behind) leave_out(begin, free);
    return true;
  }

  const char* at_;
  const char* from_;  // what is to be kept next
  const char* end_;
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
