#include "actions/transport/http_date.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <vector>

namespace tocsin::actions {

using core::WallTime;

namespace {

constexpr std::array<std::string_view, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::vector<std::string_view> words(std::string_view text, std::string_view between) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(between), text.size());
    if (end > 0) out.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Digits only; −1: something else.
int digits_of(std::string_view text) {
  int value = -1;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return !text.empty() && text.front() != '-' && read.ec == std::errc{} && read.ptr == end ? value
                                                                                           : -1;
}

std::optional<WallTime> moment(std::string_view year, std::string_view month, std::string_view day,
                               std::string_view clock, WallTime now) {
  namespace chrono = std::chrono;
  const auto name = std::find(kMonths.begin(), kMonths.end(), month);
  const auto time = words(clock, ":");
  if (name == kMonths.end() || time.size() != 3 || clock.size() != 8) return std::nullopt;
  int of_year = digits_of(year);
  if (year.size() == 2 && of_year >= 0) {
    const int this_year =
        static_cast<int>(chrono::year_month_day(chrono::floor<chrono::days>(now)).year());
    of_year += this_year / 100 * 100;
    if (of_year > this_year + 50) of_year -= 100;
  }
  const chrono::year_month_day date{
      chrono::year(of_year), chrono::month(static_cast<unsigned>(name - kMonths.begin()) + 1),
      chrono::day(static_cast<unsigned>(std::max(digits_of(day), 0)))};
  const int hour = digits_of(time[0]);
  const int minute = digits_of(time[1]);
  const int second = digits_of(time[2]);
  const bool sane = of_year >= 1678 && of_year < 2262 && date.ok() && hour >= 0 && hour < 24 &&
                    minute >= 0 && minute < 60 && second >= 0 && second <= 60;
  if (!sane) return std::nullopt;
  return WallTime(chrono::sys_days(date)) + chrono::hours(hour) + chrono::minutes(minute) +
         chrono::seconds(second);
}

}  // namespace

std::optional<WallTime> parse_http_date(std::string_view text, WallTime now) {
  const auto parts = words(text, " ,-");
  if (parts.size() == 6 && parts[5] == "GMT") {
    return moment(parts[3], parts[2], parts[1], parts[4], now);
  }
  if (parts.size() == 5) return moment(parts[4], parts[1], parts[2], parts[3], now);
  return std::nullopt;
}

}  // namespace tocsin::actions
