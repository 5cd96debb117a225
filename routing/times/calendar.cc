#include "routing/times/calendar.h"

#include <absl/time/civil_time.h>
#include <absl/time/time.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "core/visible_text.h"
#include "routing/times/zone_names.h"

namespace tocsin::routing {

using core::WallTime;

namespace {

constexpr std::size_t kShownEntry = 60;
constexpr int kMinutesOfDay = 24 * 60;
constexpr int kLongestMonth = 31;

/// Minutes since midnight of the local clock, `to` excluded.
struct MinuteSpan {
  int from = 0;
  int to = 0;
};
/// Both included.
struct NumberSpan {
  int first = 0;
  int last = 0;
};

struct Window {
  std::vector<MinuteSpan> times;
  std::vector<NumberSpan> weekdays;  // 0 = Sunday
  std::vector<NumberSpan> days;      // negative: from the end of the month
  std::vector<NumberSpan> months;
  std::vector<NumberSpan> years;
  absl::TimeZone zone;
};

constexpr std::array<std::string_view, 7> kWeekdays{"sunday",   "monday", "tuesday", "wednesday",
                                                    "thursday", "friday", "saturday"};
constexpr std::array<std::string_view, 12> kMonths{"january",   "february", "march",    "april",
                                                   "may",       "june",     "july",     "august",
                                                   "september", "october",  "november", "december"};

std::string quoted(std::string_view text) { return "\"" + core::visible(text, kShownEntry) + "\""; }

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

std::optional<int> number_of(std::string_view text) {
  int out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// Reads one window, and keeps every mistake with its place.
class WindowReader {
 public:
  explicit WindowReader(std::vector<WindowFault>& faults) : faults_(faults) {}

  Window read(const TimeWindow& text) {
    Window out;
    for (std::size_t i = 0; i < text.times.size(); ++i) {
      clock(text.times[i], "times[" + std::to_string(i) + "]", out.times);
    }
    spans("weekdays", text.weekdays, out.weekdays, [](std::string_view word, std::string& wrong) {
      return named(word, kWeekdays, 0, "a weekday such as monday", wrong);
    });
    spans("days_of_month", text.days_of_month, out.days, day_of_month);
    spans("months", text.months, out.months, [](std::string_view word, std::string& wrong) {
      if (const auto number = number_of(word)) {
        if (*number >= 1 && *number <= 12) return number;
        wrong = "expected a month 1 … 12 or its name, found " + quoted(word);
        return std::optional<int>();
      }
      return named(word, kMonths, 1, "a month such as january, or 1 … 12", wrong);
    });
    spans("years", text.years, out.years, [](std::string_view word, std::string& wrong) {
      const auto number = number_of(word);
      if (number && *number >= 1970 && *number <= 2261) return number;
      wrong = "expected a year 1970 … 2261, found " + quoted(word);
      return std::optional<int>();
    });
    zone(text.location, out.zone);
    return out;
  }

 private:
  using Value = std::optional<int> (*)(std::string_view word, std::string& wrong);

  void fault(std::string path, std::string message) {
    faults_.push_back({std::move(path), std::move(message)});
  }

  template <std::size_t kSize>
  static std::optional<int> named(std::string_view word,
                                  const std::array<std::string_view, kSize>& names, int first,
                                  std::string_view expected, std::string& wrong) {
    const auto found = std::find(names.begin(), names.end(), lower_case(word));
    if (found != names.end()) return first + static_cast<int>(found - names.begin());
    std::vector<std::string> known(names.begin(), names.end());
    std::string near = core::nearest(lower_case(word), known);
    for (const std::string& name : known) {  // "mon", "jan"
      if (near.empty() && word.size() >= 3 && name.starts_with(lower_case(word))) near = name;
    }
    wrong = "expected " + std::string(expected) + ", found " + quoted(word) +
            (near.empty() ? "" : "; did you mean \"" + near + "\"?");
    return std::nullopt;
  }

  static std::optional<int> day_of_month(std::string_view word, std::string& wrong) {
    const auto number = number_of(word);
    if (number && *number != 0 && *number >= -kLongestMonth && *number <= kLongestMonth) {
      return number;
    }
    wrong = "expected a day 1 … 31, or -31 … -1 counted from the end of the month, found " +
            quoted(word);
    return std::nullopt;
  }

  void spans(std::string_view field, const std::vector<std::string>& entries,
             std::vector<NumberSpan>& out, Value value) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string path = std::string(field) + "[" + std::to_string(i) + "]";
      const std::string_view text = entries[i];
      const std::size_t colon = text.find(':');
      std::string wrong;
      const auto first = value(text.substr(0, colon), wrong);
      const auto last =
          !first || colon == std::string_view::npos ? first : value(text.substr(colon + 1), wrong);
      if (!first || !last) {
        fault(path, wrong);
        continue;
      }
      if (const std::string problem = order(field, *first, *last); !problem.empty()) {
        fault(path, quoted(text) + ": " + problem);
        continue;
      }
      out.push_back({*first, *last});
    }
  }

