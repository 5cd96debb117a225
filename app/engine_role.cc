#include "app/engine_role.h"

#include <algorithm>

#include "app/events_log.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBatch = 2048;
constexpr core::Duration kTickEvery = 100ms;
constexpr core::Duration kFirstBackoff = 50ms;
constexpr core::Duration kMaxBackoff = 5s;
constexpr std::size_t kMaxPending = 10'000;
constexpr const char* kStateTopic = "rules-state";

}  // namespace

struct EngineRole::Probe {
  explicit Probe(core::Telemetry& telemetry)
      : sink(telemetry),
        commits(telemetry.counter("tocsin_rules_commits_total",
                                  "commits of issues, state and positions")),
        failed(telemetry.counter("tocsin_rules_commit_failures_total",
                                 "commits that had to be repeated or given up")),
        issues(telemetry.counter("tocsin_rules_issues_total", "issue events committed")),
        commit_seconds(
            telemetry.histogram("tocsin_rules_commit_duration_seconds", "time of one commit")),
        restore_seconds(
            telemetry.histogram("tocsin_rules_restore_duration_seconds", "assignment to live")),
        rows(telemetry.counter("tocsin_rules_rows_total", "telemetry rows judged")),
        late(telemetry.counter("tocsin_rules_late_rows_total",
                               "rows whose step was already judged")),
        missing(telemetry.counter("tocsin_rules_missing_frames_total", "frames that never came")),
        runs(telemetry.gauge("tocsin_rules_runs", "runs whose state is kept")),
        open_issues(telemetry.gauge("tocsin_rules_open_issues", "issues firing now")) {
    for (std::size_t i = 0; i < ingest::kDecodeErrors; ++i) {
      undecodable_total(ingest::to_string(static_cast<ingest::DecodeError>(i)));  // starts at zero
    }
  }
  core::Counter& undecodable_total(std::string_view reason) {
    return sink.counter("tocsin_ingest_undecodable_records_total",
                        "records sent to the dead-letter topic", {{"reason", reason}});
  }
  void undecodable(ingest::DecodeError code) { undecodable_total(ingest::to_string(code)).add(); }
  void update(const rules::EngineStats& now) {
    rows.add(static_cast<double>(now.rows - seen.rows));
    late.add(static_cast<double>(now.late_rows - seen.late_rows));
    missing.add(static_cast<double>(now.missing_frames - seen.missing_frames));
    runs.set(static_cast<double>(now.runs));
    open_issues.set(static_cast<double>(now.open_issues));
    seen = now;
  }

  core::Telemetry& sink;
  core::Counter& commits;
  core::Counter& failed;
  core::Counter& issues;
  core::Histogram& commit_seconds;
  core::Histogram& restore_seconds;
  core::Counter& rows;
  core::Counter& late;
  core::Counter& missing;
  core::Gauge& runs;
  core::Gauge& open_issues;
  rules::EngineStats seen;
};

struct EngineRole::Restoring {
  std::vector<core::Position> committed;
  std::set<core::StreamPartition> overshot;  // handed out beyond the committed position: read again
  bool begun = false;
  core::Duration since{};
};

EngineRole::EngineRole(ingest::Transport& transport, EngineRoleOptions options, core::Clock& clock,
                       core::Log& log, core::Telemetry& telemetry)
    : transport_(transport),
      options_(std::move(options)),
      clock_(clock),
      log_(log),
      probe_(std::make_unique<Probe>(telemetry)),
      telemetry_topic_(ingest::full_topic_name(options_.topic_prefix, "telemetry")) {}

EngineRole::~EngineRole() = default;

core::Status EngineRole::open() {
  rules::EngineOptions engine_options{options_.cluster, {}, options_.engine};
  engine_options.labels.assign(options_.labels.begin(), options_.labels.end());
  auto engine = rules::Engine::create(options_.rules, engine_options);
  if (!engine) return engine.error();
  engine_ = std::move(*engine);

  ingest::SourceOptions source;
  source.group = options_.topic_prefix + "-rules";
  source.topics = {"telemetry"};
  source.listener = this;
  source.own_writer = "engine";
  auto opened = transport_.source(source);
  if (!opened) return opened.error();
  source_ = std::move(*opened);

  ingest::PublisherOptions publisher;
  publisher.writer = "engine";
  publisher.source = source_.get();
  publisher.durable = true;
  if (options_.engine.delivery == "exactly_once") {
    publisher.transactional_id = options_.topic_prefix + "-rules-" + options_.instance;
  }
  auto made = transport_.publisher(publisher);
  if (!made) return made.error();
  publisher_ = std::move(*made);
  last_snapshot_ = last_commit_ = clock_.monotonic();
  return core::ok();
}

