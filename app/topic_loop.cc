#include "app/topic_loop.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "app/anchored_clock.h"
#include "app/loop_probe.h"
#include "app/partition_table.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Phase = LoopPartition::Phase;

constexpr core::Duration kTickEvery = 100ms;
constexpr core::Duration kFirstBackoff = 50ms;
constexpr core::Duration kMaxBackoff = 5s;
constexpr core::Duration kOverrun = 5s;
constexpr core::Duration kGrace = 5s;  // at the end, for what was begun outside
// What may wait for a commit before reading stops. One commit carries at most this much.
constexpr std::size_t kMaxPending = 10'000;
constexpr std::size_t kMaxPendingBytes = 16U << 20;

std::size_t bytes_of(const core::OutRecord& record) {
  return record.key.size() + (record.value ? record.value->size() : 0) + 64;
}

/// Growing waits between tries, until one succeeds.
struct Backoff {
  core::Duration until{};
  core::Duration step{};
  void grow(core::Duration now) {
    step = std::min(std::max(step * 2, kFirstBackoff), kMaxBackoff);
    until = now + step;
  }
  [[nodiscard]] bool waits(core::Duration now) const { return step.count() != 0 && now < until; }
  [[nodiscard]] bool failing() const { return step.count() != 0; }
};

/// What the commit under way carries besides its records.
struct UnderWay {
  std::vector<std::int32_t> owners;  // of each record: its input partition
  std::map<core::StreamPartition, std::int64_t> stage_positions;
  core::Duration began{};
};

}  // namespace

class TopicLoop::Impl final : private core::AssignmentListener {
 public:
  Impl(Stage& stage, LoopPorts ports)
      : stage_(stage),
        wiring_(stage.wiring()),
        ports_(std::move(ports)),
        clock_(*ports_.clock),
        log_(*ports_.log),
        time_(clock_),
        probe_(*ports_.telemetry, wiring_) {}

  core::Duration step(milliseconds longest);
  void close();
  void wake();
  [[nodiscard]] bool ready() const noexcept { return ready_.load(std::memory_order_relaxed); }

 private:
  // Opening and starting over.
  bool may_run();
  core::Status open();
  void drop();
  void start_over(const core::Error& error);
  // One turn.
  void pause(core::Duration until, milliseconds longest);
  void read(milliseconds longest);
  void handle(const core::RecordView& record);
  bool hold_back(const core::RecordView& record, LoopPartition& partition);
  void refuse(const core::RecordView& record, const Refusal& refusal);
  void judge_failed_poll(const core::Error& error);
  void look_for_ends(core::Duration steady);
  void tick();
  void gather();
  // Partitions.
  void restore_assigned();
  core::Status restore(std::int32_t number, LoopPartition& partition);
  core::Status read_state(std::int32_t number);
  core::Status read_state_partition(std::int32_t number, std::int32_t state_partition);
  void advance_replays();
  void go_live(std::int32_t number, LoopPartition& partition);
  void fault(std::int32_t number, const core::Error& error);
  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> partitions) override;
  void lost(std::span<const core::StreamPartition> partitions) override;
  void take_away(std::span<const core::StreamPartition> partitions);
  // Commits.
  void settle(const core::Status& status);
  void start_commit(bool all);
  void commit_now();
  [[nodiscard]] std::vector<core::Position> positions() const;
  [[nodiscard]] bool full() const;

  Stage& stage_;
  const StageWiring wiring_;
  LoopPorts ports_;
  core::Clock& clock_;
  core::Log& log_;
  AnchoredClock time_;
  LoopProbe probe_;

  std::mutex wake_mutex_;  // guards wake_asked_, and source_ towards wake()
  std::condition_variable waked_;
  bool wake_asked_ = false;
  std::unique_ptr<core::RecordSource> source_;
  std::unique_ptr<Committer> committer_;  // after source_: it ends first
  std::int32_t state_partitions_ = 0;
  std::uint64_t term_ = 0;             // of the leadership under which all this is open
  std::optional<core::Error> broken_;  // nothing here is ours any more: start over after the poll

  PartitionTable partitions_;
  bool whole_state_read_ = false;
  std::vector<StageRecord> pending_;
  std::size_t pending_bytes_ = 0;
  UnderWay under_way_;
  std::map<core::StreamPartition, std::int64_t> stage_positions_;
  bool stage_says_positions_ = false;
  bool moved_ = false;                // records were handled since the last commit began
  bool polled_ = false;               // since the last tick, with success
  std::optional<Instant> batch_now_;  // of the records of one poll
  core::Duration handled_until_{};    // steady: when the record before was through
  core::Duration last_commit_{};
  core::Duration next_tick_{};
  Backoff open_backoff_;
  Backoff read_backoff_;
  Backoff commit_backoff_;
  std::atomic<bool> ready_{false};
};

