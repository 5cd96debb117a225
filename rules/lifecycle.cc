// Jobs: lifecycle and dictionary frames, starts, heartbeats, ends, superseded attempts, and the
// request to capture what the rules need.
#include <algorithm>

#include "core/json.h"
#include "rules/engine_impl.h"

namespace tocsin::rules {
namespace {

constexpr std::int64_t kHeartbeatEvery = 10'000'000'000;  // event time between job heartbeats,
constexpr std::int64_t kHeartbeatSoon = 1'000'000'000;    // while what they say changes
constexpr int kExitStopped = 77;                          // a training process that a rule stopped
constexpr std::size_t kMaxAttrs = 64 * 1024;              // of one dictionary entry

std::string text_of(const core::Value& object, std::string_view key) {
  const core::Value* found = core::find(object, key);
  const auto* text = found == nullptr ? nullptr : std::get_if<std::string>(&found->storage());
  return text == nullptr ? std::string() : *text;
}

void read_labels(const core::Value& object,
                 std::vector<std::pair<std::string, std::string>>& labels) {
  const auto* map = std::get_if<core::ValueMap>(&object.storage());
  if (map == nullptr) return;
  labels.clear();
  for (const auto& [name, value] : *map) {
    const auto* text = std::get_if<std::string>(&value.storage());
    labels.emplace_back(name, text != nullptr ? *text : core::to_json(value));
  }
  std::sort(labels.begin(), labels.end());
}

// Worst first.
int weight(const std::string& outcome) {
  if (outcome == "failed") return 4;
  if (outcome == "stopped_by_rule") return 3;
  if (outcome == "lost" || outcome == "unknown") return 2;
  if (outcome == "completed") return 0;
  return 1;
}

// What a process came to of which only the exit code is known.
std::string outcome_of(std::optional<int> code) {
  if (!code) return "lost";
  if (*code == kExitStopped) return "stopped_by_rule";
  return *code == 0 ? "completed" : "failed";
}

void worsen(Run& run, const std::string& outcome, std::optional<int> code) {
  if (run.outcome.empty() || weight(outcome) > weight(run.outcome)) run.outcome = outcome;
  if (code && (!run.exit_code || *run.exit_code == 0)) run.exit_code = code;
}

std::string how(const std::optional<int>& code, const std::optional<int>& signal) {
  if (signal) return " was ended by signal " + std::to_string(*signal);
  if (code) return " ended with exit code " + std::to_string(*code);
  return " is gone; nobody knows how it ended";
}

void add_texts(const core::Value& list, const std::string& prefix,
               std::vector<std::string>& names) {
  const auto* items = std::get_if<core::ValueList>(&list.storage());
  if (items == nullptr) return;
  for (const core::Value& item : *items) {
    if (const auto* text = std::get_if<std::string>(&item.storage()))
      names.push_back(prefix + *text);
  }
}

std::vector<std::string> captured_collections(const core::Value& capture) {
  std::vector<std::string> names;
  const core::Value* collections = core::find(capture, "collections");
  if (collections == nullptr) return names;
  add_texts(*collections, "", names);
  const auto* bodies = std::get_if<core::ValueMap>(&collections->storage());
  if (bodies == nullptr) return names;
  for (const auto& [name, body] : *bodies) {
    names.push_back(name);
    if (const core::Value* statistics = core::find(body, "statistics")) {
      add_texts(*statistics, name + "/", names);
    }
  }
  return names;
}

// A local process is stopped by its pid, so the run's identity carries it.
std::string platform_reference(const core::Lifecycle& body) {
  core::ValueMap reference;
  if (const auto* map = std::get_if<core::ValueMap>(&body.platform_ref.storage())) reference = *map;
  const auto add = [&](std::string_view key, core::Value value) {
    const bool there = std::any_of(reference.begin(), reference.end(),
                                   [&](const auto& entry) { return entry.first == key; });
    if (!there) reference.emplace_back(key, std::move(value));
  };
  if (body.pid) add("pid", *body.pid);
  if (body.pid_start) add("pid_start", *body.pid_start);
  if (!body.host.empty()) add("host", body.host);
  return core::to_json(reference, true);
}

}  // namespace

core::Value value_from_json(std::string_view text) {
  auto parsed = core::parse_json(text, core::kMaxFrameBytes);
  return parsed ? std::move(*parsed) : core::Value();
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
    const Name* known = run.names.find(hash);
    if (known != nullptr && known->text == text) continue;
    if (run.names.size() >= 2 * std::size_t{options.config.max_units_per_run}) return;
    Name name;
    name.text = text;
    name.dtype = static_cast<core::Dtype>(codes[1]);
    name.role = static_cast<core::Role>(codes[2]);
    name.shape.resize(codes[3]);
    if (dims != 0) std::memcpy(name.shape.data(), entry + kHead, dims);
    if (attrs_bytes != 0) {
      const auto attrs =
          core::parse_json({entry + kHead + dims + name_bytes, attrs_bytes}, kMaxAttrs);
      if (attrs) {
        // JSON producers have no start record: job and labels come with their worker's name.
        if (run.job.empty()) run.job = text_of(*attrs, "job");
        const core::Value* labels = core::find(*attrs, "labels");
        if (!run.started && labels != nullptr) read_labels(*labels, run.labels);
        name.higher_is_better = text_of(*attrs, "direction") == "max";
        if (const core::Value* collections = core::find(*attrs, "collections")) {
          add_texts(*collections, "", name.collections);
        }
      } else {
        ++stats.bad_attrs;
      }
    }
    const auto type = static_cast<core::DictionaryType>(codes[0]);
    if (type == core::DictionaryType::worker || type == core::DictionaryType::node) {
      for (std::uint32_t w = 0; w < run.workers.size(); ++w) {
        Worker& worker = run.workers[w];
        if (worker.name_hash != hash || worker.named) continue;
        part->cut.touch_worker(run, w);
        worker.name = name.text;
        worker.named = true;
      }
    }
    part->cut.touch_name(run, run.names.place(hash));
    const bool lasting = type == core::DictionaryType::series || type == core::DictionaryType::node;
    run.names.set(hash, std::move(name), lasting);
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
  for (std::uint32_t i = 0; i < first_own; ++i) event.rules.push_back(all_rules[i].name);
  event.time = core::wall_time(time);
  if (run.started) event.started_at = core::wall_time(run.started_at);
  if (run.last_step != kNever) event.step = run.last_step;
  if (const std::size_t timed = std::min<std::size_t>(run.steps_timed, run.step_times.size());
      timed > 0) {
    std::array<std::int64_t, 16> times = run.step_times;
    const auto middle = times.begin() + static_cast<std::ptrdiff_t>(timed / 2);
    std::nth_element(times.begin(), middle, times.begin() + static_cast<std::ptrdiff_t>(timed));
    event.step_seconds = static_cast<double>(*middle) / 1e9;
  }
  for (const auto& [node, newest] : run.launch) {
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
    Opened& newest = run.launch[worker.node];
    const std::string boot = body.boot_id.substr(0, 8);
    // Opening times count from the boot: they compare within one only.
    if (newest.boot != boot || newest.opened < *body.opened) {
      newest = {boot, *body.opened};
      run.job_changed = true;
    }
  }
  if (run.started) return heartbeat(run, header.time, false);
  run.job_changed = false;
  run.started = true;
  run.started_at = header.time;
  run.job = body.job;
  if (!body.labels.empty()) run.labels = body.labels.entries();
  if (!body.platform.empty()) run.platform = body.platform;
  run.platform_ref = platform_reference(body);
  run.captured = captured_collections(body.capture);
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
        worsen(run, known ? body.outcome : outcome_of(body.exit_code), body.exit_code);
      }
      run.ended_at = std::max(run.ended_at, header.time);
      advance(run);
      return check_end(run);
    case core::LifecycleEvent::preflight:
    case core::LifecycleEvent::died:
    case core::LifecycleEvent::applied:
    case core::LifecycleEvent::gap:
      return;
  }
}