  /// What is wrong with a range from `first` to `last`; empty: nothing.
  static std::string order(std::string_view field, int first, int last) {
    if (field == "days_of_month" && first < 0 && last > 0) {
      return "a range that begins from the end of the month must also end there, such as -3:-1";
    }
    const auto in_longest = [&](int day) {
      return field == "days_of_month" && day < 0 ? kLongestMonth + 1 + day : day;
    };
    if (in_longest(first) <= in_longest(last)) return {};
    if (field == "weekdays") {
      return "a range goes forward and weeks begin on Sunday; write two entries, such as "
             "[saturday, sunday]";
    }
    if (field == "months") {
      return "a range goes forward within a year; write two entries, such as [november:december, "
             "january]";
    }
    return "the range ends before it begins";
  }

  static std::optional<int> minutes_of(std::string_view text) {
    const bool shaped = text.size() == 5 && text[2] == ':';
    const auto hours = shaped ? number_of(text.substr(0, 2)) : std::nullopt;
    const auto minutes = shaped ? number_of(text.substr(3)) : std::nullopt;
    if (!hours || !minutes || *hours < 0 || *minutes < 0 || *minutes > 59) return std::nullopt;
    const int out = *hours * 60 + *minutes;
    return out <= kMinutesOfDay ? std::optional(out) : std::nullopt;
  }

  void clock(const ClockSpan& text, const std::string& path, std::vector<MinuteSpan>& out) {
    const auto from = minutes_of(text.start);
    const auto to = minutes_of(text.end);
    if (!from || *from == kMinutesOfDay) {
      fault(path + ".start", "expected a time of day 00:00 … 23:59, found " + quoted(text.start));
    }
    if (!to) {
      fault(path + ".end", "expected a time of day 00:01 … 24:00, found " + quoted(text.end));
    }
    if (!from || !to || *from == kMinutesOfDay) return;
    if (*from >= *to) {
      fault(path + ".end", "the end " + text.end + " is not after the start " + text.start +
                               "; over midnight write two entries: " + text.start +
                               " to 24:00, and 00:00 to " + text.end);
      return;
    }
    out.push_back({*from, *to});
  }

  void zone(const std::string& name, absl::TimeZone& out) {
    out = absl::UTCTimeZone();
    if (name.empty() || name == "UTC") return;
    if (may_be_zone(name) && absl::LoadTimeZone(name, &out)) return;
    out = absl::UTCTimeZone();
    absl::TimeZone any;
    if (!absl::LoadTimeZone("Etc/UTC", &any)) {
      fault("location", "there is no time zone database on this machine to look " + quoted(name) +
                            " up; install the package tzdata, or leave location out for UTC");
      return;
    }
    const std::string near = nearest_zone(name);
    fault("location", "there is no time zone " + quoted(name) +
                          (near.empty() ? "; expected an IANA name such as Europe/Berlin"
                                        : "; did you mean \"" + near + "\"?"));
  }