// ── Opening and starting over ────────────────────────────────────────────────────────────────

/// Whether the stage may have anything open now; closes what must not be open any more.
bool TopicLoop::Impl::may_run() {
  if (!wiring_.leader) return true;
  const std::uint64_t term = ports_.leadership->term();
  if (source_ && term != term_) {
    log_.warn("stage_gave_up_the_lead", {{"stage", wiring_.name}});
    drop();
  }
  term_ = term;
  return term != 0;
}

core::Status TopicLoop::Impl::open() {
  if (const auto status = stage_.open(time_.now()); !status) return status;
  ingest::SourceOptions source;
  source.group = wiring_.group;
  source.topics = wiring_.topics;
  source.listener = this;
  source.own_writer = wiring_.writer;
  source.fetch_wait = std::chrono::duration_cast<milliseconds>(wiring_.fetch_wait);
  if (wiring_.group.empty()) source.start = ingest::Start::beginning;
  auto opened = ports_.transport->source(std::move(source));
  if (!opened) return opened.error();
  {
    const std::lock_guard lock(wake_mutex_);
    source_ = std::move(*opened);
  }
  if (!wiring_.writes) return core::ok();
  ingest::PublisherOptions publisher;
  publisher.writer = wiring_.writer;
  publisher.source = source_.get();
  publisher.durable = true;
  publisher.transactional_id = wiring_.transactional_id;
  auto made = ports_.transport->publisher(std::move(publisher));
  if (!made) return made.error();
  state_partitions_ = wiring_.state_partitions;
  if (wiring_.state == StateScope::whole && state_partitions_ == 0) {
    const auto there = (*made)->partitions(wiring_.state_topic);
    if (!there) return there.error();
    state_partitions_ = *there;
  }
  committer_ = ports_.committer(std::move(*made), [this] { wake(); });
  last_commit_ = clock_.monotonic();
  return core::ok();
}

/// Lets go of everything; what was not committed is void, the log has it.
void TopicLoop::Impl::drop() {
  ready_ = false;
  committer_.reset();
  std::unique_ptr<core::RecordSource> gone;
  {
    const std::lock_guard lock(wake_mutex_);
    gone = std::move(source_);
  }
  if (gone) gone->close(2s);
  broken_.reset();
  partitions_.clear();
  whole_state_read_ = false;
  pending_.clear();
  pending_bytes_ = 0;
  under_way_ = {};
  stage_positions_.clear();
  stage_says_positions_ = moved_ = false;
  next_tick_ = {};
  read_backoff_ = commit_backoff_ = {};
}

void TopicLoop::Impl::start_over(const core::Error& error) {
  log_.warn("stage_started_over", {{"stage", wiring_.name}, {"error", error.message}});
  probe_.restarts.add();
  drop();
  open_backoff_.grow(clock_.monotonic());
}

void TopicLoop::Impl::close() {
  if (source_ && partitions_.all_live()) {
    stage_.finish(time_.now());
    const core::Duration end = clock_.monotonic() + kGrace;
    while (!broken_ && !commit_backoff_.failing()) {
      gather();
      const bool more = !pending_.empty() || !stage_positions_.empty();
      if (more) commit_now();
      if (more) continue;  // output is handed over in bounded pieces
      if (!stage_.busy() || clock_.monotonic() >= end) break;
      pause(clock_.monotonic() + 20ms, 20ms);
    }
    if (!broken_) commit_now();
  }
  drop();
}

// ── One turn ─────────────────────────────────────────────────────────────────────────────────

void TopicLoop::Impl::pause(core::Duration until, milliseconds longest) {
  const core::Duration left = std::min<core::Duration>(until - clock_.monotonic(), longest);
  std::unique_lock lock(wake_mutex_);
  if (left.count() > 0) waked_.wait_for(lock, left, [this] { return wake_asked_; });
  wake_asked_ = false;
}

