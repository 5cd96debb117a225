#include "app/stages/evaluate.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "app/view/events_log.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

// One piece of a snapshot: small enough that evaluation never stands still for long, and that a
// transaction stays far below what a broker takes in one go.
constexpr std::size_t kPieceBytes = 512U << 10;
// Without transactions an issue waits for nobody: so many frames take less than a millisecond.
constexpr std::size_t kTakeEvery = 32;
constexpr core::Duration kCountEvery = std::chrono::seconds(1);
// Of the keys of state that belongs to the engine of one hosted rule.
constexpr std::string_view kHostedState = "hosted/";

}  // namespace

EvaluateStage::EvaluateStage(EvaluateOptions options, core::Log& log, core::Telemetry& telemetry)
    : options_(std::move(options)),
      log_(log),
      stats_(telemetry),
      telemetry_topic_(ingest::full_topic_name(options_.topic_prefix, core::topic::kTelemetry)),
      source_("/" + (options_.cluster.empty() ? "" : options_.cluster + "/") + "engine"),
      comparisons_(options_.comparisons, log),
      registry_(options_.registry, log) {
  wiring_.name = "evaluate";
  wiring_.part = "rules";
  wiring_.group = options_.topic_prefix + "-rules";
  wiring_.topics = {core::topic::kTelemetry};
  at_least_once_ = options_.engine.delivery != "exactly_once";
  wiring_.ahead = at_least_once_;
  if (at_least_once_) wiring_.take_every = kTakeEvery;
  // At least once too: of a state, a part is worth nothing, and a process that was replaced must not write over it.
  wiring_.transactional_id = options_.topic_prefix + "-rules-" + options_.instance;
  wiring_.writer = "engine";
  wiring_.state_topic = core::topic::kRulesState;
  wiring_.state = StateScope::input_partition;
  // An issue is committed when its batch is through: no more records than take some milliseconds.
  wiring_.batch = 256;
  wiring_.commit_every = options_.engine.commit_interval;
  if (options_.hosted.empty()) return;
  wiring_.name += "-" + options_.hosted;
  wiring_.group += "-" + options_.hosted;
  wiring_.writer += "-" + options_.hosted;
  wiring_.transactional_id =
      options_.topic_prefix + "-rules-" + options_.hosted + "-" + options_.instance;
  state_prefix_ = std::string(kHostedState) + options_.hosted + "/";
}

EvaluateStage::~EvaluateStage() = default;

core::Status EvaluateStage::open(const Instant& now) {
  adopt_rules(now);
  rules::EngineOptions engine_options{options_.cluster, {}, options_.engine};
  if (options_.asks) engine_options.asker = options_.hosted;
  engine_options.shares_comparisons = options_.comparisons != nullptr;
  engine_options.labels.assign(options_.labels.begin(), options_.labels.end());
  if (options_.host) engine_options.host = options_.host();
  auto engine = rules::Engine::create(options_.rules, engine_options);
  if (!engine) return engine.error();
  engine_ = std::move(*engine);
  live_.clear();
  faults_.clear();
  unreported_.clear();
  piece_taken_ = piece_committing_ = ending_ = false;
  comparisons_.start_over();
  registry_.start_over();
  stats_.start_over();
  counted_at_.reset();

  return core::ok();
}

core::Status EvaluateStage::restore(std::int32_t partition, const core::RecordView& record) {
  std::string_view key = record.key.value_or("");
  if (state_prefix_.empty() ? key.starts_with(kHostedState) : !key.starts_with(state_prefix_)) {
    return core::ok();  // of another engine
  }
  key.remove_prefix(state_prefix_.size());
  return engine_->restore(
      partition, key,
      record.tombstone ? std::nullopt : std::optional<std::string_view>(record.text()));
}

core::Result<std::vector<core::Position>> EvaluateStage::restored(
    std::int32_t partition, std::span<const core::Position> committed, const Instant& /*now*/) {
  auto state = engine_->finish_restore(partition, committed);
  if (!state) return state.error();
  if (!state->positions) return std::vector<core::Position>(committed.begin(), committed.end());
  // Streams that the state does not name stood before their first record.
  std::vector<core::Position> from = *state->positions;
  for (const auto& position : committed) {
    const bool named = std::any_of(from.begin(), from.end(), [&](const core::Position& one) {
      return one.where == position.where;
    });
    if (!named) from.push_back({position.where, 0});
  }
  return from;
}

