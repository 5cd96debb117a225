#include "app/collect_role.h"

#include <algorithm>
#include <thread>
#include <unordered_set>

#include "app/events_log.h"

namespace tocsin::app {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kRowsPerFrame = 500;
constexpr core::Duration kDictionaryEvery = 5min;

const core::Value* field(const core::Value& map, std::string_view name) {
  const auto* entries = std::get_if<core::ValueMap>(&map.storage());
  if (entries == nullptr) return nullptr;
  for (const auto& [key, value] : *entries) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::int64_t integer(const core::Value* value) {
  const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(&value->storage());
  return number == nullptr ? 0 : *number;
}

std::string text(const core::Value* value) {
  const auto* words = value == nullptr ? nullptr : std::get_if<std::string>(&value->storage());
  return words == nullptr ? std::string() : *words;
}

}  // namespace

// Who gets the sweeps: one run, or nobody's node. Sequence and dictionary are per target, because
// each is a stream of its own.
struct CollectRole::Target {
  core::FrameHeader header;
  std::int64_t pid = 0;
  std::unordered_set<std::uint64_t> named;
  core::Duration named_since{};
};

CollectRole::CollectRole(ingest::Transport& transport, CollectRoleOptions options,
                         core::Clock& clock, core::Log& log, core::Telemetry& telemetry)
    : transport_(transport),
      options_(std::move(options)),
      clock_(clock),
      log_(log),
      telemetry_(telemetry),
      dropped_(telemetry.counter("tocsin_collectors_dropped_frames_total",
                                 "frames the transport did not take")) {
  if (options_.collect.node.empty()) options_.collect.node = options_.host;
}

CollectRole::~CollectRole() = default;

core::Status CollectRole::open() {
  auto node = collectors::NodeCollector::open(options_.collect, {&telemetry_, &log_, &clock_});
  if (!node) return node.error();
  node_ = std::move(*node);
  ingest::SourceOptions source;
  source.topics = {"registry"};
  source.start = ingest::Start::beginning;  // compacted: the present state of every run
  auto opened = transport_.source(source);
  if (!opened) return opened.error();
  source_ = std::move(*opened);
  ingest::PublisherOptions publisher;
  publisher.writer = "node-" + options_.collect.node;
  publisher.linger = 20ms;
  auto made = transport_.publisher(publisher);
  if (!made) return made.error();
  publisher_ = std::move(*made);
  incarnation_ = static_cast<std::uint64_t>(core::nanoseconds(clock_.now()));
  unattributed_ = std::make_unique<Target>();
  return core::ok();
}

void CollectRole::run(const std::stop_token& stop) {
  ready_ = true;
  while (!stop.stop_requested()) {
    const core::Duration next = node_->tick(
        clock_.now(), clock_.monotonic(), [this](const collectors::Sweep& sweep) { send(sweep); });
    const core::Duration left = std::max<core::Duration>(next - clock_.monotonic(), 1ms);
    // The registry is quiet, so its poll is also the timer.
    const auto wait = std::min<std::chrono::milliseconds>(
        std::chrono::ceil<std::chrono::milliseconds>(left), 200ms);
    const auto polled =
        source_->poll(wait, 256, [this](const core::RecordView& record) { handle(record); });
    if (!polled) std::this_thread::sleep_for(std::min<core::Duration>(left, 100ms));
  }
  (void)publisher_->flush(1s);  // what does not get out now is only one sweep
  source_->close(2s);
  ready_ = false;
}

void CollectRole::handle(const core::RecordView& record) {
  if (record.tombstone) return;
  const auto decoded = ingest::decode_event(record);
  if (!decoded) return;
  if (const auto* job = std::get_if<core::JobEvent>(&decoded->event)) on_job(*job);
}

void CollectRole::on_job(const core::JobEvent& event) {
  const auto known = runs_.find(event.run.uid);
  if (event.phase == core::JobPhase::ended) {
    if (known == runs_.end()) return;
    if (known->second.pid > 0) node_->forget_process(known->second.pid);
    runs_.erase(known);
    return;
  }
  if (text(field(event.run.ref, "host")) != options_.host) return;
  const std::int64_t pid = integer(field(event.run.ref, "pid"));
  if (pid > 0) {
    // The registry may still hold runs that ended without a word.
    const auto fence = actions::process_fence(event.run.ref);
    if (fence && !actions::LocalProcess::open(*fence, options_.host)) return;
  }
  Target& target = runs_[event.run.uid];
  target.header.run = event.run.uid;
  target.header.attempt = event.run.attempt;
  if (target.pid != pid) {
    if (target.pid > 0) node_->forget_process(target.pid);
    target.pid = pid;
    if (pid > 0) node_->watch_process(pid);
  }
}

void CollectRole::send(const collectors::Sweep& sweep) {
  if (runs_.empty()) {
    send_to(*unattributed_, core::node_route_key(options_.collect.node), sweep);
  }
  for (auto& [uid, target] : runs_) send_to(target, core::route_key(uid), sweep);
}

void CollectRole::send_to(Target& target, const std::string& key, const collectors::Sweep& sweep) {
  target.header.rank = core::kNodeAgentRank;
  target.header.worker = core::name_hash(options_.collect.node);
  target.header.incarnation = incarnation_;
  target.header.mode = core::Mode::global;
  target.header.time = core::nanoseconds(sweep.time());

  if (sweep.monotonic() - target.named_since > kDictionaryEvery) {
    target.named.clear();
    target.named_since = sweep.monotonic();
  }
  std::vector<core::DictionaryEntry> names;
  if (target.named.empty()) {
    core::DictionaryEntry node;
    node.hash = target.header.worker;
    node.type = core::DictionaryType::node;
    node.name = options_.collect.node;
    names.push_back(node);
  }
  for (const auto& sample : sweep.samples()) {
    if (!target.named.insert(sample.series->hash).second) continue;
    core::DictionaryEntry entry;
    entry.hash = sample.series->hash;
    entry.type = core::DictionaryType::series;
    entry.name = sample.series->name;
    names.push_back(entry);
  }
  for (std::size_t at = 0; at < names.size(); at += kRowsPerFrame) {
    ++target.header.sequence;
    const auto part = std::span(names).subspan(at, std::min(kRowsPerFrame, names.size() - at));
    if (const auto frame = writer_.dictionary(target.header, part).finish())
      (void)publish(key, *frame, sweep.time());
  }
  for (std::size_t at = 0; at < sweep.samples().size(); at += kRowsPerFrame) {
    const auto part =
        sweep.samples().subspan(at, std::min(kRowsPerFrame, sweep.samples().size() - at));
    rows_.clear();
    for (const auto& sample : part) {
      rows_.push_back({sample.series->hash, target.header.time, sample.value,
                       sample.series->counter ? 1U : 0U});
    }
    ++target.header.sequence;
    if (const auto frame = writer_.system(target.header, rows_).finish())
      (void)publish(key, *frame, sweep.time());
  }
}

core::Status CollectRole::publish(std::string key, std::span<const std::byte> frame,
                                  core::WallTime time) {
  core::OutRecord record;
  record.topic = "telemetry";
  record.key = std::move(key);
  record.value = std::string(reinterpret_cast<const char*>(frame.data()), frame.size());
  record.timestamp = core::nanoseconds(time);
  const auto status = publisher_->publish(record);
  if (!status) {
    dropped_.add();
    log_.warn("samples_dropped", {{"error", status.error().message}});
  }
  return status;
}

StopRole::StopRole(ingest::Transport& transport, std::string host, core::Clock& clock,
                   core::Log& log, core::Telemetry& telemetry)
    : transport_(transport),
      clock_(clock),
      log_(log),
      agent_(host, actions::local_process_control(host), log, telemetry) {}

core::Status StopRole::open() {
  ingest::SourceOptions source;
  source.topics = {"commands", "acks", "registry"};
  source.start = ingest::Start::beginning;
  auto opened = transport_.source(source);
  if (!opened) return opened.error();
  source_ = std::move(*opened);
  started_ = clock_.now();
  return core::ok();
}

void StopRole::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto polled =
        source_->poll(100ms, 256, [this](const core::RecordView& record) { handle(record); });
    if (!polled) {
      log_.warn("source_failed", {{"error", polled.error().message}});
      std::this_thread::sleep_for(200ms);
    }
    // Until everything that was there is read, an old command may already be answered further on.
    caught_up_ = caught_up_ || source_->at_end();
    if (caught_up_) report(agent_.tick(clock_.now()));
  }
  source_->close(2s);
}