core::Duration TopicLoop::Impl::step(milliseconds longest) {
  const core::Duration before = clock_.monotonic();
  if (!may_run()) {
    ready_ = true;  // standing by is what is wanted of it
    pause(before + kTickEvery, longest);
    return before + kTickEvery;
  }
  if (!source_) {
    if (open_backoff_.waits(before)) {
      pause(open_backoff_.until, longest);
      return open_backoff_.until;
    }
    if (const auto status = open(); !status) {
      log_.error("stage_not_opened", {{"stage", wiring_.name}, {"error", status.error().message}});
      drop();
      open_backoff_.grow(clock_.monotonic());
      return open_backoff_.until;
    }
  }
  if (full() || commit_backoff_.waits(before)) {
    // A commit has to go through first: nothing more is read, so nothing piles up.
    pause(std::max(commit_backoff_.until, before + 10ms), longest);
  } else if (read_backoff_.waits(before)) {
    pause(read_backoff_.until, longest);
  } else {
    read(longest);
  }
  if (!broken_) restore_assigned();
  if (!broken_) advance_replays();
  if (!broken_) {
    tick();
    gather();
    if (committer_) {
      if (const auto outcome = committer_->poll()) settle(*outcome);
    }
  }
  if (!broken_) start_commit(false);
  if (broken_) {
    start_over(core::Error(*broken_));
    return open_backoff_.until;
  }
  return pending_.empty() ? next_tick_ : clock_.monotonic();
}

void TopicLoop::Impl::read(milliseconds longest) {
  const core::Duration left = std::max<core::Duration>(next_tick_ - clock_.monotonic(), 0ns);
  const auto wait = std::min(longest, std::chrono::ceil<milliseconds>(left));
  batch_now_.reset();
  const auto polled = source_->poll(wait, wiring_.batch,
                                    [this](const core::RecordView& record) { handle(record); });
  if (polled) {
    read_backoff_ = {};
    polled_ = true;
  } else {
    judge_failed_poll(polled.error());
  }
}

void TopicLoop::Impl::judge_failed_poll(const core::Error& error) {
  if (error.code == core::Code::failed_precondition) {
    broken_ = error;
    return;
  }
  log_.warn("source_failed", {{"stage", wiring_.name},
                              {"code", std::string(core::to_string(error.code))},
                              {"error", error.message}});
  if (error.code == core::Code::data_loss) {
    for (auto& [number, partition] : partitions_) {
      if (partition.phase == Phase::live) fault(number, error);
    }
  } else {
    ready_ = false;
    read_backoff_.grow(clock_.monotonic());
  }
}

/// In a replay: is this a record that must not be handled yet?
bool TopicLoop::Impl::hold_back(const core::RecordView& record, LoopPartition& partition) {
  const core::StreamPartition where{std::string(record.stream), record.partition};
  for (const auto& target : partition.committed) {
    if (target.where != where || target.next < 0 || record.offset < target.next) continue;
    partition.passed.insert(where);
    if (!PartitionTable::reached(partition, source_->positions())) return true;
    partition.passed.erase(where);  // this record is handled now, as the first live one
    advance_replays();
    return partition.phase != Phase::live;
  }
  return false;
}

void TopicLoop::Impl::handle(const core::RecordView& record) {
  LoopPartition* partition = partitions_.find(record.partition);
  if (partition == nullptr || broken_) return;
  moved_ = true;
  if (partition->phase == Phase::replaying && hold_back(record, *partition)) return;
  if (!batch_now_) {
    batch_now_ = time_.now();
    handled_until_ = batch_now_->steady;
  }
  const bool replaying = partition->phase != Phase::live;
  const core::Duration age = batch_now_->wall - core::wall_time(record.timestamp);
  if (age <= PartitionTable::kFresh && -age <= PartitionTable::kFresh) {
    partition->fresh_at = batch_now_->steady;
  }
  std::optional<Refusal> refusal;
  try {
    refusal = stage_.handle(record, {*batch_now_, replaying});
  } catch (const std::exception& e) {
    refusal = Refusal{"handler_failed", e.what()};
  }
  const core::Duration took =
      clock_.monotonic() - std::exchange(handled_until_, clock_.monotonic());
  if (took > kOverrun) {
    probe_.overruns.add();
    if (!refusal) refusal = Refusal{"handler_overrun", "handling took " + core::to_text(took)};
  }
  // In a replay: it went to the dlq before the restart.
  if (refusal && !replaying) refuse(record, *refusal);
}

