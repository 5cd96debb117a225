#include "app/loop/topic_loop.h"

#include <algorithm>
#include <string>
#include <utility>

#include "app/loop/topic_loop_impl.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Phase = LoopPartition::Phase;

constexpr core::Duration kTickEvery = 100ms;
constexpr core::Duration kAheadFor = 100ms;  // at most, before what went ahead is committed behind
constexpr core::Duration kProof = 3s;        // of reading without a failure, after one
constexpr core::Duration kGrace = 5s;        // at the end, for what was begun outside

}  // namespace

// ── Ready or not ─────────────────────────────────────────────────────────────────────────────

void TopicLoop::Impl::get_ready() {
  if (ready_) return;
  {
    const std::lock_guard lock(mutex_);
    trouble_.clear();
  }
  ready_ = true;
}

void TopicLoop::Impl::stumble(std::string_view doing, const core::Error& error) {
  ready_ = false;
  const std::lock_guard lock(mutex_);
  trouble_ = wiring_.name + " stands still, " + std::string(doing) + ": " + error.message;
}

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
  source.fetch_wait = std::chrono::duration_cast<milliseconds>(wiring_.fetch_wait);
  if (wiring_.group.empty()) source.start = ingest::Start::beginning;
  auto opened = ports_.transport->source(std::move(source));
  if (!opened) return opened.error();
  source_.set(std::move(*opened));
  opened_ = clock_.monotonic();
  if (!wiring_.writes) return core::ok();
  ingest::PublisherOptions publisher;
  publisher.writer = wiring_.writer;
  publisher.source = &*source_;
  publisher.durable = true;
  publisher.linger = 0ms;  // what goes ahead of its commit is not flushed
  publisher.transactional_id = wiring_.transactional_id;
  publisher.ahead = wiring_.ahead;
  auto made = ports_.transport->publisher(std::move(publisher));
  if (!made) return made.error();
  if (const auto status = state_.open(**made); !status) return status;
  queue_.open(ports_.committer(std::move(*made), [this] { wake(); }));
  last_commit_ = clock_.monotonic();
  return core::ok();
}

/// Lets go of everything; what was not committed is void, the log has it.
void TopicLoop::Impl::drop() {
  ready_ = false;
  queue_.clear();
  if (const auto gone = source_.take()) gone->close(2s);
  broken_.reset();
  partitions_.clear();
  state_.clear();
  assigned_ = false;
  moved_ = polled_ = false;
  next_tick_ = {};
  read_backoff_ = {};
}

void TopicLoop::Impl::start_over(const core::Error& error) {
  log_.warn("stage_started_over", {{"stage", wiring_.name}, {"error", error.message}});
  probe_.restarts.add();
  drop();
  stumble("starting over", error);
  needs_proof_ = true;
  open_backoff_.grow(clock_.monotonic());
}

void TopicLoop::Impl::close() {
  if (source_ && partitions_.all_live()) {
    stage_.finish(time_.now());
    const core::Duration end = clock_.monotonic() + kGrace;
    while (!broken_ && !queue_.backoff().failing()) {
      gather();
      const bool more = !queue_.empty();
      if (more) commit_now();
      if (more) continue;  // output is handed over in bounded pieces
      if (!stage_.busy() || clock_.monotonic() >= end) break;
      const core::Duration before = clock_.monotonic();
      source_.pause(clock_, before + 20ms, 20ms);
      // Time that stands still while we wait is moved by whoever called us: nothing can come back.
      if (clock_.monotonic() == before) break;
    }
    if (!broken_) commit_now();
  }
  drop();
}

// ── One turn ─────────────────────────────────────────────────────────────────────────────────

core::Duration TopicLoop::Impl::step(milliseconds longest) {
  const core::Duration before = clock_.monotonic();
  if (!may_run()) {
    get_ready();  // standing by is what is wanted of it
    source_.pause(clock_, before + kTickEvery, longest);
    return before + kTickEvery;
  }
  if (!source_) {
    if (open_backoff_.waits(before)) {
      source_.pause(clock_, open_backoff_.until, longest);
      return open_backoff_.until;
    }
    if (const auto status = open(); !status) {
      log_.error("stage_not_opened", {{"stage", wiring_.name}, {"error", status.error().message}});
      drop();
      stumble("it cannot be opened", status.error());
      open_backoff_.grow(clock_.monotonic());
      return open_backoff_.until;
    }
  }
  if (queue_.full() || queue_.backoff().waits(before)) {
    // A commit has to go through first: nothing more is read, so nothing piles up.
    source_.pause(clock_, std::max(queue_.backoff().until, before + 10ms), longest);
  } else if (read_backoff_.waits(before)) {
    source_.pause(clock_, read_backoff_.until, longest);
  } else {
    read(longest);
    if (stage_.needs_older_state()) {
      broken_ = core::Error{core::Code::failed_precondition, "older state is needed"};
    }
  }
  if (!broken_) restore_assigned();
  if (!broken_) advance_replays();
  if (!broken_) {
    tick();
    gather();
    settle(queue_.poll(clock_.monotonic()));
  }
  if (!broken_) start_commit(false);
  if (broken_) {
    start_over(core::Error(*broken_));
    return open_backoff_.until;
  }
  return queue_.has_records() && !queue_.busy() ? clock_.monotonic() : next_tick_;
}