void EvaluateStage::started(std::int32_t partition, const Instant& now) {
  engine_->go_live(partition, now.wall);
  // The first commit carries a snapshot, so that a restart never lacks one.
  live_[partition] = {now.steady, false};
}

void EvaluateStage::state_fault(std::int32_t partition, const core::Error& error,
                                const Instant& /*now*/) {
  engine_->mark_incomplete(partition, error.message);
}

std::optional<Refusal> EvaluateStage::handle(const core::RecordView& record,
                                             const StageContext& context) {
  const rules::RecordRef ref{telemetry_topic_, record.stream, record.partition, record.offset,
                             core::wall_time(record.timestamp)};
  // In a replay, deadlines count from when the record came, not from now.
  const core::WallTime arrival =
      context.replaying ? core::wall_time(record.timestamp) : context.now.wall;
  std::optional<Refusal> refusal;
  const auto take_frame = [&](const core::FrameView& frame, const core::FrameBody& body) {
    engine_->on_frame(frame, body, ref, arrival);
  };
  try {
    if (const auto failure = ingest::decode_telemetry(record, json_, take_frame)) {
      refusal = Refusal{std::string(ingest::to_string(failure->code)), failure->detail};
    }
  } catch (const std::exception& e) {
    refusal = Refusal{"handler_failed", e.what()};
  }
  if (refusal) engine_->skip(ref);
  // The engine of all other rules reads the same records, and sends them to the dead letters.
  if (!options_.hosted.empty()) return std::nullopt;
  return refusal;
}

void EvaluateStage::reload(rules::RulesConfig rules) {
  const core::MutexLock lock(mutex_);
  fresh_rules_ = std::move(rules);
}

void EvaluateStage::adopt_rules(const Instant& now) {
  std::optional<rules::RulesConfig> fresh;
  {
    const core::MutexLock lock(mutex_);
    fresh.swap(fresh_rules_);
  }
  if (!fresh) return;
  options_.rules = std::move(*fresh);
  if (engine_ == nullptr) return;
  if (const auto status = engine_->reload(options_.rules, now.wall); !status) {
    log_.error("rules_not_reloaded", {{"error", status.error().message}});
  }
}

// Further shards of runs see no launches and no ends of their own.
void EvaluateStage::settle_shards(const StageTick& tick) {
  bool read = false;
  for (const auto& [partition, snapshot] : live_) {
    const std::vector<core::RunUid> runs = engine_->further_shards(partition);
    if (runs.empty()) continue;
    read = read || registry_.read(tick.now.steady);
    if (!read) return;
    for (const core::RunUid& run : runs) {
      const core::JobEvent* newest = registry_.find(run);
      if (newest != nullptr) {
        engine_->settle(partition, *newest, tick.now.wall, tick.live(partition));
      }
    }
  }
}

std::optional<core::Duration> EvaluateStage::tick(const StageTick& tick) {
  adopt_rules(tick.now);
  engine_->tick(tick.now.wall, tick.live);
  settle_shards(tick);
  bool more = false;  // of comparisons
  for (const auto& [partition, snapshot] : live_) {
    const std::uint64_t wants = engine_->compares(partition);
    if (wants == 0) continue;
    const auto learn = [&, number = partition](const rules::Comparison& record) {
      engine_->learn(number, record, tick.now.wall);
    };
    more = comparisons_.feed(partition, wants, tick.now.steady, learn) || more;
  }
  // Units and open issues are counted run by run: nobody reads them ten times a second.
  if (!counted_at_ || tick.now.steady - *counted_at_ >= kCountEvery) {
    counted_at_ = tick.now.steady;
    stats_.update(engine_->stats(), tick.now.wall);
  }
  bool pieces = false;
  for (const auto& [partition, snapshot] : live_) pieces = pieces || snapshot.running;
  if ((pieces && !piece_waits()) || more) return tick.now.steady;
  return std::nullopt;
}