void TopicLoop::Impl::refuse(const core::RecordView& record, const Refusal& refusal) {
  probe_.dead_letter(refusal.code);
  log_.warn("record_refused", {{"stage", wiring_.name},
                               {"topic", std::string(record.topic)},
                               {"partition", std::int64_t{record.partition}},
                               {"offset", record.offset},
                               {"reason", refusal.code},
                               {"detail", refusal.detail}});
  if (!wiring_.writes) return;
  pending_.push_back(
      {record.partition, ingest::dead_letter(record, refusal.code, refusal.detail, wiring_.name)});
  pending_bytes_ += bytes_of(pending_.back().record);
}

/// The end of a partition is seen when a poll has handed out everything that was there. Who does
/// not ask (a commit fails, the broker is away) learns nothing about ends.
void TopicLoop::Impl::look_for_ends(core::Duration steady) {
  std::size_t behind = 0;
  const bool asked = std::exchange(polled_, false);
  for (auto& [number, partition] : partitions_) {
    if (asked && partition.phase == Phase::live &&
        std::all_of(partition.committed.begin(), partition.committed.end(),
                    [this](const auto& one) { return source_->at_end(one.where); })) {
      partition.fresh_at = steady;
    }
    if (!partitions_.live(number, steady)) ++behind;
  }
  probe_.behind.set(static_cast<double>(behind));
}

void TopicLoop::Impl::tick() {
  const Instant now = time_.now();
  if (now.steady < next_tick_) return;
  look_for_ends(now.steady);
  const auto live = [&](std::int32_t number) { return partitions_.live(number, now.steady); };
  const auto next = stage_.tick({now, live});
  next_tick_ = now.steady + kTickEvery;
  if (next) next_tick_ = std::clamp(*next, now.steady, next_tick_);
}

void TopicLoop::Impl::gather() {
  if (full()) return;
  StageOutput output = stage_.take(time_.now());
  for (auto& one : output.records) {
    pending_bytes_ += bytes_of(one.record);
    pending_.push_back(std::move(one));
  }
  if (!output.positions) return;
  stage_says_positions_ = true;
  for (const auto& position : *output.positions) {
    auto& next = stage_positions_[position.where];
    next = std::max(next, position.next);
  }
}

bool TopicLoop::Impl::full() const {
  return pending_.size() >= kMaxPending || pending_bytes_ >= kMaxPendingBytes;
}

// ── Partitions ───────────────────────────────────────────────────────────────────────────────

void TopicLoop::Impl::assigned(std::span<const core::Position> committed) {
  partitions_.assign(committed, clock_.monotonic());
  ready_ = false;
}

void TopicLoop::Impl::restore_assigned() {
  if (read_backoff_.waits(clock_.monotonic())) return;
  std::size_t count = 0;
  for (auto& [number, partition] : partitions_) {
    ++count;
    if (partition.phase != Phase::assigned) continue;
    const auto status = restore(number, partition);
    if (status) continue;
    log_.warn("restore_failed", {{"stage", wiring_.name},
                                 {"partition", std::int64_t{number}},
                                 {"error", status.error().message}});
    if (status.error().code == core::Code::failed_precondition) {
      broken_ = status.error();
    } else {
      read_backoff_.grow(clock_.monotonic());  // the partition stays paused
    }
    return;
  }
  probe_.partitions.set(static_cast<double>(count));
}

core::Status TopicLoop::Impl::restore(std::int32_t number, LoopPartition& partition) {
  if (const auto read = read_state(number); !read) return read;
  const auto from = stage_.restored(number, partition.committed, time_.now());
  if (!from) fault(number, from.error());
  bool replays = false;
  std::vector<core::StreamPartition> streams;
  for (const auto& committed : partition.committed) {
    streams.push_back(committed.where);
    if (!from || committed.next < 0) continue;
    const auto at = std::find_if(from->begin(), from->end(), [&](const core::Position& position) {
      return position.where == committed.where;
    });
    if (at == from->end() || at->next >= committed.next) continue;
    if (const auto status = source_->seek(*at); !status) return status;
    replays = true;
  }
  if (const auto status = source_->resume(streams); !status) return status;
  partition.phase = Phase::replaying;
  partition.passed.clear();
  if (!replays) go_live(number, partition);
  return core::ok();
}

