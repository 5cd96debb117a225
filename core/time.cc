#include "core/time.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace tocsin::core {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Of RFC 3339 only the reading of its digits is ours; the calendar is std::chrono's. No library at hand reads it
// as it is: GCC 12 has no std::chrono::parse; Howard Hinnant's date takes "2026-1-2T3:4:5Z" and "+99:99",
// refuses Z, turns the year 1 into another century silently, and needs a stream, 3 allocations and 21 times
// the instructions; absl::ParseTime takes "2026-1-2T3:4:5Z" and leading spaces and needs 7 times the
// instructions (callgrind, November 2026).
bool digits(std::string_view text, std::size_t at, std::size_t count, int& out) {
  if (at + count > text.size()) return false;
  out = 0;
  for (std::size_t i = at; i < at + count; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    out = out * 10 + (text[i] - '0');
  }
  return true;
}

// Fraction ".ddd" starting at `at`; moves `at` behind it.
bool fraction(std::string_view text, std::size_t& at, std::int64_t& nanos) {
  nanos = 0;
  if (at >= text.size() || text[at] != '.') return true;
  ++at;
  std::int64_t scale = 100'000'000;
  const std::size_t start = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    nanos += (text[at] - '0') * scale;
    scale /= 10;
    ++at;
  }
  return at > start && at - start <= 9;
}

bool offset(std::string_view text, std::size_t at, minutes& out) {
  if (at >= text.size()) return false;
  if ((text[at] == 'Z' || text[at] == 'z') && at + 1 == text.size()) {
    out = minutes{0};
    return true;
  }
  int hour = 0;
  int minute = 0;
  if ((text[at] != '+' && text[at] != '-') || at + 6 != text.size() || text[at + 3] != ':' ||
      !digits(text, at + 1, 2, hour) || !digits(text, at + 4, 2, minute) || hour > 23 ||
      minute > 59) {
    return false;
  }
  out = minutes{(hour * 60 + minute) * (text[at] == '-' ? -1 : 1)};
  return true;
}

constexpr std::array<std::pair<std::string_view, std::int64_t>, 8> kUnits{{
    {"w", 604'800'000'000'000},
    {"d", 86'400'000'000'000},
    {"h", 3'600'000'000'000},
    {"m", 60'000'000'000},
    {"s", 1'000'000'000},
    {"ms", 1'000'000},
    {"us", 1'000},
    {"ns", 1},
}};

}  // namespace

namespace {

/// Puts the last `width` digits of a number at `at`.
void put_digits(char* at, std::int64_t number, int width) {
  for (int place = width; place-- > 0; number /= 10) {
    at[place] = static_cast<char>('0' + number % 10);
  }
}

}  // namespace

// By hand: every record, state and message has several times, and printf was a tenth of the router.
std::string to_rfc3339(WallTime time) {
  const auto [day, passed] = day_and_clock(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss clock{passed};
  const std::int64_t nanos = clock.subseconds().count();
  std::string out = "0000-00-00T00:00:00.000000000";
  char* const text = out.data();
  put_digits(text, static_cast<int>(date.year()), 4);
  put_digits(text + 5, static_cast<unsigned>(date.month()), 2);
  put_digits(text + 8, static_cast<unsigned>(date.day()), 2);
  put_digits(text + 11, clock.hours().count(), 2);
  put_digits(text + 14, clock.minutes().count(), 2);
  put_digits(text + 17, clock.seconds().count(), 2);
  put_digits(text + 20, nanos, 9);
  out.resize(nanos % 1'000'000 == 0 ? 23 : nanos % 1'000 == 0 ? 26 : 29);
  out += 'Z';
  return out;
}

namespace {

struct DateAndClock {
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;

  /// False: the text does not begin with `2006-01-02T15:04:05`.
  bool read(std::string_view text) {
    const bool shape = text.size() >= 20 && text[4] == '-' && text[7] == '-' &&
                       (text[10] == 'T' || text[10] == 't' || text[10] == ' ') && text[13] == ':' &&
                       text[16] == ':';
    return shape && digits(text, 0, 4, year) && digits(text, 5, 2, month) &&
           digits(text, 8, 2, day) && digits(text, 11, 2, hour) && digits(text, 14, 2, minute) &&
           digits(text, 17, 2, second);
  }
  [[nodiscard]] std::chrono::year_month_day date() const {
    return {std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
            std::chrono::day{static_cast<unsigned>(day)}};
  }
  /// Nanoseconds in 64 bits reach from 1677 to 2262.
  [[nodiscard]] bool ok() const {
    return year >= 1678 && year <= 2261 && date().ok() && hour <= 23 && minute <= 59 &&
           second <= 60;
  }
};

}  // namespace

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  DateAndClock read;
  std::size_t at = 19;
  std::int64_t nanos = 0;
  minutes zone{0};
  if (!read.read(text) || !read.ok() || !fraction(text, at, nanos) || !offset(text, at, zone)) {
    return std::nullopt;
  }
  return WallTime{std::chrono::sys_days{read.date()} + hours{read.hour} + minutes{read.minute} +
                  seconds{read.second} + Duration{nanos} - zone};
}

std::string to_text(Duration duration) {
  if (duration.count() == 0) return "0s";
  std::string out;
  std::int64_t rest = duration.count();
  if (rest < 0) {
    out = "-";
    rest = -rest;
  }
  for (const auto& [unit, size] : kUnits) {
    if (unit == "w") continue;  // days read better
    if (const std::int64_t count = rest / size; count > 0) {
      out += std::to_string(count);
      out += unit;
      rest -= count * size;
    }
  }
  return out;
}

std::optional<Duration> parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  double total = 0;
  std::int64_t whole = 0;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc{} || !(number >= 0)) return std::nullopt;  // also "nan"
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    std::size_t letters = 0;
    while (letters < text.size() && text[letters] >= 'a' && text[letters] <= 'z') ++letters;
    const std::string_view name = text.substr(0, letters);
    text.remove_prefix(letters);
    std::int64_t size = 0;
    for (const auto& [unit, length] : kUnits) {
      if (unit == name) size = length;
    }
    if (size == 0) return std::nullopt;
    total += number * static_cast<double>(size);
    if (total > 9.2e18) return std::nullopt;
    whole += static_cast<std::int64_t>(std::llround(number * static_cast<double>(size)));
  }
  return Duration{whole};
}

}  // namespace tocsin::core
