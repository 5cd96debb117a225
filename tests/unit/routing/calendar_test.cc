// When a time interval holds: boundaries, month ends, and clocks that are put forward and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "routing/routing.h"

namespace tocsin::routing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

core::WallTime utc(const std::string& text) { return *core::parse_rfc3339(text + "Z"); }

Calendar calendar_of(const TimeWindow& window) {
  auto made = Calendar::compile({window});
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return *made;
}

struct Moment {
  std::string at;  // UTC
  bool holds;
};
void expect_all(const TimeWindow& window, const std::vector<Moment>& moments) {
  const Calendar calendar = calendar_of(window);
  for (const Moment& moment : moments) {
    EXPECT_EQ(calendar.holds(utc(moment.at)), moment.holds) << moment.at;
  }
}

TimeWindow clock(const std::string& start, const std::string& end, const std::string& location) {
  TimeWindow out;
  out.times = {{start, end}};
  out.location = location;
  return out;
}

TEST(Calendar, AnEndIsNotIncludedAndMidnightIsOne) {
  expect_all(clock("09:00", "17:30", ""), {{"2026-01-05T08:59:59.999", false},
                                           {"2026-01-05T09:00:00", true},
                                           {"2026-01-05T17:29:59.999", true},
                                           {"2026-01-05T17:30:00", false}});
  expect_all(clock("20:00", "24:00", ""), {{"2026-01-05T19:59:59", false},
                                           {"2026-01-05T23:59:59.999999999", true},
                                           {"2026-01-06T00:00:00", false}});
  expect_all(clock("00:00", "00:01", ""),
             {{"2026-01-05T00:00:59", true}, {"2026-01-05T00:01:00", false}});
}

TEST(Calendar, WeeksBeginOnSunday) {
  TimeWindow window;
  window.weekdays = {"sunday:tuesday", "Friday"};
  expect_all(window, {{"2026-01-03T23:59:59", false},  // Saturday
                      {"2026-01-04T00:00:00", true},   // Sunday
                      {"2026-01-06T23:59:59", true},
                      {"2026-01-07T00:00:00", false},
                      {"2026-01-09T12:00:00", true},
                      {"2026-01-10T12:00:00", false}});
}

TEST(Calendar, DaysCountFromEitherEndOfTheMonth) {
  const auto on = [](const std::string& entry, const std::string& day) {
    TimeWindow window;
    window.days_of_month = {entry};
    return calendar_of(window).holds(utc(day + "T12:00:00"));
  };
  EXPECT_TRUE(on("-1", "2026-01-31"));
  EXPECT_TRUE(on("-1", "2026-02-28"));
  EXPECT_FALSE(on("-1", "2028-02-28"));
  EXPECT_TRUE(on("-1", "2028-02-29"));
  EXPECT_TRUE(on("-1", "2026-04-30"));
  EXPECT_FALSE(on("-2", "2026-04-30"));
  EXPECT_TRUE(on("-2", "2026-04-29"));
  EXPECT_TRUE(on("-31", "2026-01-01"));
  EXPECT_FALSE(on("-31", "2026-04-01")) << "April has no 31st day from its end";
  EXPECT_TRUE(on("-31:-1", "2026-04-01")) << "a range is clamped to the month";
  EXPECT_TRUE(on("1:-1", "2026-02-28"));
  EXPECT_TRUE(on("27:31", "2026-02-28"));
  EXPECT_FALSE(on("29:31", "2026-02-28")) << "a range that begins after the month never holds";
  EXPECT_TRUE(on("29:31", "2028-02-29"));
  EXPECT_FALSE(on("31", "2026-04-30"));
  for (int back = 1; back <= 31; ++back) {
    const std::string day = std::to_string(32 - back);
    EXPECT_TRUE(
        on("-" + std::to_string(back), "2026-03-" + std::string(2 - day.size(), '0') + day));
  }
}

TEST(Calendar, MonthsAndYearsAreOfTheLocalDay) {
  TimeWindow window;
  window.months = {"december", "1:2"};
  window.years = {"2026:2027"};
  window.location = "Asia/Tokyo";  // nine hours ahead
  expect_all(window, {{"2025-12-31T14:59:59", false},
                      {"2025-12-31T15:00:00", true},
                      {"2026-02-28T14:59:59", true},
                      {"2026-02-28T15:00:00", false},
                      {"2026-11-30T15:00:00", true},
                      {"2027-12-31T14:59:59", true},
                      {"2027-12-31T15:00:00", false}});
}