core::Status TopicLoop::Impl::read_state(std::int32_t number) {
  if (wiring_.state == StateScope::none) return core::ok();
  if (wiring_.state == StateScope::input_partition) return read_state_partition(number, number);
  if (whole_state_read_) return core::ok();
  for (std::int32_t partition = 0; partition < state_partitions_; ++partition) {
    if (const auto status = read_state_partition(number, partition); !status) return status;
  }
  whole_state_read_ = true;
  return core::ok();
}

core::Status TopicLoop::Impl::read_state_partition(std::int32_t number,
                                                   std::int32_t state_partition) {
  std::optional<core::Error> problem;
  const auto note = [&](core::Error error) {
    if (!problem) problem = std::move(error);
  };
  const auto read =
      source_->read_all(wiring_.state_topic, state_partition, [&](const core::RecordView& record) {
        try {
          if (const auto status = stage_.restore(number, record); !status) note(status.error());
        } catch (const std::exception& e) {
          note({core::Code::data_loss, e.what()});
        }
      });
  if (!read && read.error().code != core::Code::data_loss) return read;
  if (!read) note(read.error());
  if (problem) fault(number, *problem);
  return core::ok();
}

void TopicLoop::Impl::fault(std::int32_t number, const core::Error& error) {
  probe_.faults.add();
  log_.error(
      "state_incomplete",
      {{"stage", wiring_.name}, {"partition", std::int64_t{number}}, {"error", error.message}});
  stage_.state_fault(number, error, time_.now());
}

void TopicLoop::Impl::advance_replays() {
  for (auto& [number, partition] : partitions_) {
    if (partition.phase != Phase::replaying) continue;
    const bool at_end = std::all_of(partition.committed.begin(), partition.committed.end(),
                                    [this](const auto& one) { return source_->at_end(one.where); });
    if (!at_end && !PartitionTable::reached(partition, source_->positions())) continue;
    // What was handed out too early, of streams that were quicker than others, is read again.
    for (const auto& target : partition.committed) {
      if (!partition.passed.contains(target.where)) continue;
      if (const auto status = source_->seek(target); !status) {
        log_.warn("seek_failed", {{"stage", wiring_.name}, {"error", status.error().message}});
        return;
      }
    }
    partition.passed.clear();
    go_live(number, partition);
  }
  if (partitions_.all_live() && !commit_backoff_.failing() && !read_backoff_.failing()) {
    open_backoff_ = {};
    ready_ = true;
  }
}

void TopicLoop::Impl::go_live(std::int32_t number, LoopPartition& partition) {
  const Instant now = time_.now();
  partition.phase = Phase::live;
  stage_.started(number, now);
  const double seconds = std::chrono::duration<double>(now.steady - partition.since).count();
  probe_.restore_seconds.observe(seconds);
  log_.debug("partition_live",
             {{"stage", wiring_.name}, {"partition", std::int64_t{number}}, {"seconds", seconds}});
}

void TopicLoop::Impl::revoked(std::span<const core::StreamPartition> partitions) {
  gather();
  commit_now();
  take_away(partitions);
  stage_.revoked(partitions);
}

void TopicLoop::Impl::lost(std::span<const core::StreamPartition> partitions) {
  if (committer_ && committer_->busy()) settle(committer_->wait());
  take_away(partitions);
  stage_.lost(partitions);
}

/// A partition takes only its own pending output along.
void TopicLoop::Impl::take_away(std::span<const core::StreamPartition> partitions) {
  if (wiring_.state == StateScope::whole && !partitions.empty()) {
    broken_ = core::Error{core::Code::failed_precondition, "partitions of its state were taken"};
  }
  partitions_.take(partitions);
  const auto gone = [&](std::int32_t number) { return partitions_.find(number) == nullptr; };
  std::erase_if(pending_, [&](const StageRecord& one) {
    if (!gone(one.partition)) return false;
    pending_bytes_ -= bytes_of(one.record);
    return true;
  });
  for (const auto& where : partitions) stage_positions_.erase(where);
}

// ── Commits ──────────────────────────────────────────────────────────────────────────────────

