// Jobs: lifecycle and dictionary frames, starts, heartbeats, ends, superseded attempts, and the
// request to capture what the rules need. The only file of this room that reads JSON.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kHeartbeatEvery = 10'000'000'000;  // event time between job heartbeats

Json parse(std::string_view text) { return Json::parse(text, nullptr, false); }

core::Value to_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned() || json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    core::ValueList list;
    for (const Json& item : json) list.push_back(to_value(item));
    return list;
  }
  if (json.is_object()) {
    core::ValueMap map;
    for (const auto& [key, item] : json.items()) map.emplace_back(key, to_value(item));
    return map;
  }
  return {};
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

void read_labels(const Json& object, std::vector<std::pair<std::string, std::string>>& labels) {
  if (!object.is_object()) return;
  labels.clear();
  for (const auto& [name, value] : object.items()) {
    labels.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

// Worst first; what nobody knows counts as interrupted.
int weight(const std::string& outcome) {
  if (outcome == "failed") return 3;
  if (outcome == "stopped_by_rule") return 2;
  if (outcome == "completed") return 0;
  return 1;
}

std::vector<std::string> captured_collections(const Json& capture) {
  std::vector<std::string> names;
  const auto collections = capture.find("collections");
  if (collections == capture.end()) return names;
  if (collections->is_array()) {
    for (const Json& name : *collections) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  } else if (collections->is_object()) {
    for (const auto& [name, body] : collections->items()) {
      names.push_back(name);
      const auto statistics = body.is_object() ? body.find("statistics") : body.end();
      if (!body.is_object() || statistics == body.end() || !statistics->is_array()) continue;
      for (const Json& one : *statistics) {
        if (one.is_string()) names.push_back(name + "/" + one.get<std::string>());
      }
    }
  }
  return names;
}

}  // namespace

core::Value value_from_json(std::string_view text) {
  const Json json = parse(text);
  return json.is_discarded() ? core::Value() : to_value(json);
}

void Engine::Impl::on_dictionary(Run& run, const core::FrameView& frame) {
  // Entry: hash u64, type u8, dtype u8, role u8, ndim u8, name bytes u32, attrs bytes u32, zero
  // u32, dims i64[ndim], name, attrs, padded to 8.
  constexpr std::size_t kHead = 24;
  const std::string_view body = frame.body_text();
  std::size_t at_byte = 0;
  for (std::size_t i = 0; i < frame.rows() && at_byte + kHead <= body.size(); ++i) {
    const char* entry = body.data() + at_byte;
    std::uint64_t hash = 0;
    std::array<std::uint8_t, 4> codes{};
    std::uint32_t name_bytes = 0;
    std::uint32_t attrs_bytes = 0;
    std::memcpy(&hash, entry, 8);
    std::memcpy(codes.data(), entry + 8, 4);
    std::memcpy(&name_bytes, entry + 12, 4);
    std::memcpy(&attrs_bytes, entry + 16, 4);
    const std::size_t dims = std::size_t{codes[3]} * 8;
    const std::size_t size = kHead + dims + name_bytes + attrs_bytes;
    if (at_byte + size > body.size()) return;
    at_byte += (size + 7) & ~std::size_t{7};
    const std::string_view text(entry + kHead + dims, name_bytes);
    const auto known = run.names.find(hash);
    if (known != run.names.end() && known->second.text == text) continue;
    if (run.names.size() >= 2 * std::size_t{options.config.max_units_per_run}) return;
    Name name;
    name.text = text;
    name.dtype = static_cast<core::Dtype>(codes[1]);
    name.role = static_cast<core::Role>(codes[2]);
    name.shape.resize(codes[3]);
    if (dims != 0) std::memcpy(name.shape.data(), entry + kHead, dims);
    if (attrs_bytes != 0) {
      const Json attrs = parse({entry + kHead + dims + name_bytes, attrs_bytes});
      if (attrs.is_object()) {
        // JSON producers have no start record: job and labels come with their worker's name.
        if (run.job.empty()) run.job = text_of(attrs, "job");
        if (!run.started && attrs.contains("labels")) read_labels(attrs["labels"], run.labels);
        name.higher_is_better = text_of(attrs, "direction") == "max";
        const auto collections = attrs.find("collections");
        if (collections != attrs.end() && collections->is_array()) {
          for (const Json& one : *collections) {
            if (one.is_string()) name.collections.push_back(one.get<std::string>());
          }
        }
      }
    }
    const auto type = static_cast<core::DictionaryType>(codes[0]);
    if (type == core::DictionaryType::worker || type == core::DictionaryType::node) {
      for (Worker& worker : run.workers) {
        if (worker.name_hash != hash || worker.named) continue;
        worker.name = name.text;
        worker.named = true;
      }
    }
    run.names[hash] = std::move(name);
    ++run.names_version;
  }
}

core::RunRef Engine::Impl::run_ref(const Run& run) const {
  core::RunRef out;
  out.uid = run.id.uid;
  out.attempt = run.attempt;
  out.job = run.job;
  out.platform = run.platform;
  if (!run.platform_ref.empty()) out.ref = value_from_json(run.platform_ref);
  return out;
}

core::JobEvent Engine::Impl::job_event(const Run& run, core::JobPhase phase, std::uint64_t number,
                                       std::int64_t time) const {
  core::JobEvent event;
  event.phase = phase;
  event.number = number;
  event.run = run_ref(run);
  for (const auto& [name, value] : run.labels) event.labels.set(name, value);
  for (const auto& [name, value] : options.labels) event.labels.set(name, value);
  event.world_size = run.world_size;
  for (std::uint32_t i = 0; i < gap_rule; ++i) event.rules.push_back(all_rules[i].name);
  event.time = core::wall_time(time);
  if (run.started) event.started_at = core::wall_time(run.started_at);
  if (run.last_step != kNever) event.step = run.last_step;
  return event;
}

void Engine::Impl::on_lifecycle(Run& run, std::uint32_t number, const core::FrameView& frame) {
  const core::FrameHeader& header = frame.header();
  const Json body = parse(frame.body_text());
  if (!body.is_object()) {
    ++stats.bad_lifecycle;
    return;
  }
  Worker& worker = run.workers[number];
  const std::string event = text_of(body, "event");
  if (event == "start") {
    worker.gone = false;
    worker.node = text_of(body, "node");
    if (worker.node.empty()) worker.node = text_of(body, "host");
    if (run.started || worker.agent) return;
    run.started = true;
    run.started_at = header.time;
    run.job = text_of(body, "job");
    const auto labels = body.find("labels");
    if (labels != body.end()) read_labels(*labels, run.labels);
    const auto platform = body.find("platform");
    Json reference = Json::object();
    if (platform != body.end() && platform->is_object()) {
      if (const std::string kind = text_of(*platform, "kind"); !kind.empty()) run.platform = kind;
      if (platform->contains("ref")) reference = platform->at("ref");
    }
    // A local process is stopped by its pid, so the run's identity carries it.
    if (reference.is_object()) {
      for (const char* key : {"pid", "pid_start", "host"}) {
        if (!reference.contains(key) && body.contains(key)) reference[key] = body[key];
      }
    }
    run.platform_ref = reference.dump(-1, ' ', false, Json::error_handler_t::replace);
    const auto capture = body.find("capture");
    if (capture != body.end() && capture->is_object()) {
      run.captured = captured_collections(*capture);
    }
    emit(job_event(run, core::JobPhase::started, 1, header.time));
    request_capture(run, header.time);
  } else if (event == "heartbeat") {
    if (run.id.shard != 0 || (run.last_heartbeat != kNever &&
                              distance(header.time, run.last_heartbeat) < kHeartbeatEvery)) {
      return;
    }
    run.last_heartbeat = header.time;
    emit(job_event(run, core::JobPhase::heartbeat, ++run.heartbeats, header.time));
  } else if (event == "leave" || event == "end") {
    if (worker.agent) return;
    worker.gone = true;
    if (event == "end") {
      const std::string outcome = text_of(body, "outcome");
      if (run.outcome.empty() || weight(outcome) > weight(run.outcome)) run.outcome = outcome;
      const auto code = body.find("exit_code");
      if (code != body.end() && code->is_number_integer() &&
          (!run.exit_code || *run.exit_code == 0)) {
        run.exit_code = code->get<int>();
      }
    }
    run.ended_at = std::max(run.ended_at, header.time);
    advance(run);
    check_end(run);
  }
}

void Engine::Impl::check_end(Run& run) {
  if (run.ended || run.outcome.empty()) return;
  std::size_t joined = 0;
  for (const Worker& worker : run.workers) {
    if (worker.agent) continue;
    ++joined;
    if (!worker.gone) return;
  }
  if (joined < run.world_size && !run.grace_over) return;  // somebody may not have been read yet
  finish(run, core::Resolution::job_ended);
}

void Engine::Impl::finish(Run& run, core::Resolution resolution) {
  if (run.ended) return;
  if (resolution == core::Resolution::job_ended) advance(run, true);
  flush_nodes(run);
  resolve_all(run, resolution);
  run.ended = true;
  // Nothing of an ended run is judged again; it is only remembered, so that it does not come back.
  if (resolution == core::Resolution::job_ended) {
    run.lanes.clear();
    for (auto& numbers : run.lane_index) numbers.fill(kNoLane);
    run.pending.clear();
    run.nodes.clear();
    run.series.clear();
    run.names.clear();
    run.units = 0;
  }
  for (std::uint32_t rule = 0; rule < gap_rule; ++rule) {
    const RuleProgress& progress = run.progress[rule];
    if (progress.state == core::RuleState::issues_found) continue;
    if (resolution != core::Resolution::job_ended) {
      set_state(run, rule, core::RuleState::stopped, std::string(core::to_string(resolution)));
    } else if (progress.state == core::RuleState::no_data) {
      set_state(run, rule, core::RuleState::no_data, "no input arrived that this rule could judge");
    } else {
      set_state(run, rule, core::RuleState::no_issues_found);
    }
  }
  if (resolution == core::Resolution::superseded || run.id.shard != 0 || !run.started) return;
  core::JobEvent event =
      job_event(run, core::JobPhase::ended, 1, run.ended_at != 0 ? run.ended_at : run.last_time);
  event.ended_at = event.time;
  event.outcome = resolution == core::Resolution::job_ended ? run.outcome : "lost";
  event.exit_code = run.exit_code;
  emit(std::move(event));
}

void Engine::Impl::supersede(Run& run, std::uint32_t attempt,
                             std::optional<std::int64_t> continues_from) {
  finish(run, core::Resolution::superseded);
  Run fresh;
  fresh.id = run.id;
  fresh.partition = run.partition;
  fresh.attempt = attempt;
  fresh.first_seen = now;
  fresh.last_arrival = now;
  fresh.last_any = now;
  fresh.progress.resize(all_rules.size());
  fresh.series.resize(series_rules.size());
  fresh.job = run.job;  // until the new attempt's start says otherwise
  fresh.labels = run.labels;
  fresh.names = std::move(run.names);
  fresh.names_version = run.names_version + 1;
  // Without a declared continuation the windows of the attempt before mean nothing any more.
  if (continues_from && !run.series.empty()) fresh.series = std::move(run.series);
  run = std::move(fresh);
}

void Engine::Impl::request_capture(Run& run, std::int64_t time) {
  if (run.id.shard != 0) return;
  std::map<std::string, std::vector<std::string>> missing;
  const auto has = [&](const std::string& name) {
    return std::find(run.captured.begin(), run.captured.end(), name) != run.captured.end();
  };
  for (std::uint32_t rule = 0; rule < gap_rule; ++rule) {
    for (const Need& need : all_rules[rule].program->needs) {
      if (!has(need.collection)) missing[need.collection];
      for (const std::string& statistic : need.statistics) {
        if (has(need.collection + "/" + statistic)) continue;
        std::vector<std::string>& wanted = missing[need.collection];
        if (std::find(wanted.begin(), wanted.end(), statistic) == wanted.end()) {
          wanted.push_back(statistic);
        }
      }
    }
  }
  if (missing.empty()) return;
  core::ValueMap collections;
  for (const auto& [name, statistics] : missing) {
    core::ValueMap body;
    if (!statistics.empty()) {
      core::ValueList list;
      for (const std::string& statistic : statistics) list.emplace_back(statistic);
      body.emplace_back("statistics", std::move(list));
    }
    collections.emplace_back(name, std::move(body));
  }
  const core::Value plan = core::ValueMap{{"collections", std::move(collections)}};
  const std::string version = core::params_hash(core::to_json(plan, true));
  core::Command command;
  command.action = "capture";
  command.command_id = core::command_id(run.id.uid, run.attempt, command.action, version);
  command.run = run.id.uid;
  command.attempt = run.attempt;
  command.issued_at = core::wall_time(time);
  command.requested_by = "rules";
  command.reason.summary = "what the rules bound to this run need";
  command.args = core::ValueMap{{"version", version}, {"plans", core::ValueList{plan}}};
  emit(std::move(command));
}

}  // namespace tocsin::rules
