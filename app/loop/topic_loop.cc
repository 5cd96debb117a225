#include "app/loop/topic_loop.h"

#include <algorithm>
#include <utility>

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Phase = LoopPartition::Phase;

constexpr core::Duration kTickEvery = 100ms;
constexpr core::Duration kGrace = 5s;  // at the end, for what was begun outside

}  // namespace

TopicLoop::TopicLoop(Stage& stage, LoopPorts ports)
    : stage_(stage),
      wiring_(stage.wiring()),
      ports_(std::move(ports)),
      log_(*ports_.log),
      time_(*ports_.clock),
      probe_(*ports_.telemetry, wiring_),
      lags_(*ports_.telemetry, wiring_),
      readiness_(wiring_.name),
      input_(wiring_.name, *ports_.clock, log_),
      commits_(stage_, wiring_, time_, probe_, log_),
      partitions_(stage_, wiring_, input_, time_, probe_, log_),
      handling_(stage_, *ports_.clock, time_, probe_) {}

TopicLoop::~TopicLoop() = default;

// ── Opening and starting over ────────────────────────────────────────────────────────────────

/// Whether the stage may have anything open now; closes what must not be open any more.
bool TopicLoop::may_run() {
  if (!wiring_.leader) return true;
  const std::uint64_t term = ports_.leadership->term();
  if (input_.is_open() && term != term_) {
    log_.warn("stage_gave_up_the_lead", {{"stage", wiring_.name}});
    drop();
  }
  term_ = term;
  return term != 0;
}

core::Status TopicLoop::open() {
  if (const auto status = stage_.open(time_.now()); !status) return status;
  ingest::SourceOptions source;
  source.group = wiring_.group;
  source.topics = wiring_.topics;
  source.listener = this;
  source.fetch_wait = std::chrono::duration_cast<milliseconds>(wiring_.fetch_wait);
  source.patience = std::chrono::duration_cast<milliseconds>(wiring_.patience);
  if (wiring_.group.empty()) {
    source.start = wiring_.newest_only ? ingest::Start::end : ingest::Start::beginning;
  }
  auto opened = ports_.transport->source(std::move(source));
  if (!opened) return opened.error();
  input_.open(std::move(*opened));
  if (!wiring_.writes) return core::ok();
  ingest::PublisherOptions publisher;
  publisher.writer = wiring_.writer;
  publisher.source = &input_.source();
  publisher.durable = true;
  publisher.linger = 0ms;  // what goes ahead of its commit is not flushed
  publisher.transactional_id = wiring_.transactional_id;
  publisher.ahead = wiring_.ahead;
  auto made = ports_.transport->publisher(std::move(publisher));
  if (!made) return made.error();
  if (const auto status = partitions_.open(**made); !status) return status;
  commits_.open(ports_.committer(std::move(*made), [this] { wake(); }));
  return core::ok();
}

/// False: it cannot be opened now; open_backoff_ says when to try again.
bool TopicLoop::reopen() {
  const auto status = open();
  if (status) return true;
  log_.error("stage_not_opened", {{"stage", wiring_.name}, {"error", status.error().message}});
  drop();
  readiness_.stumble("it cannot be opened", status.error());
  open_backoff_.grow(time_.steady());
  return false;
}

/// Lets go of everything; what was not committed is void, the log has it.
void TopicLoop::drop() {
  readiness_.become_unready();
  commits_.clear();
  input_.close();  // may tell us that partitions are revoked
  broken_.reset();
  partitions_.clear();
  next_tick_ = {};
}

void TopicLoop::start_over(const core::Error& error) {
  log_.warn("stage_started_over", {{"stage", wiring_.name}, {"error", error.message}});
  probe_.restarts.add();
  drop();
  readiness_.stumble("starting over", error);
  readiness_.ask_for_proof();
  open_backoff_.grow(time_.steady());
}

void TopicLoop::run(const std::stop_token& stop) {
  const std::stop_callback wake_up(stop, [this] { wake(); });
  while (!stop.stop_requested()) step(1000ms);
  close();
}

void TopicLoop::close() {
  if (input_.is_open() && partitions_.all_live()) {
    stage_.finish(time_.now());
    const core::Duration end = time_.steady() + kGrace;
    while (!broken_ && !commits_.backoff().failing()) {
      commits_.gather();
      const bool more = !commits_.empty();
      if (more) commit_now();
      if (more) continue;  // output is handed over in bounded pieces
      if (!stage_.busy() || time_.steady() >= end) break;
      const core::Duration before = time_.steady();
      input_.pause(before + 20ms, 20ms);
      // Time that stands still while we wait is moved by whoever called us: nothing can come back.
      if (time_.steady() == before) break;
    }
    if (!broken_) commit_now();
  }
  drop();
}

// ── One turn ─────────────────────────────────────────────────────────────────────────────────

core::Duration TopicLoop::step(milliseconds longest) {
  const core::Duration before = time_.steady();
  if (!may_run()) {
    readiness_.become_ready();  // standing by is what is wanted of it
    input_.pause(before + kTickEvery, longest);
    return before + kTickEvery;
  }
  if (!input_.is_open()) {
    if (open_backoff_.waits(before)) {
      input_.pause(open_backoff_.until, longest);
      return open_backoff_.until;
    }
    if (!reopen()) return open_backoff_.until;
  }
  if (commits_.blocks_reading(before)) {
    // A commit has to go through first: nothing more is read, so nothing piles up.
    input_.pause(std::max(commits_.backoff().until, before + 10ms), longest);
  } else if (input_.backoff().waits(before)) {
    input_.pause(input_.backoff().until, longest);
  } else {
    read(longest);
    if (stage_.needs_older_state()) {
      broken_ = core::Error{core::Code::failed_precondition, "older state is needed"};
    }
  }
  if (!broken_) restore();
  if (!broken_) {
    partitions_.advance_replays();
    note_readiness();
    tick();
    commits_.gather();
    heed(commits_.poll());
  }
  if (!broken_) commits_.start_due([this] { return partitions_.committable(); });
  if (broken_) {
    start_over(core::Error(*broken_));
    return open_backoff_.until;
  }
  return commits_.has_more() ? time_.steady() : next_tick_;
}