/// What may be committed now: partitions that are being restored stay as they are committed.
std::vector<core::Position> TopicLoop::Impl::positions() const {
  std::vector<core::Position> out;
  if (wiring_.group.empty()) return out;
  if (stage_says_positions_) {
    for (const auto& [where, next] : stage_positions_) out.push_back({where, next});
    return out;
  }
  for (auto& position : source_->positions()) {
    if (position.next < 0) continue;
    const bool live = std::any_of(partitions_.begin(), partitions_.end(), [&](const auto& entry) {
      return entry.first == position.where.partition && entry.second.phase == Phase::live;
    });
    if (live) out.push_back(std::move(position));
  }
  return out;
}

/// What came of a commit. When it failed, its records stand before everything newer again.
void TopicLoop::Impl::settle(const core::Status& status) {
  if (status) {
    probe_.commits.add();
    probe_.commit_seconds.observe(
        std::chrono::duration<double>(clock_.monotonic() - under_way_.began).count());
    under_way_ = {};
    commit_backoff_ = {};
    stage_.committed(time_.now());
    return;
  }
  probe_.failures.add();
  ready_ = false;
  log_.warn("commit_failed", {{"stage", wiring_.name},
                              {"code", std::string(core::to_string(status.error().code))},
                              {"error", status.error().message}});
  if (!status.error().retryable()) {
    // Fenced, or nobody knows what became of it: the log knows, so it is read back.
    broken_ = status.error();
    return;
  }
  auto records = committer_->take_back();
  std::vector<StageRecord> all;
  all.reserve(records.size() + pending_.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    pending_bytes_ += bytes_of(records[i]);
    all.push_back({under_way_.owners[i], std::move(records[i])});
  }
  std::move(pending_.begin(), pending_.end(), std::back_inserter(all));
  pending_ = std::move(all);
  for (const auto& [where, next] : under_way_.stage_positions) {
    auto& newest = stage_positions_[where];
    newest = std::max(newest, next);
  }
  under_way_ = {};
  moved_ = true;
  commit_backoff_.grow(clock_.monotonic());
}

/// `all`: also positions that could wait.
void TopicLoop::Impl::start_commit(bool all) {
  if (!committer_ || committer_->busy()) return;
  const core::Duration now = clock_.monotonic();
  if (commit_backoff_.waits(now)) return;
  if (pending_.empty()) {
    const bool moved = stage_says_positions_ ? !stage_positions_.empty() : moved_;
    if (!moved || (!all && now - last_commit_ < wiring_.commit_every)) return;
  }
  auto where = positions();
  if (pending_.empty() && where.empty()) return;
  std::vector<core::OutRecord> records;
  records.reserve(pending_.size());
  under_way_.owners.clear();
  for (auto& one : pending_) {
    under_way_.owners.push_back(one.partition);
    records.push_back(std::move(one.record));
  }
  pending_.clear();
  pending_bytes_ = 0;
  under_way_.stage_positions = std::exchange(stage_positions_, {});
  under_way_.began = last_commit_ = now;
  moved_ = false;
  stage_.committing();
  committer_->start(std::move(records), std::move(where));
}

/// Everything that is there, before something is taken away or we end.
void TopicLoop::Impl::commit_now() {
  if (!committer_) return;
  if (committer_->busy()) settle(committer_->wait());
  if (broken_) return;
  commit_backoff_ = {};
  start_commit(true);
  if (committer_->busy()) settle(committer_->wait());
}

// ── Waking ───────────────────────────────────────────────────────────────────────────────────

void TopicLoop::Impl::wake() {
  const std::lock_guard lock(wake_mutex_);
  wake_asked_ = true;
  waked_.notify_all();
  if (source_) source_->wake();
}

TopicLoop::TopicLoop(Stage& stage, LoopPorts ports)
    : impl_(std::make_unique<Impl>(stage, std::move(ports))) {}
TopicLoop::~TopicLoop() = default;

void TopicLoop::run(const std::stop_token& stop) {
  const std::stop_callback wake_up(stop, [this] { wake(); });
  while (!stop.stop_requested()) step(1000ms);
  close();
}
core::Duration TopicLoop::step(milliseconds longest) { return impl_->step(longest); }
void TopicLoop::close() { impl_->close(); }
void TopicLoop::wake() { impl_->wake(); }
bool TopicLoop::ready() const noexcept { return impl_->ready(); }

}  // namespace tocsin::app
