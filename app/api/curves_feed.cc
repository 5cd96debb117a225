#include "app/api/curves_feed.h"

#include <pthread.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "app/api/insights_feed.h"
#include "app/api/tick_pace.h"
#include "app/api/told_failure.h"
#include "core/topics.h"
#include "ingest/positions_since.h"

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {

constexpr auto kPauseOfCurves = 5s;  // after an error
constexpr auto kTidyCurvesEvery = 1min;
constexpr core::Duration kLookAgain = 100ms;     // while nothing comes
constexpr auto kCommitAtMost = 1s;               // from the first record on
constexpr std::size_t kRecordsOfACommit = 4096;  // or so many records
constexpr std::size_t kRowsOfACommit = 100'000;  // or so many rows, which wait in memory
constexpr std::size_t kRecordsOfAPoll = 64;      // of at most 1 MiB
constexpr std::size_t kCurvesForgotten = 20;     // runs of one turn
constexpr auto kDropOldEvery = 10min;            // from the end of one round to the next
constexpr std::size_t kDroppedOfATurn = 128;     // chunks and series that are looked at

}  // namespace

// One source from its opening to its first error.
class CurvesFeed::Reading final : private core::AssignmentListener {
 public:
  /// `starts`: where a store that has read nothing begins; empty: at the beginning.
  Reading(CurvesFeed& feed, insights::SeriesWriter& store, std::vector<core::Position> starts)
      : feed_(feed), store_(store), starts_(std::move(starts)) {}
  core::Status go(const std::stop_token& stop);

 private:
  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> /*partitions*/) override {}
  void lost(std::span<const core::StreamPartition> /*partitions*/) override {}
  void take(const core::RecordView& record);
  core::Status begin(core::RecordSource& source);
  core::Status commit(const core::RecordSource& source);
  core::Status tidy();
  core::Status drop_bad();
  core::Status forget();
  core::Status drop_old();
  void tick();
  /// How long to wait for records before somebody must be told.
  [[nodiscard]] std::chrono::milliseconds patience() const;

  CurvesFeed& feed_;
  insights::SeriesWriter& store_;
  std::vector<core::Position> starts_;
  ingest::JsonScalarDecoder json_;
  std::vector<core::StreamPartition> fresh_;  // assigned, not begun
  std::set<core::RunUid> spoke_;              // ranks of them, since the last commit
  TickPace pace_;
  core::WallTime tidied_{};
  core::WallTime aged_{};
  insights::SystemFold samples_;
  insights::SpanFold spans_;
  std::uint64_t refused_ = 0;  // values, and told of
};

void CurvesFeed::Reading::assigned(std::span<const core::Position> committed) {
  for (const core::Position& one : committed) fresh_.push_back(one.where);
}

core::Status CurvesFeed::Reading::begin(core::RecordSource& source) {
  if (fresh_.empty()) return core::ok();
  std::vector<core::Position> from = store_.positions();
  if (from.empty()) from = starts_;
  for (const core::Position& one : from) {
    if (std::find(fresh_.begin(), fresh_.end(), one.where) == fresh_.end()) continue;
    if (auto status = source.seek(one); !status) return status;
  }
  const auto fresh = std::exchange(fresh_, {});
  return source.resume(fresh);
}

core::Status CurvesFeed::Reading::commit(const core::RecordSource& source) {
  std::vector<core::Position> positions = source.positions();
  std::erase_if(positions, [](const core::Position& one) { return one.next < 0; });
  const std::set<core::RunUid> changed = store_.changed();
  const core::Duration begun = feed_.clock_.monotonic();
  const std::size_t rows = store_.waiting();
  if (auto status = store_.commit(positions); !status) return feed_.failed(status.error());
  feed_.condition_.is_written();
  feed_.figures_.committed(feed_.clock_.monotonic() - begun, rows);
  for (const core::RunUid& run : changed) {
    if (insights::is_node_owner(run)) continue;  // the runs that it serves have moved, too
    pace_.moved(run, spoke_.contains(run));
  }
  spoke_.clear();
  return core::ok();
}

void CurvesFeed::Reading::tick() {
  for (const core::RunUid& run : pace_.take(feed_.clock_.monotonic()))
    feed_.hub_.publish("tick", {run}, core::ValueMap{{"uid", core::to_text(run)}});
}

