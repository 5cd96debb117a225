#include "routing/times/read_time_intervals.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/text.h"
#include "routing/times/calendar.h"

namespace tocsin::routing {
namespace {

void read_window(config::Reader& in, TimeWindow& window) {
  in.list("times", "parts of a day in the local clock", [&](config::Reader& span) {
    ClockSpan& out = window.times.emplace_back();
    span.required("start", out.start, "HH:MM, included");
    span.required("end", out.end, "HH:MM up to 24:00, not included");
  });
  in.optional("weekdays", window.weekdays, "monday, or monday:friday; weeks begin on Sunday");
  in.optional("days_of_month", window.days_of_month,
              "1 … 31, or -31 … -1 counted from the end of the month; ranges such as 1:7 or -3:-1");
  in.optional("months", window.months, "january or 1; ranges such as june:august");
  in.optional("years", window.years, "2026; ranges such as 2026:2027");
  in.optional("location", window.location,
              "time zone such as Europe/Berlin, whose local calendar counts; default UTC");
  if (in.describing()) return;
  // What a start or an end lacks has been reported where it is missing.
  const bool whole = std::all_of(window.times.begin(), window.times.end(), [](const auto& span) {
    return !span.start.empty() && !span.end.empty();
  });
  if (!whole) window.times.clear();
  for (const WindowFault& fault : faults_of(window)) {
    const std::string list = fault.path.substr(0, fault.path.find('['));
    in.error(in.value(fault.path) ? fault.path : list, fault.message);
  }
  for (const std::string_view key : {"times", "weekdays", "days_of_month", "months", "years"}) {
    const auto value = in.value(key);
    const auto* items = value ? core::as<core::ValueList>(*value) : nullptr;
    if (items != nullptr && items->empty()) {
      in.error(key, "an empty list; leave the key out if it does not matter");
    }
  }
}

}  // namespace

void read_time_intervals(config::Reader& root, std::vector<TimeInterval>& intervals) {
  std::map<std::string, config::Location> names;
  root.list(
      "time_intervals", "named times at which routes are muted or active", [&](config::Reader& in) {
        TimeInterval interval;
        in.required("name", interval.name, config::not_empty(),
                    "its unique name, which routes and silences use");
        in.list(
            "intervals",
            "alternatives: the interval holds while one of them does; of one of them "
            "every key that is given must hold",
            [&](config::Reader& window) { read_window(window, interval.windows.emplace_back()); });
        if (in.describing()) return;
        if (interval.windows.empty()) {
          in.error(in.has("intervals") ? "intervals" : "",
                   "expected at least one entry in `intervals`, such as "
                   "{times: [{start: \"20:00\", end: \"24:00\"}]}");
        }
        const auto [first, fresh] = names.try_emplace(interval.name, in.location("name"));
        if (!fresh && !interval.name.empty()) {
          in.error("name", "the interval at line " + std::to_string(first->second.line) +
                               " is called '" + interval.name + "' already");
        }
        intervals.push_back(std::move(interval));
      });
}

std::optional<std::vector<std::string>> read_interval_names(config::Reader& in,
                                                            std::string_view key,
                                                            const std::vector<std::string>& known,
                                                            std::string_view help) {
  std::vector<std::string> names;
  in.optional(key, names, help);
  if (in.describing() || !in.has(key)) return std::nullopt;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string item = std::string(key) + "[" + std::to_string(i) + "]";
    const std::string place = in.value(item) ? item : std::string(key);
    if (!seen.insert(names[i]).second) in.error(place, "'" + names[i] + "' is named twice");
    if (std::find(known.begin(), known.end(), names[i]) != known.end()) continue;
    const std::string near = core::nearest(names[i], known);
    in.error(place, "no time interval is called '" + names[i] + "'" +
                        (near.empty() ? "; define it in `time_intervals`"
                                      : "; did you mean '" + near + "'?"));
  }
  return names;
}

}  // namespace tocsin::routing