// What the registry holds of a run: at most every second while it changes.
void Engine::Impl::heartbeat(Run& run, std::int64_t time, bool due) {
  if (run.id.shard != 0 || run.ended || (!run.started && !due)) return;
  const std::int64_t since =
      run.last_heartbeat == kNever ? kForever : distance(time, run.last_heartbeat);
  const bool changed = run.job_changed || run.told_step != run.last_step;
  const bool back = since < -options.config.max_clock_skew.count();
  if (!back && since < (due && !changed ? kHeartbeatEvery : kHeartbeatSoon)) return;
  if (!changed && !due) return;
  run.last_heartbeat = time;
  run.told_step = run.last_step;
  run.job_changed = false;
  emit(job_event(run, core::JobPhase::heartbeat, ++run.heartbeats, time));
}

// The node's agent saw a process go. Only of the newest attempt: older ones are over.
void Engine::Impl::on_died(Run& run, const core::Lifecycle& body, std::int64_t time) {
  const std::uint64_t hash = core::name_hash(body.died_worker);
  if (!run.launches.holds(hash, body.died_incarnation)) return;
  const std::optional<int> code = body.signal ? 128 + *body.signal : body.exit_code;
  const std::string outcome = outcome_of(code);
  const bool open_end = run.outcome.empty() || run.outcome == "unknown" || run.outcome == "lost";
  if (run.ended) {
    if (!open_end || !code) return;  // it has said so itself, or nothing new is known
    run.outcome = outcome;
    run.exit_code = code;
    return finish_again(run, time);
  }
  const auto worker = std::find_if(run.workers.begin(), run.workers.end(), [&](const Worker& one) {
    return one.name_hash == hash && one.incarnation == body.died_incarnation;
  });
  if (worker == run.workers.end() || worker->agent || (worker->gone && !open_end)) return;
  const auto number = static_cast<std::uint32_t>(worker - run.workers.begin());
  part->cut.touch_worker(run, number);
  if (worker->gone && code) run.outcome.clear();  // its own last word was that it does not know
  worker->gone = true;
  worsen(run, outcome, code);
  run.ended_at = std::max(run.ended_at, time);
  sync(run, number);
  if (outcome == "failed") {
    Finding finding;
    finding.observed = {"exit_code", static_cast<double>(*code)};
    finding.summary = worker->name + how(body.exit_code, body.signal) + ".";
    raise(run, Operational::job_failed, kNoLane, time, std::move(finding));
  }
  advance(run);
  check_end(run);
}

