#include "app/api/insights_feed.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <variant>
#include <vector>

#include "app/api/told_failure.h"
#include "app/view/agent_order.h"
#include "core/chart_view.h"
#include "core/fields/issue_feedback.h"
#include "core/run_pin.h"
#include "core/topics.h"

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {

constexpr auto kPauseOfReading = 5s;  // after an error
constexpr auto kForgetEvery = 1min;
constexpr std::size_t kMostOfATurn = 1024;
constexpr std::size_t kMostOfACommit = 16 * kMostOfATurn;  // while it catches up
constexpr std::size_t kMostForgotten = 20;                 // runs of one turn

// What is said of an issue or a run is kept and forgotten with the run.
std::string run_of_control(const core::RecordView& record) {
  const std::string_view key = record.key.value_or("");
  if (key.starts_with(core::kPinPrefix)) return std::string(key.substr(core::kPinPrefix.size()));
  if (record.tombstone) return "";
  if (key.starts_with(core::kVerdictPrefix)) {
    auto verdict = core::read_issue_verdict(record.text());
    return verdict ? std::move(verdict->of.run) : "";
  }
  if (!key.starts_with(core::kNotePrefix)) return "";
  auto note = core::read_issue_note(record.text());
  return note ? std::move(note->of.run) : "";
}

}  // namespace

// One source from its opening to its first error.
class InsightsFeed::Reading final : private core::AssignmentListener {
 public:
  Reading(InsightsFeed& feed, insights::EventWriter& store) : feed_(feed), store_(store) {}
  core::Status go(const std::stop_token& stop);
  core::Status tidy();

 private:
  void assigned(std::span<const core::Position> committed) override;
  void revoked(std::span<const core::StreamPartition> /*partitions*/) override {}
  void lost(std::span<const core::StreamPartition> /*partitions*/) override {}
  core::Status begin(core::RecordSource& source);
  void take(const core::RecordView& record);
  void take_event(insights::KeptRecord kept, ingest::AnyEvent event);
  void take_command(insights::KeptRecord kept, const core::RecordView& record);
  core::Status commit(const core::RecordSource& source);

  InsightsFeed& feed_;
  insights::EventWriter& store_;
  std::vector<core::StreamPartition> fresh_;  // assigned, not begun
  core::WallTime tidied_{};
  std::size_t uncommitted_ = 0;  // records
};

void InsightsFeed::Reading::assigned(std::span<const core::Position> committed) {
  for (const core::Position& one : committed) fresh_.push_back(one.where);
}

core::Status InsightsFeed::Reading::begin(core::RecordSource& source) {
  if (fresh_.empty()) return core::ok();
  for (const core::Position& one : store_.positions()) {
    if (std::find(fresh_.begin(), fresh_.end(), one.where) == fresh_.end()) continue;
    if (auto status = source.seek(one); !status) return status;
  }
  const auto fresh = std::exchange(fresh_, {});
  return source.resume(fresh);
}

void InsightsFeed::Reading::take_event(insights::KeptRecord kept, ingest::AnyEvent event) {
  if (const auto* issue = std::get_if<core::Issue>(&event)) {
    kept.record = ingest::encode_issue(*issue);
    store_.saw(kept, *issue);
  } else if (const auto* job = std::get_if<core::JobEvent>(&event)) {
    kept.record = ingest::encode_registry(*job, feed_.cluster_);
    store_.saw(kept, *job);
  } else if (const auto* rule = std::get_if<core::RuleStatusEvent>(&event)) {
    kept.record = ingest::encode_rule_status(*rule, feed_.cluster_);
    store_.saw(kept, *rule);
  }
}

