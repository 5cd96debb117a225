#include "routing/state_codec.h"

#include <charconv>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace tocsin::routing {
namespace {

using core::Error;
using core::Result;
using core::WallTime;
using Json = nlohmann::json;

Json to_json(const std::optional<WallTime>& time) {
  return time ? Json(core::nanoseconds(*time)) : Json(nullptr);
}

WallTime time_from(const Json& json) { return core::wall_time(json.get<std::int64_t>()); }

std::optional<WallTime> optional_time(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return time_from(json);
}

Json to_json(const core::Labels& labels) {
  Json out = Json::object();
  for (const auto& [name, value] : labels.entries()) out[name] = value;
  return out;
}

core::Labels labels_from(const Json& json) {
  core::Labels out;
  for (const auto& [name, value] : json.items()) out.set(name, value.get<std::string>());
  return out;
}

/// Text that is not UTF-8 loses the bad bytes rather than the record.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Runs `read` over the parsed text; the library's exceptions end here.
template <typename T>
Result<T> parsed(std::string_view text, const std::function<T(const Json&)>& read) {
  try {
    return read(Json::parse(text));
  } catch (const std::exception& problem) {
    return Error{core::Code::data_loss, problem.what()};
  }
}

}  // namespace

std::string encode_time(WallTime time) { return std::to_string(core::nanoseconds(time)); }

Result<WallTime> decode_time(std::string_view value) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) {
    return Error{core::Code::data_loss, "not a time"};
  }
  return core::wall_time(number);
}

std::string encode(const IssueState& state, const RouterOptions& options) {
  const Json json{{"episode", state.episode},
                  {"firing", state.firing},
                  {"expires_at", to_json(state.expires_at)},
                  {"expiry_explicit", state.expiry_explicit},
                  {"last_transition", to_json(state.last_transition)},
                  {"sequences", state.sequences}};
  return dump(json) + '\n' + options.encode_issue(state.issue);
}

Result<IssueState> decode_issue_state(std::string_view value, const RouterOptions& options) {
  const std::size_t line = value.find('\n');
  if (line == std::string_view::npos) return Error{core::Code::data_loss, "no issue in the record"};
  auto issue = options.decode_issue(value.substr(line + 1));
  if (!issue) return Error{core::Code::data_loss, issue.error().message};
  auto state = parsed<IssueState>(value.substr(0, line), [](const Json& json) {
    IssueState out;
    out.episode = json.at("episode");
    out.firing = json.at("firing");
    out.expires_at = optional_time(json.at("expires_at"));
    out.expiry_explicit = json.at("expiry_explicit");
    out.last_transition = time_from(json.at("last_transition"));
    out.sequences = json.at("sequences").get<std::map<std::string, std::uint64_t>>();
    return out;
  });
  if (!state) return state;
  state->issue = std::move(*issue);
  const bool resolved = state->issue.status == core::IssueStatus::resolved;
  if (resolved == state->firing || (resolved && !state->issue.ends_at)) {
    return Error{core::Code::data_loss, "the issue's status contradicts its record"};
  }
  return state;
}

std::string encode(const Group& group) {
  return dump({{"key", group.key},
               {"route", group.route_id},
               {"grouping", group.grouping},
               {"labels", to_json(group.labels)},
               {"overflow", group.overflow},
               {"generation", group.generation},
               {"created_at", to_json(group.created_at)},
               {"next_tick", to_json(group.next_tick)},
               {"urgent_at", to_json(group.urgent_at)},
               {"last_urgent", to_json(group.last_urgent)},
               {"last_tick", to_json(group.last_tick)},
               {"flush_seq", group.flush_seq},
               {"running", group.running},
               {"held", group.held},
               {"absent_since", to_json(group.absent_since)}});
}

Result<Group> decode_group(std::string_view value) {
  return parsed<Group>(value, [](const Json& json) {
    Group out;
    out.key = json.at("key");
    out.route_id = json.at("route");
    out.grouping = json.at("grouping");
    out.labels = labels_from(json.at("labels"));
    out.overflow = json.at("overflow");
    out.generation = json.at("generation");
    out.created_at = time_from(json.at("created_at"));
    out.next_tick = optional_time(json.at("next_tick"));
    out.urgent_at = optional_time(json.at("urgent_at"));
    out.last_urgent = optional_time(json.at("last_urgent"));
    out.last_tick = optional_time(json.at("last_tick"));
    out.flush_seq = json.at("flush_seq");
    out.running = json.at("running");
    out.held = json.at("held");
    out.absent_since = optional_time(json.at("absent_since"));
    return out;
  });
}

std::string encode(const TellLog& log) {
  Json told = Json::object();
  for (const auto& [key, entry] : log.told) {
    told[key] = Json::array({entry.episode, static_cast<int>(entry.severity)});
  }
  Json owed = Json::object();
  for (const auto& [key, entry] : log.owed) {
    owed[key] = Json::array({entry.episode, core::nanoseconds(entry.since)});
  }
  Json handles = Json::array();
  for (const auto& [name, value] : log.handles) handles.push_back(Json::array({name, value}));
  return dump({{"told", told},
               {"owed", owed},
               {"last_tick", to_json(log.last_tick)},
               {"seq", log.seq},
               {"handles", handles}});
}

Result<TellLog> decode_log(std::string_view value) {
  return parsed<TellLog>(value, [](const Json& json) {
    TellLog out;
    for (const auto& [key, entry] : json.at("told").items()) {
      const int severity = entry.at(1);
      out.told[key] = {entry.at(0), static_cast<core::Severity>(std::clamp(severity, 0, 3))};
    }
    for (const auto& [key, entry] : json.at("owed").items()) {
      out.owed[key] = {entry.at(0), time_from(entry.at(1))};
    }
    out.last_tick = optional_time(json.at("last_tick"));
    out.seq = json.at("seq");
    for (const Json& entry : json.at("handles")) {
      out.handles.emplace_back(entry.at(0).get<std::string>(), entry.at(1).get<std::string>());
    }
    return out;
  });
}

std::string encode(const RunState& run) {
  return dump({{"attempt", run.attempt},
               {"job", run.job},
               {"labels", to_json(run.labels)},
               {"last_seen", to_json(run.last_seen)},
               {"ended_at", to_json(run.ended_at)},
               {"lost", run.lost}});
}

Result<RunState> decode_run(std::string_view value) {
  return parsed<RunState>(value, [](const Json& json) {
    RunState out;
    out.attempt = json.at("attempt");
    out.job = json.at("job");
    out.labels = labels_from(json.at("labels"));
    out.last_seen = time_from(json.at("last_seen"));
    out.ended_at = optional_time(json.at("ended_at"));
    out.lost = json.at("lost");
    return out;
  });
}

}  // namespace tocsin::routing
