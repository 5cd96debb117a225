#include "app/api/silence_life.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using core::Status;
using core::Value;

constexpr core::Duration kUsualQuiet = 10min;
/// As `tocsin silence add` has them.
constexpr core::Duration kUntilResolvedAtMost = 24h * 7;
constexpr core::Duration kRecursFor = 24h * 30;
constexpr core::Duration kMostOfADuration = 24h * 366;

core::Error wrong(std::string_view field, const char* expected) {
  return core::invalid_argument(std::string(field) + ": expected " + expected);
}

const Value* given(const Value& body, std::string_view name) {
  const Value* found = core::find(body, name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

Status read_span(const Value& body, std::string_view name, core::Duration& out) {
  const Value* found = given(body, name);
  if (found == nullptr) return core::ok();
  const auto* text = core::as<std::string>(*found);
  const auto read = text == nullptr ? std::nullopt : core::parse_duration(*text);
  if (!read || *read < 0s || *read > kMostOfADuration)
    return wrong(name, "a duration such as 10m, at most 366d");
  out = *read;
  return core::ok();
}

Status check_fields(const Value& body, std::string_view of, const std::vector<std::string>& known) {
  const auto* fields = core::as<core::ValueMap>(body);
  if (fields == nullptr) return wrong(of, "an object");
  for (const auto& [name, value] : *fields) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = core::nearest(name, known);
    return core::invalid_argument(std::string(of) + ": unknown field \"" +
                                  core::visible(name, 100) + "\"" +
                                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  return core::ok();
}

Status read_texts(const Value& body, std::string_view name, std::vector<std::string>& out) {
  const Value* found = given(body, name);
  if (found == nullptr) return core::ok();
  const auto* list = core::as<core::ValueList>(*found);
  if (list == nullptr) return wrong(name, "a list of texts");
  for (const Value& one : *list) {
    const auto* text = core::as<std::string>(one);
    if (text == nullptr) return wrong(name, "a list of texts");
    out.push_back(*text);
  }
  return core::ok();
}

/// "20:00-24:00"
Status read_times(const Value& body, routing::TimeWindow& out) {
  std::vector<std::string> texts;
  if (auto read = read_texts(body, "times", texts); !read) return read;
  for (const std::string& text : texts) {
    const std::size_t at = text.find('-');
    if (at == std::string::npos) return wrong("times", "parts of a day such as 20:00-24:00");
    out.times.push_back({text.substr(0, at), text.substr(at + 1)});
  }
  return core::ok();
}

Status read_window(const Value& body, routing::TimeWindow& out) {
  static const std::vector<std::string> kFields{"times",  "weekdays", "days_of_month",
                                                "months", "years",    "location"};
  if (auto known = check_fields(body, "recurrence.intervals", kFields); !known) return known;
  if (auto read = read_times(body, out); !read) return read;
  for (const auto& [name, place] :
       {std::pair{"weekdays", &out.weekdays}, std::pair{"days_of_month", &out.days_of_month},
        std::pair{"months", &out.months}, std::pair{"years", &out.years}}) {
    if (auto read = read_texts(body, name, *place); !read) return read;
  }
  const Value* location = given(body, "location");
  if (location == nullptr) return core::ok();
  const auto* text = core::as<std::string>(*location);
  if (text == nullptr) return wrong("location", "a time zone such as Europe/Berlin");
  out.location = *text;
  return core::ok();
}

Status read_recurrence(const Value& body, routing::Silence& out) {
  const Value* found = given(body, "recurrence");
  if (found == nullptr) return core::ok();
  if (auto known = check_fields(*found, "recurrence", {"time_interval", "intervals"}); !known)
    return known;
  const Value* name = given(*found, "time_interval");
  const Value* intervals = given(*found, "intervals");
  if ((name == nullptr) == (intervals == nullptr))
    return wrong("recurrence", "either time_interval or intervals");
  routing::Recurrence recurrence;
  if (name != nullptr) {
    const auto* text = core::as<std::string>(*name);
    if (text == nullptr || text->empty())
      return wrong("recurrence.time_interval", "the name of a time interval");
    recurrence.time_interval = *text;
    out.recurrence = std::move(recurrence);
    return core::ok();
  }
  const auto* list = core::as<core::ValueList>(*intervals);
  if (list == nullptr || list->empty())
    return wrong("recurrence.intervals", "a list with at least one interval");
  for (const Value& one : *list) {
    routing::TimeWindow window;
    if (auto read = read_window(one, window); !read) return read;
    recurrence.windows.push_back(std::move(window));
  }
  const auto calendar = routing::Calendar::compile(recurrence.windows);
  if (!calendar) return core::invalid_argument("recurrence: " + calendar.error().message);
  out.recurrence = std::move(recurrence);
  return core::ok();
}

Status read_annotations(const Value& body, routing::Silence& out) {
  const Value* found = given(body, "annotations");
  if (found == nullptr) return core::ok();
  const auto* map = core::as<core::ValueMap>(*found);
  if (map == nullptr) return wrong("annotations", "names and texts");
  for (const auto& [name, value] : *map) {
    const auto* text = core::as<std::string>(value);
    if (text == nullptr || name.empty()) return wrong("annotations", "names and texts");
    out.annotations[name] = *text;
  }
  return core::ok();
}

}  // namespace

Status read_silence_life(const Value& body, routing::Silence& out) {
  if (const Value* found = given(body, "until_resolved")) {
    const auto* flag = core::as<bool>(*found);
    if (flag == nullptr) return wrong("until_resolved", "true or false");
    out.until_resolved = *flag;
    if (out.until_resolved) out.quiet_for = kUsualQuiet;
  }
  if (auto read = read_span(body, "quiet_for", out.quiet_for); !read) return read;
  if (auto read = read_span(body, "auto_expire_unmatched", out.auto_expire_unmatched); !read)
    return read;
  if (const Value* found = given(body, "announce_on_unmute")) {
    const auto* text = core::as<std::string>(*found);
    if (text == nullptr || (*text != "never" && *text != "reminder"))
      return wrong("announce_on_unmute", "never or reminder");
    out.announce_on_unmute = *text;
  }
  if (auto read = read_annotations(body, out); !read) return read;
  return read_recurrence(body, out);
}

Status fill_recurrence(const std::vector<routing::TimeInterval>& intervals,
                       routing::Silence& silence) {
  if (!silence.recurrence || silence.recurrence->time_interval.empty()) return core::ok();
  std::vector<std::string> names;
  for (const routing::TimeInterval& interval : intervals) {
    if (interval.name == silence.recurrence->time_interval) {
      silence.recurrence->windows = interval.windows;
      return core::ok();
    }
    names.push_back(interval.name);
  }
  const std::string near = core::nearest(silence.recurrence->time_interval, names);
  return core::invalid_argument("recurrence.time_interval: the configuration has no \"" +
                                core::visible(silence.recurrence->time_interval, 100) + "\"" +
                                (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

std::optional<core::Duration> usual_length(const routing::Silence& silence) {
  if (silence.recurrence) return kRecursFor;
  if (silence.until_resolved) return kUntilResolvedAtMost;
  return std::nullopt;
}

}  // namespace tocsin::app