TEST(Calendar, ClocksThatAreSetKeepTheLocalTime) {
  // Berlin: +1 h in winter, +2 h in summer; set at 01:00 UTC on 2026-03-29 and 2026-10-25.
  const TimeWindow night = clock("00:00", "08:00", "Europe/Berlin");
  expect_all(night, {{"2026-03-28T06:59:59", true},
                     {"2026-03-28T07:00:00", false},
                     {"2026-03-28T22:59:59", false},
                     {"2026-03-28T23:00:00", true},
                     {"2026-03-29T05:59:59", true},
                     {"2026-03-29T06:00:00", false},
                     {"2026-10-24T22:00:00", true},
                     {"2026-10-25T06:59:59", true},
                     {"2026-10-25T07:00:00", false}});
  // The hour that is left out never comes; the one that comes twice holds twice.
  const TimeWindow hour = clock("02:00", "03:00", "Europe/Berlin");
  expect_all(hour, {{"2026-03-29T00:59:59", false},
                    {"2026-03-29T01:00:00", false},
                    {"2026-10-24T23:59:59", false},
                    {"2026-10-25T00:00:00", true},
                    {"2026-10-25T00:59:59", true},
                    {"2026-10-25T01:00:00", true},
                    {"2026-10-25T01:59:59", true},
                    {"2026-10-25T02:00:00", false}});
  // Sydney: back at 16:00 UTC on 2026-04-04, forward at 16:00 UTC on 2026-10-03.
  const TimeWindow south = clock("02:00", "03:00", "Australia/Sydney");
  expect_all(south, {{"2026-04-04T14:59:59", false},
                     {"2026-04-04T15:00:00", true},
                     {"2026-04-04T16:59:59", true},
                     {"2026-04-04T17:00:00", false},
                     {"2026-10-03T15:59:59", false},
                     {"2026-10-03T16:00:00", false},
                     {"2026-10-04T15:00:00", true}});
}

TEST(Calendar, TheNextChangeIsFoundAcrossClocksAndYears) {
  const auto next = [](const TimeWindow& window, const std::string& at) {
    const auto change = calendar_of(window).next_change(utc(at), utc(at) + 24h * 400);
    return change ? core::to_rfc3339(*change) : "never";
  };
  const TimeWindow hour = clock("02:00", "03:00", "Europe/Berlin");
  EXPECT_EQ(next(hour, "2026-03-28T02:00:00"), "2026-03-30T00:00:00.000Z")
      << "29 March has no 02:00";
  EXPECT_EQ(next(hour, "2026-10-25T00:00:00"), "2026-10-25T02:00:00.000Z");
  TimeWindow leap;
  leap.days_of_month = {"29"};
  leap.months = {"february"};
  EXPECT_EQ(next(leap, "2027-12-01T00:00:00"), "2028-02-29T00:00:00.000Z");
  EXPECT_EQ(next(leap, "2028-02-29T12:00:00"), "2028-03-01T00:00:00.000Z");
  TimeWindow past;
  past.years = {"2020"};
  EXPECT_EQ(next(past, "2026-01-01T00:00:00"), "never");
}

TEST(Calendar, HoldsWhileOneOfItsWindowsDoes) {
  const auto made = Calendar::compile({clock("20:00", "24:00", ""), clock("00:00", "08:00", "")});
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->holds(utc("2026-01-05T23:00:00")));
  EXPECT_TRUE(made->holds(utc("2026-01-06T07:00:00")));
  EXPECT_FALSE(made->holds(utc("2026-01-06T08:00:00")));
  EXPECT_EQ(made->next_change(utc("2026-01-05T20:00:00"), utc("2026-01-09T00:00:00")),
            utc("2026-01-06T08:00:00"))
      << "midnight between the two changes nothing";
}