// What an engine tells of jobs and of records is told by the engine of all other rules.
bool EvaluateStage::tells(const rules::Event& event) const {
  if (options_.hosted.empty()) return true;
  if (const auto* issue = std::get_if<core::Issue>(&event)) return issue->rule == options_.hosted;
  const auto* command = std::get_if<core::Command>(&event);
  if (command != nullptr) return options_.asks && command->action.starts_with("capture/");
  return std::holds_alternative<core::RuleStatusEvent>(event);
}

void EvaluateStage::write(std::int32_t partition, const rules::Event& event, bool ahead,
                          StageOutput& out) const {
  const auto add = [&](core::OutRecord record) {
    out.records.push_back({partition, std::move(record), ahead});
  };
  if (const auto* issue = std::get_if<core::Issue>(&event)) {
    add(ingest::encode_issue(*issue));
  } else if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
    add(ingest::encode_rule_status(*status, options_.cluster));
  } else if (const auto* job = std::get_if<core::JobEvent>(&event)) {
    add(ingest::encode_job(*job, options_.cluster));
    add(ingest::encode_registry(*job, options_.cluster));
  } else if (const auto* command = std::get_if<core::Command>(&event)) {
    add(ingest::encode_command(*command, source_));
  }
}

StageOutput EvaluateStage::take(const Instant& now) {
  StageOutput out;
  const auto add_state = [&](rules::StateRecord entry) {
    core::OutRecord record{core::topic::kRulesState, state_prefix_ + entry.key,
                           std::move(entry.value)};
    record.partition = entry.partition;
    out.records.push_back({entry.partition, std::move(record)});
  };
  for (const std::int32_t partition : engine_->pending()) {
    rules::Output decided = engine_->take(partition);
    // What a clock decided stands in the log of decisions first: it is not found again as it was.
    const bool ahead = at_least_once_ && decided.log.empty();
    // Issues first: what else the same record brought goes to other topics, and they wait for nothing.
    for (const bool issues : {true, false}) {
      for (const auto& event : decided.events) {
        if (std::holds_alternative<core::Issue>(event) == issues && tells(event)) {
          write(partition, event, ahead, out);
        }
      }
    }
    for (auto& event : decided.events) {
      if (tells(event)) unreported_.add(std::move(event));
    }
    for (auto& entry : decided.log) add_state(std::move(entry));
    for (rules::Comparison& one : decided.comparisons) {
      core::OutRecord record{core::topic::kComparisons, std::move(one.key), std::move(one.value)};
      out.records.push_back({partition, std::move(record)});
    }
  }
  // One piece of one partition's snapshot at a time, behind what was decided before it.
  for (auto& [partition, snapshot] : live_) {
    if (piece_waits() || (!snapshot.running && now.steady < snapshot.due)) continue;
    const std::size_t before = out.records.size();
    snapshot.running = engine_->snapshot(partition, kPieceBytes, add_state);
    if (!snapshot.running) snapshot.due = now.steady + options_.engine.snapshot_interval;
    piece_taken_ = out.records.size() > before;
    break;
  }
  return out;
}

void EvaluateStage::committing() {
  unreported_.committing();
  piece_committing_ = std::exchange(piece_taken_, false) || piece_committing_;
}

void EvaluateStage::committed(const Instant& now) {
  piece_committing_ = false;
  unreported_.committed([&](const rules::Event& event) {
    if (const auto* issue = std::get_if<core::Issue>(&event)) {
      log_issue(log_, *issue, now.wall);
    } else if (const auto* job = std::get_if<core::JobEvent>(&event)) {
      log_job(log_, *job);
    } else if (const auto* rule = std::get_if<core::RuleStatusEvent>(&event)) {
      log_rule(log_, *rule);
    }
  });
}

void EvaluateStage::revoked(std::span<const core::StreamPartition> partitions) {
  for (const auto& gone : partitions) {
    live_.erase(gone.partition);
    comparisons_.forget(gone.partition);
    engine_->drop(gone.partition);
  }
  piece_taken_ = false;  // what waited went with its partition
}

void EvaluateStage::finish(const Instant& now) {
  ending_ = true;
  for (auto& [partition, snapshot] : live_) snapshot.due = now.steady;
}

}  // namespace tocsin::app