std::chrono::milliseconds CurvesFeed::Reading::patience() const {
  const core::Duration due = pace_.due_in(feed_.clock_.monotonic()).value_or(kLookAgain);
  return std::chrono::ceil<std::chrono::milliseconds>(std::min(due, kLookAgain));
}

core::Status CurvesFeed::Reading::tidy() {
  if (auto status = drop_bad(); !status) return status;
  auto pinned = feed_.pins_.pinned();
  if (!pinned) return core::ok();
  store_.spare(std::move(*pinned));
  if (auto status = forget(); !status) return status;
  return drop_old();
}

// Each goes by itself: only a file whose structure is damaged is begun anew.
core::Status CurvesFeed::Reading::drop_bad() {
  for (const insights::BadChunk& one : feed_.bad_chunks_.take()) {
    const auto gone = store_.drop_bad(one.family, one.x0);
    if (!gone) return feed_.failed(gone.error());
    if (*gone)
      feed_.log_.warn("curves_chunk_dropped",
                      {{"series", std::to_string(one.family)}, {"first", std::to_string(one.x0)}});
  }
  return core::ok();
}

core::Status CurvesFeed::Reading::forget() {
  const core::WallTime now = feed_.clock_.now();
  if (now - tidied_ < kTidyCurvesEvery) return core::ok();
  const std::uint64_t refused = store_.refused();
  if (const std::uint64_t before = std::exchange(refused_, refused); refused > before) {
    feed_.figures_.refused(refused - before);
    feed_.log_.warn("curves_left_out", {{"values", std::to_string(refused)},
                                        {"error", "a run has more than 200 000 series"}});
  }
  const auto gone = store_.forget(now - feed_.config_.keep.runs,
                                  feed_.config_.max_curve_bytes.count, kCurvesForgotten);
  if (!gone) return feed_.failed(gone.error());
  if (*gone < kCurvesForgotten) tidied_ = now;
  return core::ok();
}

// A little a turn, so that what is new does not wait for what is old.
core::Status CurvesFeed::Reading::drop_old() {
  const core::WallTime now = feed_.clock_.now();
  if (now - aged_ < kDropOldEvery) return core::ok();
  const auto through = store_.drop_old(feed_.config_.keep, now, kDroppedOfATurn);
  if (!through) return feed_.failed(through.error());
  if (*through) aged_ = now;
  return core::ok();
}

// What cannot be read is passed over: who decides by it puts it into the dead letters.
void CurvesFeed::Reading::take(const core::RecordView& record) {
  feed_.figures_.read(record.topic, record.timestamp);
  (void)ingest::decode_telemetry(record, json_,
                                 [this](const core::FrameView& frame, const core::FrameBody& body) {
                                   if (frame.header().rank != core::kNodeAgentRank)
                                     spoke_.insert(frame.header().run);
                                   samples_.take(frame, body, feed_.clock_.monotonic(), store_);
                                   spans_.take(frame, body, store_);
                                   insights::fold_frame(frame, body, store_);
                                 });
}

core::Status CurvesFeed::Reading::go(const std::stop_token& stop) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kTelemetry};
  options.start = ingest::Start::beginning;
  options.listener = this;
  auto source = feed_.transport_.source(options);
  if (!source) return source.error();
  while (!stop.stop_requested()) {
    const core::Duration begun = feed_.clock_.monotonic();
    std::size_t taken = 0;
    bool all = false;
    // A commit is of what came together, and of what came while that was read.
    while (!all && taken < kRecordsOfACommit && store_.waiting() < kRowsOfACommit &&
           feed_.clock_.monotonic() - begun < kCommitAtMost) {
      const auto read = (*source)->poll(taken == 0 ? patience() : 0ms, kRecordsOfAPoll,
                                        [this](const core::RecordView& record) { take(record); });
      if (!read && read.error().code != core::Code::data_loss) return read.error();
      if (!read) feed_.figures_.gap();
      if (auto status = begin(**source); !status) return status;
      all = !read || *read == 0;
      if (read) taken += *read;
    }
    const bool folded = samples_.settle(feed_.clock_.monotonic(), store_);
    spans_.settle(store_);
    if (taken > 0 || folded) {
      if (auto status = commit(**source); !status) return status;
    }
    tick();
    if (const std::string why = feed_.condition_.condemned(); !why.empty())
      return core::Error{core::Code::data_loss, why};
    const bool at_end = (*source)->at_end();
    if (at_end) {
      feed_.current_ = true;
      feed_.condition_.is_written();
    }
    feed_.figures_.turn(feed_.clock_.now(), at_end);
    if (auto status = tidy(); !status) return status;
  }
  return core::ok();
}