void Engine::Impl::check_end(Run& run) {
  if (run.ended || run.outcome.empty()) return;
  if (run.clock.gone() < run.clock.present()) return;
  if (run.clock.present() < run.world_size && !run.grace_over) return;  // not read yet, perhaps
  finish(run, core::Resolution::job_ended);
}

void Engine::Impl::finish(Run& run, core::Resolution resolution, bool lost) {
  if (run.ended) return;
  if (resolution == core::Resolution::job_ended) advance(run, true);
  flush_nodes(run);
  resolve_all(run, resolution);
  run.ended = true;
  run.lost = lost;
  for (std::uint32_t rule = 0; rule < first_own; ++rule) {
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
  if (lost) worsen(run, "lost", std::nullopt);
  if (resolution == core::Resolution::expired && run.outcome.empty()) run.outcome = "lost";
  if (resolution != core::Resolution::superseded) tell_end(run, run.outcome);
  // Nothing of an ended run is judged again; it is only remembered, so that it does not come back.
  if (resolution == core::Resolution::job_ended && !lost) {
    give_up_parts(run, true);
    run.pending = {};
    run.partial.clear();
    run.nodes.clear();
    run.series = {};
    run.series_lives.clear();
    run.clocks.clear();
    run.captured = {};
    run.clock = {};
    run.units = 0;
  }
}

void Engine::Impl::tell_end(Run& run, const std::string& outcome) {
  if (run.id.shard != 0 || !run.started) return;
  const std::int64_t time = run.ended_at != 0 ? run.ended_at : run.last_time;
  core::JobEvent event = job_event(run, core::JobPhase::ended, ++run.ends, time);
  event.ended_at = event.time;
  event.outcome = outcome;
  event.exit_code = run.exit_code;
  emit(std::move(event));
  const std::string job = run.job.empty() ? "The job" : run.job;
  Finding finding;
  if (outcome == "failed") {
    ++stats.failed_jobs;
    finding.observed = {"exit_code", static_cast<double>(run.exit_code.value_or(0))};
    finding.summary = job + " failed" +
                      (run.exit_code ? " with exit code " + std::to_string(*run.exit_code) : "") +
                      ".";
    raise(run, Operational::job_failed, kNoLane, time, std::move(finding));
  } else if (outcome == "lost" || outcome == "unknown") {
    ++stats.lost_jobs;
    finding.summary = outcome == "lost"
                          ? job + " is lost: nothing is heard of its processes any more."
                          : job + " ended without closing its hook; how it ended is not known.";
    raise(run, Operational::job_lost, kNoLane, time, std::move(finding));
  }
}

// How a run ended became known after its end.
void Engine::Impl::finish_again(Run& run, std::int64_t time) {
  lower(run, Operational::job_lost, kNoLane, time);
  tell_end(run, run.outcome);
  if (!run.lost) return;
  run.lost = false;
  give_up_parts(run, true);
  run.clock = {};
  run.units = 0;
}

// A job that counted as lost is heard of again: it goes on where it was.
void Engine::Impl::revive(Run& run, std::int64_t time) {
  run.ended = run.lost = false;
  if (run.outcome == "lost") run.outcome.clear();
  run.ended_at = 0;
  ++stats.revived_jobs;
  lower(run, Operational::job_lost, kNoLane, time);
  for (std::uint32_t rule = 0; rule < first_own; ++rule) {
    if (run.progress[rule].state == core::RuleState::no_issues_found) {
      set_state(run, rule, core::RuleState::in_progress);
    }
  }
  run.job_changed = true;
  heartbeat(run,
            std::max(time, run.last_heartbeat == kNever
                               ? time
                               : add(run.last_heartbeat, std::chrono::nanoseconds(kHeartbeatSoon))),
            true);
}

// The parts go to the cut, which keeps them for as long as it needs them.
void Engine::Impl::give_up_parts(Run& run, bool names) {
  auto gone = std::make_unique<Run>();
  gone->id = run.id;
  gone->life = run.life++;
  gone->head_mark = std::exchange(run.head_mark, {});
  gone->workers = std::exchange(run.workers, {});
  gone->worker_marks = std::exchange(run.worker_marks, {});
  gone->lanes = std::exchange(run.lanes, {});
  gone->lane_marks = std::exchange(run.lane_marks, {});
  gone->names_life = run.names_life;
  if (names) {
    gone->names = std::exchange(run.names, {});
    gone->name_marks = std::exchange(run.name_marks, {});
    ++run.names_life;
    ++run.names_version;
  }
  run.worker_index.clear();
  run.lane_index.clear();
  part->cut.touch_head(run);
  for (const NameTable::Entry& entry : gone->names.entries()) {
    if (!entry.lasting) continue;
    part->cut.touch_name(run, run.names.place(entry.hash));
    run.names.set(entry.hash, entry.name, true);
  }
  part->cut.retire(std::move(gone));
}

void Engine::Impl::supersede(Run& run, std::uint32_t attempt,
                             std::optional<std::int64_t> continues_from) {
  finish(run, core::Resolution::superseded);
  resolve_all(run, core::Resolution::superseded);  // what spoke of its end
  give_up_parts(run, false);
  Run fresh;
  fresh.id = run.id;
  fresh.life = run.life;
  fresh.names_life = run.names_life;
  fresh.launches = std::move(run.launches);
  fresh.head_mark = run.head_mark;
  fresh.name_marks = std::move(run.name_marks);
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
