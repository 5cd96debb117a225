#include "app/api/silence_request.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "app/api/silence_life.h"
#include "core/json.h"
#include "core/text.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

using core::Value;

constexpr std::size_t kMostOfASilenceRequest = 64 * 1024;
constexpr core::Duration kLongest = std::chrono::hours(24 * 366);

core::Status check_names(const core::ValueMap& body) {
  static const std::vector<std::string> kNames{"id",
                                               "matchers",
                                               "matcher_sets",
                                               "starts_at",
                                               "ends_at",
                                               "duration",
                                               "comment",
                                               "actions",
                                               "version",
                                               "recurrence",
                                               "until_resolved",
                                               "quiet_for",
                                               "auto_expire_unmatched",
                                               "announce_on_unmute",
                                               "annotations"};
  for (const auto& [name, value] : body) {
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) continue;
    const std::string near = core::nearest(name, kNames);
    return core::invalid_argument("unknown field \"" + core::visible(name, 100) + "\"" +
                                  (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  return core::ok();
}

core::Result<std::string> matchers_of_request(const Value* given) {
  std::vector<std::string> terms;
  if (const auto* text = core::as<std::string>(given)) {
    terms.push_back(*text);
  } else if (const auto* list = core::as<core::ValueList>(given)) {
    for (const Value& one : *list) {
      const auto* term = core::as<std::string>(one);
      if (term == nullptr)
        return core::invalid_argument("matchers: expected texts such as job=\"vit\"");
      terms.push_back(*term);
    }
  } else {
    return core::invalid_argument(
        "matchers: expected a text such as {job=\"vit\"}, or a list of them");
  }
  const auto parsed = routing::Matchers::parse(terms);
  if (!parsed) return parsed.error().in("matchers");
  return parsed->canonical();
}

core::Result<std::optional<core::WallTime>> moment_of(const Value& body, const char* name) {
  const Value* given = core::find(body, name);
  if (given == nullptr || given->is_null()) return std::optional<core::WallTime>();
  const auto* text = core::as<std::string>(given);
  const auto time = text == nullptr ? std::nullopt : core::parse_rfc3339(*text);
  if (time) return time;
  return core::invalid_argument(std::string(name) +
                                ": expected a time such as 2026-01-02T03:04:05Z");
}

// One set, or several of which one must hold.
core::Status read_sets(const Value& body, routing::Silence& out) {
  const Value* sets = core::find(body, "matcher_sets");
  if (sets == nullptr || sets->is_null()) {
    auto matchers = matchers_of_request(core::find(body, "matchers"));
    if (!matchers) return matchers.error();
    out.matchers = std::move(*matchers);
    return core::ok();
  }
  if (core::find(body, "matchers") != nullptr)
    return core::invalid_argument("give either matchers or matcher_sets");
  const auto* list = core::as<core::ValueList>(*sets);
  if (list == nullptr || list->empty())
    return core::invalid_argument("matcher_sets: expected a list of texts such as {job=\"vit\"}");
  for (const Value& one : *list) {
    auto set = matchers_of_request(&one);
    if (!set) return set.error().in("matcher_sets");
    out.matcher_sets.push_back(std::move(*set));
  }
  if (out.matcher_sets.size() == 1) {
    out.matchers = std::move(out.matcher_sets.front());
    out.matcher_sets.clear();
  }
  return core::ok();
}

core::Result<core::WallTime> end_of(const Value& body, core::WallTime begin,
                                    std::optional<core::Duration> usual) {
  const auto end = moment_of(body, "ends_at");
  if (!end) return end.error();
  const Value* lasts = core::find(body, "duration");
  if (*end && lasts == nullptr) return **end;
  if (!*end && lasts == nullptr && usual) return begin + *usual;
  if (*end || lasts == nullptr)
    return core::invalid_argument("expected one of ends_at and duration");
  const auto* text = core::as<std::string>(lasts);
  const auto duration = text == nullptr ? std::nullopt : core::parse_duration(*text);
  if (duration && *duration > core::Duration{} && *duration <= kLongest) return begin + *duration;
  return core::invalid_argument("duration: expected a duration such as 2h, at most 366d");
}

core::Result<std::string> text_of(const Value& body, const char* name) {
  const Value* given = core::find(body, name);
  if (given == nullptr || given->is_null()) return std::string();
  if (const auto* text = core::as<std::string>(given)) return *text;
  return core::invalid_argument(std::string(name) + ": expected a text");
}

}  // namespace

core::Result<SilenceRequest> read_silence_request(std::string_view json, core::WallTime now) {
  const auto body = core::parse_json(json, kMostOfASilenceRequest);
  if (!body) return body.error();
  const auto* members = core::as<core::ValueMap>(*body);
  if (members == nullptr) return core::invalid_argument("expected an object");
  if (const auto known = check_names(*members); !known) return known.error();
  SilenceRequest out;
  for (const auto& [name, value] : *members) out.named.insert(name);
  if (auto read = read_sets(*body, out.silence); !read) return read.error();
  if (auto read = read_silence_life(*body, out.silence); !read) return read.error();
  for (const auto& [name, place] :
       {std::pair{"id", &out.id}, std::pair{"comment", &out.silence.comment},
        std::pair{"actions", &out.silence.actions}}) {
    auto text = text_of(*body, name);
    if (!text) return text.error();
    *place = std::move(*text);
  }
  if (out.silence.actions == "all") out.silence.actions.clear();
  if (const Value* version = core::find(*body, "version"); version && !version->is_null()) {
    const auto* number = core::as<std::int64_t>(*version);
    if (number == nullptr || *number < 1)
      return core::invalid_argument("version: expected the number that the silence had");
    out.version = static_cast<std::uint64_t>(*number);
  }
  const auto begin = moment_of(*body, "starts_at");
  if (!begin) return begin.error();
  out.silence.starts_at = begin->value_or(now);
  const auto end = end_of(*body, out.silence.starts_at, usual_length(out.silence));
  if (!end) return end.error();
  out.silence.ends_at = *end;
  return out;
}

}  // namespace tocsin::app