TEST(Calendar, EachMistakeNamesItsEntryAndWhatWasMeant) {
  const auto says = [](const TimeWindow& window) {
    std::string out;
    for (const WindowFault& fault : faults_of(window))
      out += fault.path + ": " + fault.message + "\n";
    return out;
  };
  EXPECT_EQ(says({}), "");
  EXPECT_THAT(says(clock("8:00", "24:00", "")),
              StartsWith("times[0].start: expected a time of day"));
  EXPECT_THAT(says(clock("24:00", "24:00", "")), HasSubstr("times[0].start"));
  EXPECT_THAT(says(clock("08:00", "24:01", "")), HasSubstr("times[0].end: expected a time of day"));
  EXPECT_THAT(says(clock("08:60", "09:00", "")), HasSubstr("times[0].start"));
  EXPECT_THAT(says(clock("20:00", "08:00", "")),
              HasSubstr("over midnight write two entries: 20:00 to 24:00, and 00:00 to 08:00"));
  EXPECT_THAT(says(clock("08:00", "09:00", "Europe/Berln")),
              HasSubstr("did you mean \"Europe/Berlin\"?"));
  EXPECT_THAT(says(clock("08:00", "09:00", "berlin")),
              HasSubstr("did you mean \"Europe/Berlin\"?"));
  for (const char* path : {"/etc/passwd", "../../etc/passwd", "localtime", "file:/etc/localtime"}) {
    EXPECT_THAT(says(clock("08:00", "09:00", path)), HasSubstr("there is no time zone")) << path;
  }
  TimeWindow window;
  window.weekdays = {"monday", "mon", "saturday:sunday", "thurday"};
  window.days_of_month = {"0", "32", "5:3", "-3:2", "x"};
  window.months = {"13", "jan", "november:january"};
  window.years = {"26", "2027:2026"};
  std::vector<std::string> paths;
  for (const WindowFault& fault : faults_of(window)) paths.push_back(fault.path);
  EXPECT_THAT(paths, ElementsAre("weekdays[1]", "weekdays[2]", "weekdays[3]", "days_of_month[0]",
                                 "days_of_month[1]", "days_of_month[2]", "days_of_month[3]",
                                 "days_of_month[4]", "months[0]", "months[1]", "months[2]",
                                 "years[0]", "years[1]"));
  EXPECT_THAT(says(window), HasSubstr("did you mean \"monday\"?"));
  EXPECT_THAT(says(window), HasSubstr("did you mean \"thursday\"?"));
  EXPECT_THAT(says(window), HasSubstr("did you mean \"january\"?"));
  EXPECT_THAT(Calendar::compile({{}, window}).error().message,
              StartsWith("interval 2, weekdays[1]: "));
}

// ---- an evaluator that knows nothing of the other: offsets by the rules as they are published, the
// calendar of std::chrono, and a look at each minute

using Days = std::chrono::sys_days;

Days sunday(int year, unsigned month, bool last, unsigned nth) {
  using namespace std::chrono;
  const auto y = std::chrono::year(year);
  if (last) return Days(y / std::chrono::month(month) / Sunday[std::chrono::last]);
  return Days(y / std::chrono::month(month) / Sunday[nth]);
}

std::chrono::minutes slow_offset(const std::string& zone, core::WallTime at) {
  using std::chrono::hours;
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const int year = static_cast<int>(std::chrono::year_month_day(day).year());
  if (zone == "Europe/Berlin") {
    const bool summer =
        at >= sunday(year, 3, true, 0) + hours(1) && at < sunday(year, 10, true, 0) + hours(1);
    return summer ? hours(2) : hours(1);
  }
  if (zone == "Australia/Sydney") {
    const bool winter =
        at >= sunday(year, 4, false, 1) - hours(8) && at < sunday(year, 10, false, 1) - hours(8);
    return winter ? hours(10) : hours(11);
  }
  return hours(0);
}

struct Numbers {
  std::vector<std::pair<int, int>> times, weekdays, days, months, years;
  std::string zone;
};

bool slow_holds(const Numbers& numbers, core::WallTime at) {
  const auto local = at + slow_offset(numbers.zone, at);
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date(day);
  const int minute =
      static_cast<int>(std::chrono::duration_cast<std::chrono::minutes>(local - day).count());
  const int length = static_cast<int>(unsigned(
      std::chrono::year_month_day_last(date.year() / date.month() / std::chrono::last).day()));
  const auto any = [](const std::vector<std::pair<int, int>>& spans, auto&& is) {
    if (spans.empty()) return true;
    bool out = false;
    for (const auto& span : spans) out = out || is(span.first, span.second);
    return out;
  };
  const auto among = [](int value) {
    return [value](int from, int to) { return from <= value && value <= to; };
  };
  const int of_month = static_cast<int>(unsigned(date.day()));
  const auto in_month = [&](int from, int to) {
    if (from > length) return false;
    std::vector<bool> marked(static_cast<std::size_t>(length) + 1);
    const int begin = from < 0 ? length + from + 1 : from;
    const int end = to < 0 ? length + to + 1 : to;
    for (int i = 1; i <= length; ++i) marked[static_cast<std::size_t>(i)] = i >= begin && i <= end;
    return static_cast<bool>(marked[static_cast<std::size_t>(of_month)]);
  };
  return any(numbers.times, [&](int from, int to) { return from <= minute && minute < to; }) &&
         any(numbers.weekdays, among(static_cast<int>(std::chrono::weekday(day).c_encoding()))) &&
         any(numbers.days, in_month) &&
         any(numbers.months, among(static_cast<int>(unsigned(date.month())))) &&
         any(numbers.years, among(static_cast<int>(date.year())));
}

