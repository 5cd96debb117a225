#include "app/stages/collect.h"

#include <algorithm>
#include <utility>

#include "actions/actions.h"
#include "core/json.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

// What waits while the transport is away: after that the oldest samples go.
constexpr std::size_t kMaxWaiting = 4096;
constexpr std::size_t kMaxUntold = 1024;
// From the end of a stopped job, as its parent saw it, to our seeing its processes gone.
constexpr core::Duration kLastWord = std::chrono::seconds(10);

std::int64_t integer(const core::Value* value) {
  const auto* number = core::as<std::int64_t>(value);
  return number == nullptr ? 0 : *number;
}

std::string text(const core::Value* value) {
  const auto* words = core::as<std::string>(value);
  return words == nullptr ? std::string() : *words;
}

collectors::Config with_node_name(collectors::Config config, const std::string& host) {
  if (config.node.empty()) config.node = host;
  return config;
}

}  // namespace

CollectStage::CollectStage(CollectOptions options, core::Clock& clock, core::Log& log,
                           core::Telemetry& telemetry)
    : options_(std::move(options)),
      clock_(clock),
      log_(log),
      telemetry_(telemetry),
      dropped_(telemetry.counter("tocsin_collectors_dropped_frames_total",
                                 "frames the transport did not take")),
      deaths_(telemetry.counter("tocsin_collectors_worker_deaths_total",
                                "worker processes of this node that were seen to end")),
      hidden_(telemetry.counter("tocsin_collectors_hidden_workers_total",
                                "times a worker was heard of whose process cannot be seen from "
                                "here: another PID namespace")),
      slot_(with_node_name(options_.collect, options_.host), log) {
  options_.collect = with_node_name(options_.collect, options_.host);
  wiring_.name = "collect";
  wiring_.part = "collectors";
  // Both compacted: the present state of every run, and what was asked of this node.
  wiring_.topics = {core::topic::kRegistry, core::topic::kCommands};
  wiring_.writer = "node-" + options_.collect.node;
  wiring_.batch = 256;
  wiring_.fetch_wait = std::chrono::milliseconds(500);
  wiring_.patience = std::chrono::milliseconds(100);  // a second is the shortest interval
}

CollectStage::~CollectStage() = default;

core::Status CollectStage::open(const Instant& now) {
  runs_.clear();
  out_.clear();
  // The collectors keep what they have counted; only what is known of runs is read again.
  if (!node_) {
    auto node = collectors::NodeCollector::open(options_.collect, {&telemetry_, &log_, &clock_});
    if (!node) return node.error();
    node_ = std::move(*node);
  }
  if (!presence_) {
    if (auto listener = collectors::PresenceListener::open()) {
      presence_ = std::move(*listener);
    } else {
      log_.warn("deaths_not_watched", {{"reason", listener.error().message}});
    }
  }
  incarnation_ =
      std::max(incarnation_ + 1, static_cast<std::uint64_t>(core::nanoseconds(now.wall)));
  unattributed_ = std::make_unique<NodeTarget>(core::RunUid{}, options_.collect.node, incarnation_);
  inputs_.clear();
  slot_.open(incarnation_);
  return core::ok();
}

void CollectStage::started(std::int32_t partition, const Instant& /*now*/) {
  inputs_.insert(partition);
}

void CollectStage::sample_by(const collectors::Config& config) {
  if (const auto changed = node_->change(config); !changed) {
    log_.warn("agent_not_changed", {{"error", changed.error().message}});
    return;
  }
  // Those that begin now watch no process yet.
  for (const auto& [uid, run] : runs_) {
    if (run.pid > 0) node_->watch_process(run.pid);
  }
}

// What was asked last counts: so not before all that was asked is read.
void CollectStage::follow_slot(const StageTick& tick) {
  const bool complete = !inputs_.empty() && std::all_of(inputs_.begin(), inputs_.end(), tick.live);
  if (!complete) return;
  if (const auto config = slot_.due(tick.now.wall)) sample_by(*config);
  queue(slot_.answers());
}

std::optional<Refusal> CollectStage::handle(const core::RecordView& record,
                                            const StageContext& context) {
  if (record.topic == core::topic::kCommands) return slot_.saw(record);
  if (record.tombstone) return std::nullopt;
  const auto decoded = ingest::decode_event(record);
  if (!decoded) return Refusal{"bad_event", decoded.error().message};
  if (const auto* job = std::get_if<core::JobEvent>(&decoded->event))
    on_job(*job, context.now.wall);
  return std::nullopt;
}

bool CollectStage::lives_here(const core::JobEvent& event) const {
  if (event.launch.contains(options_.collect.node) || event.launch.contains(options_.host)) {
    return true;
  }
  return text(core::find(event.run.ref, "host")) == options_.host;
}

void CollectStage::forget(const core::RunUid& run) {
  const auto known = runs_.find(run);
  if (known == runs_.end()) return;
  if (known->second.pid > 0) node_->forget_process(known->second.pid);
  runs_.erase(known);
}