void TopicLoop::Impl::read(milliseconds longest) {
  const core::Duration left = std::max<core::Duration>(next_tick_ - clock_.monotonic(), 0ns);
  const auto wait = std::min(longest, std::chrono::ceil<milliseconds>(left));
  handling_.begin_batch();
  const std::vector<core::Position> before = source_->positions();
  const auto polled = source_->poll(wait, wiring_.batch,
                                    [this](const core::RecordView& record) { handle(record); });
  if (polled) {
    read_backoff_ = {};
    polled_ = true;
    damaged_ = false;
    // An empty answer proves nothing at once: the journal looks behind its position once a second.
    const bool proves = *polled > 0 || clock_.monotonic() - opened_ >= kProof;
    if (proves && partitions_.all_live()) needs_proof_ = false;
  } else {
    judge_failed_poll(polled.error(), before);
  }
}

void TopicLoop::Impl::judge_failed_poll(const core::Error& error,
                                        std::span<const core::Position> before) {
  if (error.code == core::Code::failed_precondition) {
    broken_ = error;
    return;
  }
  log_.warn("source_failed", {{"stage", wiring_.name},
                              {"code", std::string(core::to_string(error.code))},
                              {"error", error.message}});
  if (error.code == core::Code::data_loss) {
    // Nothing was handed out in that poll.
    const std::vector<core::Position> now = source_->positions();
    const bool goes_on = !std::equal(now.begin(), now.end(), before.begin(), before.end());
    // A gap is passed; a damaged file stays damaged, and nothing behind the damage is read.
    if (goes_on || !std::exchange(damaged_, true)) {
      for (const std::int32_t number : partitions_.lost(before, now)) fault(number, error);
      return;
    }
  }
  stumble("reading fails", error);
  read_backoff_.grow(clock_.monotonic());
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
  const bool replaying = partition->phase != Phase::live;
  const std::optional<Refusal> refusal = handling_.hand(record, *partition);
  // In a replay: it went to the dlq before the restart.
  if (refusal && !replaying) refuse(record, *refusal);
  if (wiring_.take_every != 0 && ++since_take_ >= wiring_.take_every) gather();
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
  queue_.add(StageRecord{record.partition,
                         ingest::dead_letter(record, refusal.code, refusal.detail, wiring_.name)});
}

/// The end of a partition is seen when a poll has handed out everything that was there. Who does
/// not ask (a commit fails, the broker is away) learns nothing about ends.
void TopicLoop::Impl::look_for_ends(core::Duration steady) {
  std::size_t behind = 0;
  const bool asked = std::exchange(polled_, false);
  for (auto& [number, partition] : partitions_) {
    for (const auto& one : partition.committed) {
      if (asked && partition.phase == Phase::live && source_->at_end(one.where)) {
        partition.saw(one.where.stream, steady);
      }
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
  since_take_ = 0;
  if (!queue_.full()) queue_.add(stage_.take(time_.now()));
}

// ── Commits ──────────────────────────────────────────────────────────────────────────────────

void TopicLoop::Impl::settle(CommitQueue::Progress progress) {
  switch (progress) {
    case CommitQueue::Progress::none:
      return;
    case CommitQueue::Progress::committed:
      stage_.committed(time_.now());
      return;
    case CommitQueue::Progress::again:
      stumble("writing fails", queue_.error());
      moved_ = true;
      return;
    case CommitQueue::Progress::broken:
      stumble("writing fails", queue_.error());
      broken_ = queue_.error();
      return;
  }
}

/// `all`: also positions that could wait.
void TopicLoop::Impl::start_commit(bool all) {
  if (!queue_.is_open() || queue_.busy()) return;
  const core::Duration now = clock_.monotonic();
  if (queue_.backoff().waits(now)) return;
  if (!queue_.has_records() && !queue_.full()) {
    const bool moved =
        queue_.has_ahead() || (queue_.stage_says_positions() ? !queue_.empty() : moved_);
    const core::Duration every =
        queue_.has_ahead() ? std::min(wiring_.commit_every, kAheadFor) : wiring_.commit_every;
    if (!moved || (!all && now - last_commit_ < every)) return;
  }
  std::vector<core::Position> where;
  if (!wiring_.group.empty()) where = partitions_.live_only(source_->positions());
  if (queue_.empty() && where.empty()) {
    queue_.forgive();  // what had failed went away with its partitions
    return;
  }
  last_commit_ = now;
  moved_ = false;
  stage_.committing();
  queue_.start(now, std::move(where));
}

/// Everything that is there, before something is taken away or we end.
void TopicLoop::Impl::commit_now() {
  settle(queue_.wait(clock_.monotonic()));
  if (broken_) return;
  queue_.forgive();
  start_commit(true);
  settle(queue_.wait(clock_.monotonic()));
}

// ── Waking ───────────────────────────────────────────────────────────────────────────────────

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
std::string TopicLoop::trouble() const { return impl_->trouble(); }

}  // namespace tocsin::app