class Chance {
 public:
  explicit Chance(unsigned seed) : engine_(seed) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool one_in(int of) { return between(1, of) == 1; }
  std::vector<std::pair<int, int>> spans(int low, int high) {
    std::vector<std::pair<int, int>> out;
    for (int i = between(0, 2); i > 0; --i) {
      int from = between(low, high);
      int to = between(low, high);
      if (from > to) std::swap(from, to);
      out.emplace_back(from, to);
    }
    return out;
  }

 private:
  std::mt19937 engine_;
};

Numbers random_numbers(Chance& chance) {
  Numbers out;
  for (auto [from, to] : chance.spans(0, 1439)) out.times.emplace_back(from, to + 1);
  if (chance.one_in(2)) out.weekdays = chance.spans(0, 6);
  if (chance.one_in(2)) out.days = chance.spans(1, 31);
  if (chance.one_in(3)) {
    for (auto [from, to] : chance.spans(1, 31)) out.days.emplace_back(-to, -from);
  }
  if (chance.one_in(3)) out.months = chance.spans(1, 12);
  if (chance.one_in(3)) out.years = chance.spans(2025, 2029);
  const std::array<const char*, 3> zones{"", "Europe/Berlin", "Australia/Sydney"};
  out.zone = zones.at(static_cast<std::size_t>(chance.between(0, 2)));
  return out;
}

TimeWindow written(const Numbers& numbers) {
  constexpr std::array<const char*, 7> kDays{"sunday",   "monday", "tuesday", "wednesday",
                                             "thursday", "friday", "saturday"};
  const auto ranges = [](const std::vector<std::pair<int, int>>& spans, auto&& word) {
    std::vector<std::string> out;
    for (const auto& span : spans) {
      out.push_back(span.first == span.second ? word(span.first)
                                              : word(span.first) + ":" + word(span.second));
    }
    return out;
  };
  const auto number = [](int value) { return std::to_string(value); };
  const auto hhmm = [](int minutes) {
    const auto two = [](int value) { return (value < 10 ? "0" : "") + std::to_string(value); };
    return two(minutes / 60) + ":" + two(minutes % 60);
  };
  TimeWindow out;
  for (const auto& span : numbers.times) out.times.push_back({hhmm(span.first), hhmm(span.second)});
  out.weekdays = ranges(numbers.weekdays, [&](int day) {
    return std::string(kDays.at(static_cast<std::size_t>(day)));
  });
  out.days_of_month = ranges(numbers.days, number);
  out.months = ranges(numbers.months, number);
  out.years = ranges(numbers.years, number);
  out.location = numbers.zone;
  return out;
}

TEST(Calendar, AgreesWithASlowEvaluatorAtEachMinute) {
  const std::array<const char*, 8> near{
      "2026-03-28T20:00:00", "2026-10-24T20:00:00", "2026-04-04T10:00:00", "2026-10-03T10:00:00",
      "2025-12-31T08:00:00", "2028-02-28T12:00:00", "2026-02-28T10:00:00", "2027-06-15T00:00:00"};
  for (unsigned seed = 0; seed < 400; ++seed) {
    Chance chance(seed);
    const Numbers numbers = random_numbers(chance);
    const Calendar calendar = calendar_of(written(numbers));
    core::WallTime at = utc(near.at(seed % near.size())) + 1min * chance.between(0, 1439);
    const core::WallTime end = at + 48h;
    const bool first = slow_holds(numbers, at);
    std::optional<core::WallTime> change;
    const core::WallTime start = at;
    for (; at < end; at += 1min) {
      const bool expected = slow_holds(numbers, at);
      ASSERT_EQ(calendar.holds(at), expected) << "seed " << seed << " at " << core::to_rfc3339(at);
      if (expected != first && !change) change = at;
    }
    ASSERT_EQ(calendar.next_change(start, end - 1min), change) << "seed " << seed;
    ASSERT_GT(calendar.steady_until(start), start);
    if (change) {
      ASSERT_LE(calendar.steady_until(start), *change) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace tocsin::routing