void EngineRole::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (pending_.size() >= kMaxPending ||
        (retry_at_.count() != 0 && clock_.monotonic() < retry_at_)) {
      // A commit has to go through first: nothing more is read, so nothing piles up.
      std::this_thread::sleep_for(10ms);
    } else if (auto polled = source_->poll(
                   20ms, kBatch, [this](const core::RecordView& record) { handle(record); });
               !polled) {
      if (polled.error().code == core::Code::failed_precondition) {
        start_over(polled.error());
      } else {
        log_.warn("source_failed", {{"code", std::string(core::to_string(polled.error().code))},
                                    {"error", polled.error().message}});
        if (polled.error().code == core::Code::data_loss) {
          for (const std::int32_t partition : live_)
            engine_->mark_incomplete(partition, polled.error().message);
        } else {
          std::this_thread::sleep_for(100ms);
        }
      }
    }
    restore_assigned();
    advance_restore();
    const core::Duration now = clock_.monotonic();
    if (now - last_tick_ >= kTickEvery) {
      last_tick_ = now;
      const bool at_end = source_->at_end() && restoring_.empty();
      engine_->tick(clock_.now(), [&](std::int32_t) { return at_end; });
      probe_->update(engine_->stats());
    }
    gather();
    commit_or_keep();
  }
  if (restoring_.empty()) snapshot_all();
  gather();
  if (const auto status = commit_pending(); !status) {
    log_.warn("last_commit_failed", {{"error", status.error().message}});
  }
  ready_ = false;
  source_->close(5s);
}

void EngineRole::handle(const core::RecordView& record) {
  moved_ = true;
  const auto restoring = restoring_.find(record.partition);
  if (restoring != restoring_.end()) {
    for (const auto& position : restoring->second.committed) {
      if (position.where.stream == record.stream && position.next >= 0 &&
          record.offset >= position.next) {
        restoring->second.overshot.insert(position.where);
        return;
      }
    }
  }
  const rules::RecordRef ref{telemetry_topic_, record.stream, record.partition, record.offset,
                             core::wall_time(record.timestamp)};
  const bool replaying = restoring != restoring_.end() && !restoring->second.committed.empty();
  // In a replay, deadlines count from when the record came, not from now.
  const core::WallTime arrival = replaying ? core::wall_time(record.timestamp) : clock_.now();
  std::optional<ingest::DecodeFailure> bad_body;
  auto failure = ingest::decode_telemetry(record, json_, [&](const core::FrameView& frame) {
    if (frame.header().kind != core::FrameKind::lifecycle) {
      engine_->on_frame(frame, ref, arrival);
    } else if (const auto body = ingest::parse_lifecycle(frame.body_text())) {
      engine_->on_lifecycle(frame, *body, ref, arrival);
    } else {
      bad_body = ingest::DecodeFailure{ingest::DecodeError::bad_json, body.error().message};
    }
  });
  if (!failure) failure = std::move(bad_body);
  if (!failure) return;
  engine_->skip(ref);
  if (replaying) return;  // it went to the dlq before the restart
  probe_->undecodable(failure->code);
  pending_.push_back(ingest::dead_letter(record, *failure, "rules"));
}

void EngineRole::assigned(std::span<const core::Position> committed) {
  ready_ = false;
  const core::Duration now = clock_.monotonic();
  if (committed.empty()) restoring_[0].since = now;  // an empty journal: one partition, no position
  for (const auto& position : committed) {
    Restoring& state = restoring_[position.where.partition];
    state.since = now;
    state.committed.push_back(position);
  }
}

void EngineRole::restore_assigned() {
  for (auto& [partition, state] : restoring_) {
    if (state.begun) continue;
    if (const auto status = begin_restore(partition, state); !status) {
      log_.warn("restore_failed", {{"partition", partition}, {"error", status.error().message}});
      std::this_thread::sleep_for(100ms);
      return;  // tried again in the next turn; the partition stays paused
    }
  }
}

