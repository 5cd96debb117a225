#include "rules/engine/jobs/job_book.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>

#include "core/json.h"
#include "core/limits.h"

namespace tocsin::rules {
namespace {

constexpr std::int64_t kHeartbeatEvery = 10'000'000'000;  // event time between job heartbeats,
constexpr std::int64_t kHeartbeatSoon = 1'000'000'000;    // while what they say changes
// A process has joined: a stop that was decided without it leaves it alone in a collective. Times the
// nodes of the launch, since each heartbeat names them all.
constexpr std::int64_t kHeartbeatJoined = 20'000'000;

// Stands among the statistics of a need and of a captured collection: elements of the tensors.
constexpr std::string_view kElements = "raw";
constexpr char kGrid[] = "@";

// "10 steps" of a plan; 0: a grid of another kind.
std::int64_t steps_of(std::string_view every) {
  std::int64_t steps = 0;
  const auto [end, error] = std::from_chars(every.data(), every.data() + every.size(), steps);
  const std::string_view rest(end, static_cast<std::size_t>(every.data() + every.size() - end));
  return error == std::errc() && rest.starts_with(" step") ? steps : 0;
}

/// Collections, `collection/statistic`, and `collection@steps` where the grid is one of steps.
std::vector<std::string> captured_names(const core::CapturedPlan& plan) {
  std::vector<std::string> names;
  const core::Value* bodies = core::find(plan.value(), "collections");
  for (const auto& collection : plan.collections()) {
    names.push_back(collection.name);
    for (const std::string& statistic : collection.statistics) {
      names.push_back(collection.name + "/" + statistic);
    }
    const core::Value* body = bodies == nullptr ? nullptr : core::find(*bodies, collection.name);
    const std::int64_t steps = body == nullptr ? 0 : steps_of(core::text_at(*body, "every"));
    if (steps > 0) names.push_back(collection.name + kGrid + std::to_string(steps));
  }
  return names;
}

/// The same with the keys of every map in order: what a restart gives back.
core::Value in_order(const core::Value& value) {
  if (const auto* list = core::as<core::ValueList>(value)) {
    core::ValueList out;
    out.reserve(list->size());
    for (const core::Value& item : *list) out.push_back(in_order(item));
    return out;
  }
  const auto* map = core::as<core::ValueMap>(value);
  if (map == nullptr) return value;
  core::ValueMap out;
  out.reserve(map->size());
  for (const auto& [key, item] : *map) out.emplace_back(key, in_order(item));
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return out;
}

/// What of the need the run does not capture by itself, added to what others need of that collection: the smallest
/// grid, the union of the rest.
void unite(const Job& job, const Need& need, std::map<std::string, Need>& missing) {
  const auto has = [&](const std::string& name) {
    return std::find(job.captured.begin(), job.captured.end(), name) != job.captured.end();
  };
  if (!has(need.collection)) missing.try_emplace(need.collection);
  for (const std::string& statistic : need.statistics) {
    if (has(need.collection + "/" + statistic)) continue;
    std::vector<std::string>& wanted = missing[need.collection].statistics;
    if (std::find(wanted.begin(), wanted.end(), statistic) == wanted.end()) {
      wanted.push_back(statistic);
    }
  }
  const std::string grid = need.collection + kGrid;
  const bool dense = std::any_of(job.captured.begin(), job.captured.end(), [&](const auto& name) {
    return name.starts_with(grid) && steps_of(name.substr(grid.size()) + " steps") <= need.every;
  });
  if (need.every == 0 || dense) return;
  Need& wanted = missing[need.collection];
  const bool first = wanted.every == 0;
  wanted.until = first                                  ? need.until
                 : wanted.until == 0 || need.until == 0 ? 0
                                                        : std::max(wanted.until, need.until);
  wanted.every = first ? need.every : std::min(wanted.every, need.every);
}

/// The need as the body of a collection in `capture`.
core::ValueMap request_of(const Need& need) {
  core::ValueMap body;
  core::ValueList list;
  for (const std::string& statistic : need.statistics) {
    if (statistic == kElements) {
      body.emplace_back("raw", true);
    } else {
      list.emplace_back(statistic);
    }
  }
  if (!list.empty()) body.emplace_back("statistics", std::move(list));
  if (need.every > 0) body.emplace_back("every", std::to_string(need.every) + " steps");
  if (need.every > 0 && need.until > 0) body.emplace_back("end_step", need.until);
  return body;
}

// A local process is stopped by its pid, so the run's identity carries it.
core::Value platform_reference(const core::Lifecycle& body) {
  core::ValueMap reference;
  if (const auto* map = core::as<core::ValueMap>(body.platform_ref)) reference = *map;
  const auto add = [&](std::string_view key, core::Value value) {
    if (core::find(reference, key) == nullptr) reference.emplace_back(key, std::move(value));
  };
  if (body.pid) add("pid", *body.pid);
  if (body.pid_start) add("pid_start", *body.pid_start);
  if (!body.host.empty()) add("host", body.host);
  return in_order(reference);
}

// What a platform says of itself may be anything; the longest of it goes.
core::Value fitting(const core::Value& reference, std::uint64_t& cut) {
  const auto* given = core::as<core::ValueMap>(reference);
  if (given == nullptr) return reference;
  core::ValueMap map = *given;
  while (!map.empty() && core::to_json(map).size() > core::limit::kReferenceBytes) {
    map.erase(std::max_element(map.begin(), map.end(), [](const auto& a, const auto& b) {
      return core::to_json(a.second).size() < core::to_json(b.second).size();
    }));
    ++cut;
  }
  return map;
}

}  // namespace

void JobBook::on_start(const Turn& turn, Run& run, Worker& worker, const core::FrameHeader& header,
                       const core::Lifecycle& body) {
  worker.gone = false;
  worker.node = body.node.empty() ? body.host : body.node;
  std::uint64_t& cut = stats_.bad_attrs;
  cut += core::bound_text(worker.node, core::limit::kHostBytes) ? 1U : 0U;
  if (worker.agent) return;
  if (body.opened && !worker.node.empty()) {
    Opened& newest = run.job.launch[worker.node];
    const std::string boot = body.boot_id.substr(0, 8);
    // Opening times count from the boot: they compare within one only.
    if (newest.boot != boot || newest.opened < *body.opened) {
      newest = {boot, *body.opened};
      run.pulse.changed = true;
    }
  }
  if (run.job.started) return heartbeat(turn, run, header.time, false);
  run.pulse.changed = false;
  run.job.started = true;
  run.job.started_at = header.time;
  run.job.name = body.job;
  cut += core::bound_text(run.job.name, core::limit::kJobBytes) ? 1U : 0U;
  if (!body.labels.empty()) {
    core::Labels labels = body.labels;
    const core::LabelsBound bound = core::bound_run_labels(labels);
    cut += bound.changed + bound.left_out;
    run.job.labels = labels.entries();
  }
  if (!body.platform.empty()) {
    run.job.platform = body.platform;
    cut += core::bound_text(run.job.platform, core::limit::kHostBytes) ? 1U : 0U;
  }
  run.job.platform_ref = fitting(platform_reference(body), cut);
  run.job.captured = captured_names(body.capture);
  reports_.emit(turn, reports_.job_event(turn, run, core::JobPhase::started, 1, header.time));
  request_capture(turn, run, header.time);
}

// What the registry holds of a run: at most every second while it changes.
void JobBook::heartbeat(const Turn& turn, Run& run, std::int64_t time, bool due) {
  if (run.id.shard != 0 || run.job.ended || (!run.job.started && !due)) return;
  const std::int64_t since =
      run.pulse.last_heartbeat == kNever ? kForever : distance(time, run.pulse.last_heartbeat);
  const bool changed = run.pulse.changed || run.pulse.told_step != run.course.last_step;
  const bool back = since < -options_.config.max_clock_skew.count();
  const auto nodes = static_cast<std::int64_t>(std::min<std::size_t>(run.job.launch.size(), 50));
  const bool joined = run.pulse.changed &&
                      (since >= nodes * kHeartbeatJoined || since <= -nodes * kHeartbeatJoined);
  if (!back && !joined && since < (due && !changed ? kHeartbeatEvery : kHeartbeatSoon)) return;
  if (!changed && !due) return;
  // Of two ranks one's clock is behind, and who reads takes the newest.
  const std::int64_t at = back ? time : std::max(time, run.pulse.last_heartbeat);
  run.pulse.last_heartbeat = at;
  run.pulse.told_step = run.course.last_step;
  run.pulse.changed = false;
  reports_.emit(
      turn, reports_.job_event(turn, run, core::JobPhase::heartbeat, ++run.pulse.heartbeats, at));
}

void JobBook::request_capture(const Turn& turn, Run& run, std::int64_t time) {
  if (run.id.shard != 0) return;
  std::map<std::string, Need> missing;
  const auto want = [&](const RuleSettings& rule) {
    for (const Need& need : rule.program->needs) unite(run.job, need, missing);
  };
  for (std::uint32_t rule = 0; rule < turn.rules().first_own; ++rule) want(turn.rules().all[rule]);
  for (const RuleSettings& rule : configured_.elsewhere) want(rule);
  if (missing.empty()) return;
  core::ValueMap collections;
  for (const auto& [name, need] : missing) collections.emplace_back(name, request_of(need));
  const core::Value plan = core::ValueMap{{"collections", std::move(collections)}};
  const std::string version = core::params_hash(core::to_json(plan, true));
  core::Command command;
  const std::string& asker = options_.asker;
  command.action = asker.empty() ? "capture" : "capture/" + asker;
  command.command_id = core::command_id(run.id.uid, run.attempt, command.action, version);
  command.run = run.id.uid;
  command.attempt = run.attempt;
  command.issued_at = core::wall_time(time);
  command.requested_by = asker.empty() ? "rules" : asker;
  command.reason.summary = "what the rules bound to this run need";
  command.args = core::ValueMap{{"version", version}, {"plans", core::ValueList{plan}}};
  reports_.emit(turn, std::move(command));
}

}  // namespace tocsin::rules