// A parent only sees the signal that ended its child. That it was ours, only we can say.
void CollectStage::on_end(const core::JobEvent& event, core::WallTime now) {
  gone_.erase(event.run.uid);
  const auto known = runs_.find(event.run.uid);
  if (known == runs_.end()) return;
  const bool explained = event.outcome == "completed" || event.outcome == "stopped_by_rule" ||
                         event.outcome == "stopped_by_person";
  // Who closes its hook before it ends cannot say with which code: that is seen here, a moment later.
  const bool coming = explained && !event.exit_code && watch_.watches(event.run.uid);
  if (coming || (!explained && options_.stops && options_.stops->stops(event.run.uid))) {
    known->second.over = now;
    return;
  }
  forget(event.run.uid);
  watch_.forget(event.run.uid);
}

void CollectStage::on_job(const core::JobEvent& event, core::WallTime now) {
  if (event.phase == core::JobPhase::ended) return on_end(event, now);
  if (!lives_here(event)) return forget(event.run.uid);
  const std::int64_t pid = integer(core::find(event.run.ref, "pid"));
  if (pid > 0 && text(core::find(event.run.ref, "host")) == options_.host) {
    // The registry may still hold runs that ended without a word, unless we have seen it live: the
    // end of a short one comes before its record.
    const auto fence = actions::process_fence(event.run.ref);
    if (fence && !watch_.watches(event.run.uid) &&
        !actions::LocalProcess::open(*fence, options_.host)) {
      if (gone_.size() >= kMaxUntold) gone_.erase(gone_.begin());
      gone_.insert_or_assign(event.run.uid, event);
      return;
    }
  }
  auto [entry, fresh] = runs_.try_emplace(
      event.run.uid, Run{NodeTarget(event.run.uid, options_.collect.node, incarnation_), 0, {}});
  Run& run = entry->second;
  run.over.reset();
  run.target.set_attempt(event.run.attempt);
  if (run.pid == pid) return;
  if (run.pid > 0) node_->forget_process(run.pid);
  run.pid = pid;
  if (pid > 0) node_->watch_process(pid);
}

void CollectStage::queue(std::vector<core::OutRecord> records) {
  for (auto& record : records) out_.push_back(std::move(record));
  while (out_.size() > kMaxWaiting) {
    out_.pop_front();
    dropped_.add();
  }
}

void CollectStage::listen() {
  if (!presence_) return;
  for (const auto& [worker, process] : presence_->poll()) {
    if (watch_.watch(worker, process) == collectors::Watching::hidden) hidden_.add();
  }
}

// A death is told to the run that `registry` shows here; of a run that is not there yet it waits.
void CollectStage::tell_deaths(core::WallTime now) {
  for (auto& death : watch_.poll()) {
    deaths_.add();
    log_.info("worker_process_ended", {{"run", core::to_text(death.worker.run)},
                                       {"worker", death.worker.name},
                                       {"pid", death.pid}});
    untold_.push_back(std::move(death));
  }
  while (untold_.size() > kMaxUntold) untold_.pop_front();
  for (const collectors::Death& death : untold_) {
    // Its process was gone when its record was read, before it was heard of itself.
    if (auto record = gone_.extract(death.worker.run)) on_job(record.mapped(), now);
  }
  std::erase_if(untold_, [&](const collectors::Death& death) {
    const auto run = runs_.find(death.worker.run);
    if (run == runs_.end()) return false;
    core::Lifecycle told = collectors::to_lifecycle(death);
    if (options_.stops) {
      const auto stop = options_.stops->stop_of(death.worker.run, death.worker.incarnation);
      told.command_id = stop.command_id;
      if (stop.by_person) told.outcome = "stopped_by_person";
    }
    queue({run->second.target.died(told, now)});
    return true;
  });
}

void CollectStage::forget_ended(core::WallTime now) {
  std::vector<core::RunUid> gone;
  for (const auto& [uid, run] : runs_) {
    if (run.over && now - *run.over >= kLastWord) gone.push_back(uid);
  }
  for (const auto& uid : gone) {
    forget(uid);
    watch_.forget(uid);
  }
}

std::optional<core::Duration> CollectStage::tick(const StageTick& tick) {
  listen();
  tell_deaths(tick.now.wall);
  forget_ended(tick.now.wall);
  follow_slot(tick);
  return node_->tick(tick.now.wall, tick.now.steady, [this](const collectors::Sweep& sweep) {
    if (runs_.empty()) queue(unattributed_->sweep(sweep));
    for (auto& [uid, run] : runs_) {
      if (!run.over) queue(run.target.sweep(sweep));
    }
  });
}

StageOutput CollectStage::take(const Instant& /*now*/) {
  StageOutput out;
  for (auto& record : out_) out.records.push_back({0, std::move(record)});
  out_.clear();
  return out;
}

}  // namespace tocsin::app