void InsightsFeed::Reading::take_command(insights::KeptRecord kept,
                                         const core::RecordView& record) {
  const auto decoded = ingest::decode_command(record);
  if (!decoded) return;
  if (const std::string node = node_of_key(decoded->key); !node.empty()) {
    // Asked of a node's agent: what stands, whichever command it was.
    kept.record = decoded->command ? agent_record(*decoded->command, node, "/" + feed_.cluster_)
                                   : agent_tombstone(node);
    if (decoded->command) store_.saw(kept, *decoded->command);
    // What stands is not of a run, and not of all runs.
    return store_.saw_control(kept, core::node_route_key(node));
  }
  if (decoded->command) {
    kept.record = ingest::encode_command(*decoded->command, "/" + feed_.cluster_ + "/router");
    return store_.saw(kept, *decoded->command);
  }
  kept.record = ingest::withdraw_command(decoded->run, decoded->action);
  store_.saw_control(kept, core::to_text(decoded->run));
}

// What cannot be read is passed over: who decides by it puts it into the dead letters.
void InsightsFeed::Reading::take(const core::RecordView& record) {
  feed_.figures_.read(record.topic, record.timestamp);
  insights::KeptRecord kept;
  kept.partition = record.partition;
  kept.offset = record.offset;
  kept.timestamp = record.timestamp;
  if (record.topic == core::topic::kRouterControl) {
    feed_.pins_.saw(record);
    if (record.key.value_or("").starts_with(core::kViewPrefix)) return;  // of no run and no issue
    kept.record.topic = record.topic;
    kept.record.key = record.key.value_or("");
    if (!record.tombstone) kept.record.value = std::string(record.text());
    store_.saw_control(kept, run_of_control(record));
  } else if (record.topic == core::topic::kCommands) {
    take_command(std::move(kept), record);
  } else if (record.topic == core::topic::kAcks) {
    const auto ack = ingest::decode_ack(record);
    if (!ack) return;
    kept.record = ingest::encode_ack(*ack, feed_.cluster_);
    store_.saw(kept, *ack);
  } else if (record.topic == core::topic::kRouterDeliveries) {
    const auto delivery = record.tombstone ? core::Result<core::Delivery>(core::Error{})
                                           : ingest::decode_delivery(record);
    if (!delivery) return;
    kept.record =
        ingest::encode_delivery(*delivery, core::wall_time(record.timestamp), feed_.cluster_);
    store_.saw(kept, *delivery);
  } else if (!record.tombstone) {
    auto decoded = ingest::decode_event(record);
    if (decoded) take_event(std::move(kept), std::move(decoded->event));
  }
}

core::Status InsightsFeed::Reading::commit(const core::RecordSource& source) {
  std::vector<core::Position> positions = source.positions();
  std::erase_if(positions, [](const core::Position& one) { return one.next < 0; });
  const std::set<std::string> changed = store_.changed();
  const core::Duration begun = feed_.clock_.monotonic();
  if (auto status = store_.commit(positions); !status) return feed_.failed(status.error());
  feed_.condition_.is_written();
  feed_.figures_.committed(feed_.clock_.monotonic() - begun, 0);
  for (const std::string& run : changed) {
    const auto uid = core::parse_run_uid(run);
    if (uid) feed_.hub_.publish("run", {*uid}, core::ValueMap{{"uid", run}});
  }
  return core::ok();
}

core::Status InsightsFeed::Reading::go(const std::stop_token& stop) {
  ingest::SourceOptions options;
  options.topics = {core::topic::kRegistry,         core::topic::kIssues,
                    core::topic::kCommands,         core::topic::kAcks,
                    core::topic::kRouterDeliveries, core::topic::kRouterControl};
  options.start = ingest::Start::beginning;
  options.listener = this;
  auto source = feed_.transport_.source(options);
  if (!source) return source.error();
  while (!stop.stop_requested()) {
    const auto read = (*source)->poll(100ms, kMostOfATurn,
                                      [this](const core::RecordView& record) { take(record); });
    if (!read && read.error().code != core::Code::data_loss) return read.error();
    if (!read) feed_.figures_.gap();
    if (auto status = begin(**source); !status) return status;
    uncommitted_ += read ? *read : 0;
    const bool behind = read && *read == kMostOfATurn && uncommitted_ < kMostOfACommit;
    if (!behind && (!read || uncommitted_ > 0)) {
      if (auto status = commit(**source); !status) return status;
      uncommitted_ = 0;
    }
    const bool at_end = read && *read == 0 && (*source)->at_end();
    if (at_end) feed_.is_current();
    if (const std::string why = feed_.condition_.condemned(); !why.empty())
      return core::Error{core::Code::data_loss, why};
    feed_.figures_.turn(feed_.clock_.now(), at_end);
    if (auto status = tidy(); !status) return status;
  }
  return core::ok();
}