void StopRole::handle(const core::RecordView& record) {
  const core::WallTime now = clock_.now();
  if (record.topic == "commands") {
    const auto decoded = ingest::decode_command(record);
    if (!decoded) return;
    if (decoded->command) {
      report(agent_.on_command(*decoded->command, now));
    } else if (decoded->action == "stop") {
      report(agent_.on_withdrawn(decoded->run, now));
    }
  } else if (record.topic == "acks") {
    const auto ack = ingest::decode_ack(record);
    if (!ack) return;
    if (ack->time >= started_) log_ack(log_, *ack);
    report(agent_.on_ack(*ack, now));
  } else if (const auto decoded = ingest::decode_event(record)) {
    if (const auto* job = std::get_if<core::JobEvent>(&decoded->event))
      report(agent_.on_job(*job, now));
  }
}

void StopRole::report(const std::vector<actions::StopTransition>& transitions) {
  for (const auto& transition : transitions) {
    if (transition.at < started_) continue;
    log_.info("stop_state_changed", {{"command_id", transition.command_id},
                                     {"run", core::to_text(transition.run)},
                                     {"attempt", std::int64_t{transition.attempt}},
                                     {"from", std::string(actions::to_string(transition.from))},
                                     {"to", std::string(actions::to_string(transition.to))},
                                     {"reason", transition.reason},
                                     {"at", core::to_rfc3339(transition.at)}});
  }
}

}  // namespace tocsin::app
