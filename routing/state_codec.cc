#include "routing/state_codec.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "core/json.h"

namespace tocsin::routing {
namespace {

using core::Error;
using core::Result;
using core::WallTime;
using Json = nlohmann::json;

/// Far above the largest group's log.
constexpr std::size_t kMaxStateBytes = std::size_t{16} << 20;

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

Json to_json(const std::string& key, const TellLog::Told& told) {
  return Json::array({key, told.episode, static_cast<int>(told.severity), told.by});
}

std::pair<std::string, TellLog::Told> told_from(const Json& json) {
  const int severity = std::clamp(json.at(2).get<int>(), 0, 3);
  return {json.at(0), {json.at(1), static_cast<core::Severity>(severity), json.at(3)}};
}

/// Text that is not UTF-8 loses the bad bytes rather than the record.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Runs `read` over the parsed text; the library's exceptions end here. What grows with the number
/// of issues is a list: objects are bounded in keys, everything in depth, before it is parsed.
template <typename T>
Result<T> parsed(std::string_view text, const std::function<T(const Json&)>& read) {
  if (const core::Status bounded = core::check_json_bounds(text, kMaxStateBytes); !bounded) {
    return Error{core::Code::data_loss, bounded.error().message};
  }
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
  Json sequences = Json::array();
  for (const auto& [source, highest] : state.sequences) {
    sequences.push_back(Json::array({source, highest}));
  }
  Json past = Json::array();
  for (const auto& [episode, issue] : state.past) past.push_back(episode);
  const Json json{{"episode", state.episode},
                  {"firing", state.firing},
                  {"expires_at", to_json(state.expires_at)},
                  {"expiry_explicit", state.expiry_explicit},
                  {"last_transition", to_json(state.last_transition)},
                  {"sequences", sequences},
                  {"past", past}};
  std::string out = dump(json) + '\n' + options.encode_issue(state.issue);
  for (const auto& [episode, issue] : state.past) out += '\n' + options.encode_issue(issue);
  return out;
}

Result<IssueState> decode_issue_state(std::string_view value, const RouterOptions& options) {
  std::vector<std::string_view> lines;
  for (std::size_t from = 0; from <= value.size();) {
    const std::size_t end = std::min(value.find('\n', from), value.size());
    lines.push_back(value.substr(from, end - from));
    from = end + 1;
  }
  if (lines.size() < 2) return Error{core::Code::data_loss, "no issue in the record"};
  std::vector<core::Issue> issues;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto issue = options.decode_issue(lines[i]);
    if (!issue) return Error{core::Code::data_loss, issue.error().message};
    issues.push_back(std::move(*issue));
  }
  auto state = parsed<IssueState>(lines[0], [&](const Json& json) {
    IssueState out;
    out.episode = json.at("episode");
    out.firing = json.at("firing");
    out.expires_at = optional_time(json.at("expires_at"));
    out.expiry_explicit = json.at("expiry_explicit");
    out.last_transition = time_from(json.at("last_transition"));
    for (const Json& entry : json.at("sequences")) {
      out.sequences[entry.at(0)] = entry.at(1);
    }
    for (std::size_t i = 0; i < json.at("past").size(); ++i) {
      out.past[json.at("past").at(i)] = issues.at(i + 1);
    }
    return out;
  });
  if (!state) return state;
  state->issue = std::move(issues.front());
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
               {"changed", group.changed},
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
    out.changed = json.at("changed");
    out.held = json.at("held");
    out.absent_since = optional_time(json.at("absent_since"));
    return out;
  });
}

std::string encode(const TellLog& log) {
  Json told = Json::array();
  for (const auto& [key, entry] : log.told) told.push_back(to_json(key, entry));
  Json owed = Json::array();
  for (const auto& [key, entry] : log.owed) {
    owed.push_back(Json::array({key, entry.episode, core::nanoseconds(entry.since)}));
  }
  Json pending = Json::array();
  for (const TellLog::Pending& one : log.pending) {
    Json over = Json::array();
    for (const auto& [key, entry] : one.over) over.push_back(to_json(key, entry));
    pending.push_back(Json::array(
        {one.seq, one.id, core::to_string(one.kind), core::nanoseconds(one.decided_at), over}));
  }
  Json handles = Json::array();
  for (const auto& [name, value] : log.handles) handles.push_back(Json::array({name, value}));
  return dump({{"told", told},
               {"owed", owed},
               {"last_tick", to_json(log.last_tick)},
               {"seq", log.seq},
               {"placed", log.placed},
               {"pending", pending},
               {"handles", handles}});
}

Result<TellLog> decode_log(std::string_view value) {
  return parsed<TellLog>(value, [](const Json& json) {
    TellLog out;
    for (const Json& entry : json.at("told")) out.told.insert(told_from(entry));
    for (const Json& entry : json.at("owed")) {
      out.owed[entry.at(0)] = {entry.at(1), time_from(entry.at(2))};
    }
    for (const Json& entry : json.at("pending")) {
      const auto kind = core::notification_kind_from(entry.at(2).get<std::string>());
      out.pending.push_back({entry.at(0),
                             entry.at(1),
                             kind.value_or(core::NotificationKind::update),
                             time_from(entry.at(3)),
                             {}});
      for (const Json& end : entry.at(4)) out.pending.back().over.push_back(told_from(end));
    }
    out.placed = json.at("placed");
    out.last_tick = optional_time(json.at("last_tick"));
    out.seq = json.at("seq");
    for (const Json& entry : json.at("handles")) {
      out.handles.emplace_back(entry.at(0).get<std::string>(), entry.at(1).get<std::string>());
    }
    return out;
  });
}

std::string encode(const RunState& run) {
  Json launch = Json::array();
  for (const auto& [node, opened] : run.launch) launch.push_back(Json::array({node, opened}));
  return dump({{"attempt", run.attempt},
               {"job", run.job},
               {"labels", to_json(run.labels)},
               {"last_seen", to_json(run.last_seen)},
               {"ended_at", to_json(run.ended_at)},
               {"lost", run.lost},
               {"heard", run.heard},
               {"launch", launch},
               {"outcome", run.outcome},
               {"step", run.step ? Json(*run.step) : Json(nullptr)},
               {"step_seconds", run.step_seconds ? Json(*run.step_seconds) : Json(nullptr)},
               {"step_time", to_json(run.step_time)}});
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
    out.heard = json.at("heard");
    for (const Json& entry : json.at("launch")) out.launch[entry.at(0)] = entry.at(1);
    out.outcome = json.at("outcome");
    if (!json.at("step").is_null()) out.step = json.at("step").get<std::int64_t>();
    if (!json.at("step_seconds").is_null())
      out.step_seconds = json.at("step_seconds").get<double>();
    out.step_time = time_from(json.at("step_time"));
    out.saved_at = out.last_seen;
    return out;
  });
}

}  // namespace tocsin::routing