void TopicLoop::read(milliseconds longest) {
  const core::Duration left = std::max<core::Duration>(next_tick_ - time_.steady(), 0ns);
  const auto wait = std::min(longest, std::chrono::ceil<milliseconds>(left));
  handling_.begin_batch();
  const PollOutcome outcome =
      input_.poll(wait, wiring_.batch, [this](const core::RecordView& record) { handle(record); });
  switch (outcome.kind) {
    case PollOutcome::Kind::read:
      if (outcome.proves && partitions_.all_live()) readiness_.prove();
      return;
    case PollOutcome::Kind::gap:
      partitions_.input_gone(outcome);
      return;
    case PollOutcome::Kind::failing:
      readiness_.stumble("reading fails", outcome.error);
      return;
    case PollOutcome::Kind::fenced:
      broken_ = outcome.error;
      return;
  }
}

void TopicLoop::handle(const core::RecordView& record) {
  LoopPartition* partition = partitions_.find(record.partition);
  if (partition == nullptr || broken_) return;
  commits_.note_read();
  if (partition->phase == Phase::replaying && partitions_.hold_back(record, *partition)) return;
  const bool replaying = partition->phase != Phase::live;
  const std::optional<Refusal> refusal = handling_.hand(record, *partition);
  // In a replay: it went to the dlq before the restart.
  if (refusal && !replaying) refuse(record, *refusal);
  commits_.note_handled();
}

void TopicLoop::refuse(const core::RecordView& record, const Refusal& refusal) {
  probe_.dead_letter(refusal.code);
  log_.warn("record_refused", {{"stage", wiring_.name},
                               {"topic", std::string(record.topic)},
                               {"partition", std::int64_t{record.partition}},
                               {"offset", record.offset},
                               {"reason", refusal.code},
                               {"detail", refusal.detail}});
  if (!wiring_.writes) return;
  commits_.add(StageRecord{
      record.partition, ingest::dead_letter(record, refusal.code, refusal.detail, wiring_.name)});
}

void TopicLoop::restore() {
  if (input_.backoff().waits(time_.steady())) return;
  const auto status = partitions_.restore_assigned();
  if (status) return;
  if (status.error().code == core::Code::failed_precondition) {
    broken_ = status.error();
    return;
  }
  readiness_.stumble("reading its state fails", status.error());
  input_.grow_backoff();
}

/// A failure anywhere holds readiness back until the same thing has succeeded.
void TopicLoop::note_readiness() {
  if (!partitions_.assigned() || !partitions_.all_live() || readiness_.needs_proof()) return;
  if (commits_.backoff().failing() || input_.backoff().failing()) return;
  open_backoff_ = {};
  readiness_.become_ready();
}

void TopicLoop::tick() {
  const Instant now = time_.now();
  if (now.steady < next_tick_) return;
  // Who does not ask (a commit fails, the broker is away) learns nothing about ends.
  partitions_.look_for_ends(input_.take_polled(), now.steady);
  lags_.look_at_tables(partitions_.all_read_until(), now.steady);
  lags_.look_at_changelog(commits_.oldest(), now.steady);
  const auto live = [&](std::int32_t number) { return partitions_.up_to_date(number, now.steady); };
  const auto read_until = [&](std::int32_t number) { return partitions_.read_until(number); };
  const auto next = stage_.tick({now, live, read_until});
  next_tick_ = now.steady + kTickEvery;
  if (next) next_tick_ = std::clamp(*next, now.steady, next_tick_);
}

// ── Commits ──────────────────────────────────────────────────────────────────────────────────

void TopicLoop::heed(CommitSchedule::Progress progress) {
  const bool broken = progress == CommitSchedule::Progress::broken;
  if (!broken && progress != CommitSchedule::Progress::again) return;
  readiness_.stumble("writing fails", commits_.error());
  if (broken) broken_ = commits_.error();
}

/// Everything that is there, before something is taken away or we end.
void TopicLoop::commit_now() {
  heed(commits_.wait());
  if (broken_) return;
  commits_.start_all([this] { return partitions_.committable(); });
  heed(commits_.wait());
}

// ── Assignments ──────────────────────────────────────────────────────────────────────────────

void TopicLoop::assigned(std::span<const core::Position> committed) {
  partitions_.assign(committed);
  readiness_.become_unready();
}

void TopicLoop::revoked(std::span<const core::StreamPartition> partitions) {
  commits_.gather();
  commit_now();
  take_away(partitions);
  stage_.revoked(partitions);
}

void TopicLoop::lost(std::span<const core::StreamPartition> partitions) {
  heed(commits_.wait());
  take_away(partitions);
  stage_.lost(partitions);
}

/// A partition takes only its own pending output along.
void TopicLoop::take_away(std::span<const core::StreamPartition> partitions) {
  if (wiring_.state == StateScope::whole && !partitions.empty()) {
    broken_ = core::Error{core::Code::failed_precondition, "partitions of its state were taken"};
  }
  partitions_.take(partitions);
  commits_.take_away([this](std::int32_t number) { return partitions_.find(number) == nullptr; });
}

}  // namespace tocsin::app