core::Status EngineRole::begin_restore(std::int32_t partition, Restoring& state) {
  core::Status problem;
  const auto read = source_->read_all(kStateTopic, partition, [&](const core::RecordView& record) {
    const auto value =
        record.tombstone ? std::nullopt : std::optional<std::string_view>(record.text());
    if (const auto status = engine_->restore(partition, record.key.value_or(""), value); !status)
      problem = status;
  });
  if (!read) return read;
  if (!problem)
    log_.warn("state_record_refused",
              {{"partition", partition}, {"error", problem.error().message}});
  const auto positions = engine_->finish_restore(partition, state.committed);
  state.begun = true;
  std::vector<core::StreamPartition> streams;
  for (const auto& position : state.committed) streams.push_back(position.where);
  if (!positions) {
    log_.error("state_incomplete",
               {{"partition", partition}, {"error", positions.error().message}});
    engine_->mark_incomplete(partition, positions.error().message);
  } else if (positions->positions) {
    for (const auto& committed : state.committed) {
      const auto at =
          std::find_if(positions->positions->begin(), positions->positions->end(),
                       [&](const core::Position& other) { return other.where == committed.where; });
      const core::Position from =
          at != positions->positions->end() ? *at : core::Position{committed.where, 0};
      if (committed.next < 0 || from.next >= committed.next) continue;
      if (const auto status = source_->seek(from); !status) return status;
    }
  } else {
    engine_->go_live(partition, clock_.now());
    state.committed.clear();  // nothing to replay: live from here
    last_snapshot_ = {};      // the first commit carries a snapshot: a restart never lacks one
  }
  return source_->resume(streams);
}

void EngineRole::advance_restore() {
  for (auto it = restoring_.begin(); it != restoring_.end();) {
    Restoring& state = it->second;
    if (!state.begun) {
      ++it;
      continue;
    }
    const auto positions = source_->positions();
    const bool reached = std::all_of(
        state.committed.begin(), state.committed.end(), [&](const core::Position& target) {
          if (target.next < 0 || state.overshot.contains(target.where)) return true;
          return std::any_of(positions.begin(), positions.end(), [&](const core::Position& now) {
            return now.where == target.where && now.next >= target.next;
          });
        });
    if (reached || source_->at_end()) {
      go_live(it->first, state);
      it = restoring_.erase(it);
    } else {
      ++it;
    }
  }
  if (restoring_.empty() && !live_.empty() && retry_at_.count() == 0) ready_ = true;
}

void EngineRole::go_live(std::int32_t partition, Restoring& state) {
  for (const auto& target : state.committed) {
    if (!state.overshot.contains(target.where)) continue;
    if (const auto status = source_->seek(target); !status) {
      log_.warn("seek_failed", {{"partition", partition}, {"error", status.error().message}});
    }
  }
  engine_->go_live(partition, clock_.now());
  live_.insert(partition);
  const double seconds = std::chrono::duration<double>(clock_.monotonic() - state.since).count();
  probe_->restore_seconds.observe(seconds);
  log_.debug("partition_live", {{"partition", partition}, {"seconds", seconds}});
}

void EngineRole::gather() {
  for (const std::int32_t partition : engine_->pending()) gather(engine_->take(partition));
}

void EngineRole::gather(rules::Output output) {
  const std::string source =
      "/" + (options_.cluster.empty() ? "" : options_.cluster + "/") + std::string("engine");
  for (const auto& event : output.events) {
    if (const auto* issue = std::get_if<core::Issue>(&event)) {
      pending_.push_back(ingest::encode_issue(*issue));
    } else if (const auto* status = std::get_if<core::RuleStatusEvent>(&event)) {
      pending_.push_back(ingest::encode_rule_status(*status, options_.cluster));
    } else if (const auto* job = std::get_if<core::JobEvent>(&event)) {
      pending_.push_back(ingest::encode_job(*job, options_.cluster));
      pending_.push_back(ingest::encode_registry(*job, options_.cluster));
    } else if (const auto* command = std::get_if<core::Command>(&event)) {
      pending_.push_back(ingest::encode_command(*command, source));
    }
  }
  for (auto& entry : output.log) {
    core::OutRecord record{kStateTopic, std::move(entry.key), std::move(entry.value)};
    record.partition = entry.partition;
    pending_.push_back(std::move(record));
  }
  unreported_.push_back(std::move(output));
}