  std::vector<WindowFault>& faults_;
};

bool within(const std::vector<NumberSpan>& spans, int value) {
  return spans.empty() || std::any_of(spans.begin(), spans.end(), [&](const NumberSpan& span) {
           return span.first <= value && value <= span.last;
         });
}

bool within_month(const std::vector<NumberSpan>& spans, const absl::CivilDay& day) {
  if (spans.empty()) return true;
  const int length = (absl::CivilDay(absl::CivilMonth(day) + 1) - 1).day();
  const auto counted = [&](int number) { return number < 0 ? length + 1 + number : number; };
  return std::any_of(spans.begin(), spans.end(), [&](const NumberSpan& span) {
    return counted(span.first) <= day.day() && day.day() <= counted(span.last);
  });
}

bool window_holds(const Window& window, absl::Time at) {
  const absl::CivilSecond local = window.zone.At(at).cs;
  const absl::CivilDay day(local);
  const int minute = local.hour() * 60 + local.minute();
  const auto in_clock = [&](const MinuteSpan& span) {
    return span.from <= minute && minute < span.to;
  };
  if (!window.times.empty() && std::none_of(window.times.begin(), window.times.end(), in_clock)) {
    return false;
  }
  const int weekday = (static_cast<int>(absl::GetWeekday(day)) + 1) % 7;  // theirs begins on Monday
  return within(window.weekdays, weekday) && within_month(window.days, day) &&
         within(window.months, day.month()) && within(window.years, static_cast<int>(day.year()));
}

/// The first instant after `at` at which its clock or its day may become another one. Between two of
/// them the answer stays: it depends on the day, and on the edges of `times`.
absl::Time next_edge(const Window& window, absl::Time at) {
  absl::Time first = absl::InfiniteFuture();
  const auto offer = [&](absl::Time edge) {
    if (edge > at) first = std::min(first, edge);
  };
  // A local time that is skipped or comes twice stands for several instants.
  const auto offer_local = [&](const absl::CivilSecond& local) {
    const absl::TimeZone::TimeInfo info = window.zone.At(local);
    for (const absl::Time edge : {info.pre, info.trans, info.post}) offer(edge);
  };
  const absl::CivilDay day(window.zone.At(at).cs);
  offer_local(absl::CivilSecond(day + 1));
  for (const MinuteSpan& span : window.times) {
    offer_local(absl::CivilSecond(day) + span.from * 60);
    offer_local(absl::CivilSecond(day) + span.to * 60);
  }
  absl::TimeZone::CivilTransition change;
  if (window.zone.NextTransition(at, &change)) offer(window.zone.At(change.to).trans);
  return first;
}

absl::Time absl_time(WallTime at) { return absl::FromUnixNanos(core::nanoseconds(at)); }

/// What lies beyond 64 bits of nanoseconds is never.
WallTime wall_time_of(absl::Time at) {
  if (at >= absl_time(WallTime::max())) return WallTime::max();
  return core::wall_time(absl::ToUnixNanos(at));
}

}  // namespace

struct Calendar::Compiled {
  std::vector<Window> windows;
};

std::vector<WindowFault> faults_of(const TimeWindow& window) {
  std::vector<WindowFault> out;
  WindowReader(out).read(window);
  return out;
}

core::Result<Calendar> Calendar::compile(const std::vector<TimeWindow>& windows) {
  auto compiled = std::make_shared<Compiled>();
  std::vector<WindowFault> faults;
  WindowReader reader(faults);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    compiled->windows.push_back(reader.read(windows[i]));
    if (faults.empty()) continue;
    return core::invalid_argument("interval " + std::to_string(i + 1) + ", " + faults[0].path +
                                  ": " + faults[0].message);
  }
  Calendar out;
  out.compiled_ = std::move(compiled);
  return out;
}

bool Calendar::holds(WallTime at) const {
  const auto& windows = compiled_->windows;
  return std::any_of(windows.begin(), windows.end(),
                     [&](const Window& window) { return window_holds(window, absl_time(at)); });
}

WallTime Calendar::steady_until(WallTime at) const {
  absl::Time first = absl::InfiniteFuture();
  for (const Window& window : compiled_->windows) {
    first = std::min(first, next_edge(window, absl_time(at)));
  }
  return wall_time_of(first);
}

std::optional<WallTime> Calendar::next_change(WallTime at, WallTime limit) const {
  const bool now = holds(at);
  for (WallTime edge = steady_until(at); edge <= limit && edge != WallTime::max();
       edge = steady_until(edge)) {
    if (holds(edge) != now) return edge;
  }
  return std::nullopt;
}

}  // namespace tocsin::routing