/// Lets go of what is too old or too much, a piece at a time.
core::Status InsightsFeed::Reading::tidy() {
  const core::WallTime now = feed_.clock_.now();
  if (now - tidied_ < kForgetEvery) return core::ok();
  auto pinned = feed_.pins_.pinned();
  if (!pinned) return core::ok();
  store_.spare(std::move(*pinned));
  const auto gone =
      store_.forget(now - feed_.config_.keep.runs, feed_.config_.max_bytes.count, kMostForgotten);
  if (!gone) return feed_.failed(gone.error());
  if (*gone < kMostForgotten) tidied_ = now;
  return core::ok();
}

InsightsFeed::InsightsFeed(const AppConfig& config, ingest::Transport& transport,
                           const core::Clock& clock, core::Log& log, StreamHub& hub, RunPins& pins,
                           core::Telemetry& telemetry)
    : config_(config.insights),
      path_(insights_path(config, "")),
      source_(transport.describe() + " " + config.topics.prefix),
      cluster_(config.cluster),
      transport_(transport),
      clock_(clock),
      log_(log),
      hub_(hub),
      pins_(pins),
      figures_(telemetry, "events", path_),
      condition_("events", "insights_begun_anew", clock, log) {
  if (!config_.enabled) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "tocsin-insights");
    run(stop);
  });
}

InsightsFeed::~InsightsFeed() = default;  // asks the thread to stop, and joins it

// Of the store itself: what it cannot read any more it is not gone on with.
core::Error InsightsFeed::failed(const core::Error& error) {
  if (error.code == core::Code::data_loss) condition_.condemn(error.message);
  return error;
}

void InsightsFeed::is_current() {
  current_ = true;
  condition_.is_written();
}

core::Value InsightsFeed::condition() const {
  return config_.enabled ? condition_.value() : core::Value();
}

core::Result<std::unique_ptr<insights::EventReader>> InsightsFeed::reader() const {
  if (!config_.enabled) return core::unavailable("insights.enabled is false: nothing is kept");
  const insights::DamageHook hook = condition_.hook_of_reader();
  auto opened = insights::EventReader::open(path_);
  if (opened) {
    (*opened)->tell_damage(hook);
    return opened;
  }
  if (opened.error().code == core::Code::data_loss) hook(opened.error().message);
  const std::string trouble = condition_.trouble();
  return core::unavailable(trouble.empty() ? opened.error().message : trouble);
}

void InsightsFeed::run(const std::stop_token& stop) {
  core::Mutex quiet;
  core::StoppableCondVar wake;
  ToldFailure told;
  while (!stop.stop_requested()) {
    if (const auto status = follow(stop); !status) {
      figures_.stand(false);
      if (told(status.error())) log_.warn("insights_failed", {{"error", status.error().message}});
      current_ = false;
      condition_.stopped(status.error());
    }
    if (!condition_.condemned().empty()) continue;  // another file is begun at once
    const core::MutexLock lock(quiet);
    wake.wait_for(quiet, stop, told.pause(kPauseOfReading), [] { return false; });
  }
}

core::Status InsightsFeed::follow(const std::stop_token& stop) {
  if (auto reached = transport_.ping(5s); !reached) return reached.error();
  insights::SetAside moved;
  auto store = insights::EventWriter::open(path_, source_, moved, condition_.condemned());
  condition_.opened(path_, moved);
  if (!moved.moved_to.empty()) hold_.let_go();
  hold_.take(path_);
  // The store answers meanwhile; that of curves asks for them too, whether or not this one can be written.
  if (auto known = pins_.read(transport_, stop); !known) return known;
  if (!store) return store.error();
  const auto status = Reading(*this, **store).go(stop);
  if (status) hold_.let_go();  // so that the writer, which ends last, empties the write-ahead log
  return status;
}

}  // namespace tocsin::app
