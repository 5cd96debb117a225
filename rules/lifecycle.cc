// Jobs: lifecycle and dictionary frames, starts, heartbeats, ends, superseded attempts, and the
// request to capture what the rules need.
#include <algorithm>

#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

constexpr std::int64_t kHeartbeatEvery = 10'000'000'000;  // event time between job heartbeats,
constexpr std::int64_t kHeartbeatSoon = 1'000'000'000;    // while what they say changes

std::vector<std::string> captured_names(const core::CapturedPlan& plan) {
  std::vector<std::string> names;
  for (const auto& collection : plan.collections()) {
    names.push_back(collection.name);
    for (const std::string& statistic : collection.statistics) {
      names.push_back(collection.name + "/" + statistic);
    }
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

}  // namespace

void Engine::Impl::on_dictionary(Run& run, const core::Dictionary& names) {
  for (const core::NamedEntry& entry : names) {
    const Name* known = run.names.table.find(entry.hash);
    if (known != nullptr && known->text == entry.name) continue;
    if (run.names.table.size() >= 2 * std::size_t{options.config.max_units_per_run}) return;
    learn(run, entry);
  }
}

void Engine::Impl::learn(Run& run, const core::NamedEntry& entry) {
  if (entry.attrs_wrong) ++stats.bad_attrs;
  // JSON producers have no start record: job and labels come with their worker's name.
  if (run.job.name.empty()) run.job.name = entry.attrs.job;
  if (!run.job.started && !entry.attrs.labels.empty())
    run.job.labels = entry.attrs.labels.entries();
  Name name;
  name.text = entry.name;
  name.dtype = entry.dtype;
  name.role = entry.role;
  name.collections = entry.attrs.collections;
  name.direction = entry.attrs.direction;
  name.op_type = entry.attrs.op_type;
  name.shape.resize(entry.dims_bytes.size() / sizeof(std::int64_t));
  if (!name.shape.empty()) {
    std::memcpy(name.shape.data(), entry.dims_bytes.data(), entry.dims_bytes.size());
  }
  if (entry.type == core::DictionaryType::worker || entry.type == core::DictionaryType::node) {
    for (std::uint32_t w = 0; w < run.workers.size(); ++w) {
      Worker& worker = run.workers[w];
      if (worker.name_hash != entry.hash || worker.named) continue;
      part->cut.touch_worker(run, w);
      worker.name = name.text;
      worker.named = true;
    }
  }
  part->cut.touch_name(run, run.names.table.place(entry.hash));
  const bool lasting =
      entry.type == core::DictionaryType::series || entry.type == core::DictionaryType::node;
  run.names.table.set(entry.hash, std::move(name), lasting);
  ++run.names.version;
}

core::RunRef Engine::Impl::run_ref(const Run& run) const {
  core::RunRef out;
  out.uid = run.id.uid;
  out.attempt = run.attempt;
  out.job = run.job.name;
  out.platform = run.job.platform;
  out.ref = run.job.platform_ref;
  return out;
}

core::JobEvent Engine::Impl::job_event(const Run& run, core::JobPhase phase, std::uint64_t number,
                                       std::int64_t time) const {
  core::JobEvent event;
  event.phase = phase;
  event.number = number;
  event.run = run_ref(run);
  for (const auto& [name, value] : run.job.labels) event.labels.set(name, value);
  for (const auto& [name, value] : options.labels) event.labels.set(name, value);
  event.world_size = run.world_size;
  for (std::uint32_t i = 0; i < first_own; ++i) event.rules.push_back(all_rules[i].name);
  event.time = core::wall_time(time);
  if (run.job.started) event.started_at = core::wall_time(run.job.started_at);
  if (run.course.last_step != kNever) event.step = run.course.last_step;
  if (const std::size_t timed =
          std::min<std::size_t>(run.pulse.steps_timed, run.pulse.step_times.size());
      timed > 0) {
    std::array<std::int64_t, 16> times = run.pulse.step_times;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(timed / 2);
    std::nth_element(times.begin(), middle, times.begin() + static_cast<std::ptrdiff_t>(timed));
    event.step_seconds = static_cast<double>(*middle) / 1e9;
  }
  for (const auto& [node, newest] : run.job.launch) {
    event.launch[node] = newest.boot + "/" + std::to_string(newest.opened);
  }
  return event;
}

void Engine::Impl::on_start(Run& run, Worker& worker, const core::FrameHeader& header,
                            const core::Lifecycle& body) {
  worker.gone = false;
  worker.node = body.node.empty() ? body.host : body.node;
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
  if (run.job.started) return heartbeat(run, header.time, false);
  run.pulse.changed = false;
  run.job.started = true;
  run.job.started_at = header.time;
  run.job.name = body.job;
  if (!body.labels.empty()) run.job.labels = body.labels.entries();
  if (!body.platform.empty()) run.job.platform = body.platform;
  run.job.platform_ref = platform_reference(body);
  run.job.captured = captured_names(body.capture);
  emit(job_event(run, core::JobPhase::started, 1, header.time));
  request_capture(run, header.time);
}

void Engine::Impl::on_lifecycle(Run& run, std::uint32_t number, const core::FrameView& frame,
                                const core::Lifecycle& body) {
  const core::FrameHeader& header = frame.header();
  Worker& worker = run.workers[number];
  switch (body.event) {
    case core::LifecycleEvent::start:
      return on_start(run, worker, header, body);
    case core::LifecycleEvent::heartbeat:
      return heartbeat(run, header.time, true);
    case core::LifecycleEvent::leave:
    case core::LifecycleEvent::end:
      if (worker.agent) return;
      worker.gone = true;
      if (body.event == core::LifecycleEvent::end) {
        const bool known = body.outcome != "unknown" || !body.exit_code;
        run.job.worsen(known ? body.outcome : Job::outcome_of(body.exit_code), body.exit_code);
      }
      run.job.ended_at = std::max(run.job.ended_at, header.time);
      advance(run);
      return check_end(run);
    case core::LifecycleEvent::preflight:
      return on_preflight(run, number, body, header.time);
    case core::LifecycleEvent::died:
    case core::LifecycleEvent::applied:
    case core::LifecycleEvent::gap:
      return;
  }
}

// What the registry holds of a run: at most every second while it changes.
void Engine::Impl::heartbeat(Run& run, std::int64_t time, bool due) {
  if (run.id.shard != 0 || run.job.ended || (!run.job.started && !due)) return;
  const std::int64_t since =
      run.pulse.last_heartbeat == kNever ? kForever : distance(time, run.pulse.last_heartbeat);
  const bool changed = run.pulse.changed || run.pulse.told_step != run.course.last_step;
  const bool back = since < -options.config.max_clock_skew.count();
  if (!back && since < (due && !changed ? kHeartbeatEvery : kHeartbeatSoon)) return;
  if (!changed && !due) return;
  run.pulse.last_heartbeat = time;
  run.pulse.told_step = run.course.last_step;
  run.pulse.changed = false;
  emit(job_event(run, core::JobPhase::heartbeat, ++run.pulse.heartbeats, time));
}

void Engine::Impl::request_capture(Run& run, std::int64_t time) {
  if (run.id.shard != 0) return;
  std::map<std::string, std::vector<std::string>> missing;
  const auto has = [&](const std::string& name) {
    return std::find(run.job.captured.begin(), run.job.captured.end(), name) !=
           run.job.captured.end();
  };
  for (std::uint32_t rule = 0; rule < first_own; ++rule) {
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