void EngineRole::snapshot_all() {
  last_snapshot_ = clock_.monotonic();
  gather();  // what the snapshot stands for has to be in the same commit
  for (const std::int32_t partition : live_) {
    engine_->snapshot(partition, std::size_t{1} << 40, [&](rules::StateRecord entry) {
      core::OutRecord record{kStateTopic, std::move(entry.key), std::move(entry.value)};
      record.partition = entry.partition;
      pending_.push_back(std::move(record));
    });
  }
}

bool EngineRole::due(core::Duration now) const {
  if (!pending_.empty()) return true;
  return moved_ && now - last_commit_ >= options_.engine.commit_interval;
}

core::Status EngineRole::commit_pending() {
  // Positions of partitions that are still being restored stay as they are committed.
  auto positions = source_->positions();
  std::erase_if(positions, [&](const core::Position& position) {
    return restoring_.contains(position.where.partition);
  });
  if (pending_.empty() && !moved_) return core::ok();
  const core::Duration start = clock_.monotonic();
  const auto status = publisher_->commit(pending_, positions);
  if (!status) return status;
  last_commit_ = clock_.monotonic();
  probe_->commits.add();
  probe_->commit_seconds.observe(std::chrono::duration<double>(last_commit_ - start).count());
  pending_.clear();
  moved_ = false;
  for (const auto& output : unreported_) report(output);
  unreported_.clear();
  return status;
}

void EngineRole::commit_or_keep() {
  const core::Duration now = clock_.monotonic();
  if (now < retry_at_) return;
  if (now - last_snapshot_ >= options_.engine.snapshot_interval && restoring_.empty())
    snapshot_all();
  if (!due(now)) return;
  const auto status = commit_pending();
  if (status) {
    retry_at_ = backoff_ = {};
    return;
  }
  probe_->failed.add();
  ready_ = false;
  if (status.error().code == core::Code::failed_precondition) {
    start_over(status.error());
    return;
  }
  backoff_ = std::min(std::max(backoff_ * 2, kFirstBackoff), kMaxBackoff);
  retry_at_ = clock_.monotonic() + backoff_;
  log_.warn("commit_failed", {{"code", std::string(core::to_string(status.error().code))},
                              {"error", status.error().message},
                              {"pending", std::uint64_t{pending_.size()}}});
}

void EngineRole::report(const rules::Output& output) {
  const core::WallTime committed = clock_.now();
  for (const auto& event : output.events) {
    if (const auto* issue = std::get_if<core::Issue>(&event)) {
      probe_->issues.add();
      log_issue(log_, *issue, committed);
    } else if (const auto* job = std::get_if<core::JobEvent>(&event)) {
      log_job(log_, *job);
    }
  }
}

// Fenced, or the partitions went to somebody else: everything derived from them is void. A fresh
// member joins and restores; records that were not committed are judged again, with the same ids.
void EngineRole::start_over(const core::Error& error) {
  log_.warn("engine_restarted", {{"error", error.message}});
  source_->close(2s);
  publisher_.reset();
  source_.reset();
  pending_.clear();
  unreported_.clear();
  restoring_.clear();
  live_.clear();
  ready_ = false;
  retry_at_ = backoff_ = {};
  while (true) {
    const auto status = open();
    if (status) return;
    log_.error("engine_open_failed", {{"error", status.error().message}});
    std::this_thread::sleep_for(500ms);
  }
}

void EngineRole::forget(std::span<const core::StreamPartition> partitions) {
  for (const auto& gone : partitions) {
    restoring_.erase(gone.partition);
    live_.erase(gone.partition);
    engine_->drop(gone.partition);
  }
}

void EngineRole::revoked(std::span<const core::StreamPartition> partitions) {
  if (restoring_.empty()) snapshot_all();
  gather();
  if (const auto status = commit_pending(); !status) {
    log_.warn("revoke_commit_failed", {{"error", status.error().message}});
    pending_.clear();
    unreported_.clear();
  }
  forget(partitions);
}

void EngineRole::lost(std::span<const core::StreamPartition> partitions) {
  pending_.clear();  // whoever owns the partitions now judges the records again
  unreported_.clear();
  forget(partitions);
}

}  // namespace tocsin::app