CurvesFeed::CurvesFeed(const AppConfig& config, ingest::Transport& transport,
                       const core::Clock& clock, core::Log& log, StreamHub& hub,
                       const RunPins& pins, core::Telemetry& telemetry)
    : config_(config.insights),
      place_(config.transport),
      topics_(config.topics),
      path_(insights_path(config, "curves.db")),
      source_(transport.describe() + " " + config.topics.prefix),
      transport_(transport),
      clock_(clock),
      log_(log),
      hub_(hub),
      pins_(pins),
      figures_(telemetry, "curves", path_),
      condition_("curves", "curves_begun_anew", clock, log,
                 [&hub](const core::Value& news) { hub.publish("store", {}, news); }) {
  if (!config_.enabled) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "tocsin-curves");
    run(stop);
  });
}

CurvesFeed::~CurvesFeed() = default;  // asks the thread to stop, and joins it

// Of the store itself: what it cannot read any more it is not gone on with.
core::Error CurvesFeed::failed(const core::Error& error) {
  if (error.code == core::Code::data_loss) condition_.condemn(error.message);
  return error;
}

core::Value CurvesFeed::condition() const {
  return config_.enabled ? condition_.value() : core::Value();
}

core::Result<std::unique_ptr<insights::SeriesReader>> CurvesFeed::reader() const {
  if (!config_.enabled) return core::unavailable("insights.enabled is false: nothing is kept");
  const insights::DamageHook hook = condition_.hook_of_reader();
  auto opened = insights::SeriesReader::open(path_);
  if (opened) {
    (*opened)->tell_damage(hook);
    (*opened)->tell_bad_chunks([this](const insights::BadChunk& one) { bad_chunks_.met(one); });
    return opened;
  }
  if (opened.error().code == core::Code::data_loss) hook(opened.error().message);
  const std::string trouble = condition_.trouble();
  return core::unavailable(trouble.empty() ? opened.error().message : trouble);
}

void CurvesFeed::run(const std::stop_token& stop) {
  core::Mutex quiet;
  core::StoppableCondVar wake;
  ToldFailure told;
  while (!stop.stop_requested()) {
    if (const auto status = follow(stop); !status) {
      figures_.stand(false);
      if (told(status.error())) log_.warn("curves_failed", {{"error", status.error().message}});
      current_ = false;
      condition_.stopped(status.error());
    }
    if (!condition_.condemned().empty()) continue;  // another file is begun at once
    const core::MutexLock lock(quiet);
    wake.wait_for(quiet, stop, told.pause(kPauseOfCurves), [] { return false; });
  }
}

// Where a new store begins. Nobody waits for what is older to be read before what is new is seen.
core::Status CurvesFeed::look_back(bool whole, insights::SeriesWriter& store,
                                   std::vector<core::Position>& out) {
  if (whole || !store.positions().empty()) return core::ok();
  const core::WallTime since = clock_.now() - config_.backfill;
  auto found =
      ingest::positions_since(place_, topics_, {std::string(core::topic::kTelemetry)}, since);
  if (!found) return found.error();
  out = std::move(*found);
  log_.info("curves_backfill", {{"since", core::to_rfc3339(since)}});
  return core::ok();
}

core::Status CurvesFeed::follow(const std::stop_token& stop) {
  if (auto reached = transport_.ping(5s); !reached) return reached.error();
  insights::SetAside moved;
  auto store = insights::SeriesWriter::open(path_, source_, moved, condition_.condemned());
  condition_.opened(path_, moved);
  if (!moved.moved_to.empty()) hold_.let_go();
  hold_.take(path_);
  if (!store) return store.error();
  std::vector<core::Position> starts;
  // What was lost with a file is read again as far as the topic has it.
  const bool whole = config_.from_beginning || !moved.why.empty();
  if (auto known = look_back(whole, **store, starts); !known) return known;
  const auto status = Reading(*this, **store, std::move(starts)).go(stop);
  if (status) hold_.let_go();  // so that the writer, which ends last, empties the write-ahead log
  return status;
}

}  // namespace tocsin::app
