#include "ingest/journal/transport.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "core/mutex.h"
#include "ingest/journal/directory.h"
#include "ingest/journal/fork.h"
#include "ingest/journal/keeper.h"
#include "ingest/journal/lease.h"
#include "ingest/journal/publisher.h"
#include "ingest/journal/schema.h"
#include "ingest/journal/source.h"

namespace tocsin::ingest {
namespace {

std::int64_t wall_now() {
  return core::nanoseconds(
      std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now()));
}

class JournalTransport final : public Transport {
 public:
  JournalTransport(TransportConfig cfg, const TopicsConfig& topics, std::string machine,
                   core::Log& log, core::Telemetry& telemetry)
      : cfg_(std::move(cfg)),
        plan_(topic_plan(topics)),
        topics_(journal_topics(topics)),
        machine_(std::move(machine)),
        log_(log),
        telemetry_(telemetry),
        keeper_(cfg_.journal, topics_,
                {cfg_.journal_retention, cfg_.journal_max_bytes.count,
                 cfg_.journal_control_bytes.count},
                log) {}

  /// Once per transport, and again when the files are not the same any more.
  core::Status prepare() {
    const core::MutexLock lock(prepare_mutex_);
    const auto now = identities();
    if (now == prepared_ && now[0] != 0 && now[1] != 0) return core::ok();
    auto status = prepare_journal(cfg_.journal, machine_, topics_, wall_now());
    if (status) prepared_ = identities();
    return status;
  }

  /// What is not ours to write may still be read, if it is a journal at all.
  core::Status prepare_to_read() {
    const auto prepared = prepare();
    if (prepared) return prepared;
    for (const auto file : kJournalFiles) {
      auto opened = JournalDatabase::open(journal_path(cfg_.journal, file), JournalAccess::read);
      if (!opened) {
        const bool missing = opened.error().code == core::Code::unavailable;
        return missing ? prepared.error() : opened.error();
      }
    }
    log_.warn("journal_opened_to_read_only", {{"reason", prepared.error().message}});
    return core::ok();
  }

  core::Result<std::unique_ptr<core::RecordSource>> source(SourceOptions options) override {
    for (const auto& topic : options.topics) {
      if (!topics_.contains(topic))
        return core::not_found("topic " + topic + " is not one of ours");
    }
    if (auto status = prepare_to_read(); !status) return status.error();
    std::shared_ptr<GroupLock> owner;
    if (!options.group.empty()) {
      auto taken = GroupLock::take(cfg_.journal, options.group);
      if (!taken) return taken.error();
      owner = std::move(*taken);
    }
    return std::unique_ptr<core::RecordSource>(std::make_unique<JournalSource>(
        cfg_.journal, topics_, std::move(options), std::move(owner), log_, telemetry_));
  }

  core::Result<std::unique_ptr<core::RecordPublisher>> publisher(
      PublisherOptions options) override {
    if (auto status = prepare(); !status) return status.error();
    JournalPublisherOptions own;
    own.directory = cfg_.journal;
    own.access = options.durable && cfg_.journal_fsync == "commit" ? JournalAccess::write_durable
                                                                   : JournalAccess::write;
    if (const auto* source = dynamic_cast<const JournalSource*>(options.source)) {
      own.group = source->group();
      own.owner = source->owner();
    }
    own.linger = options.linger;
    own.commit_timeout = options.commit_timeout;
    own.max_queued_bytes = options.max_queued_bytes;
    own.max_queued_records = options.max_queued_records;
    own.prepare = [this] { return prepare(); };
    own.now = wall_now;
    return std::unique_ptr<core::RecordPublisher>(
        std::make_unique<JournalPublisher>(topics_, std::move(own), log_, telemetry_));
  }

  core::Result<std::unique_ptr<core::Lease>> lease(std::string_view name) override {
    return std::unique_ptr<core::Lease>(std::make_unique<JournalLease>(
        cfg_.journal, std::string(name), [this] { return prepare(); }));
  }

  core::Status ensure_topics() override { return core::ok(); }

  core::Result<std::vector<TopicState>> topic_states() override {
    std::vector<TopicState> states;
    for (const auto& topic : plan_) {
      states.push_back({topic, 1});
      states.back().wanted.partitions = 1;
    }
    return states;
  }

  core::Status ping(std::chrono::milliseconds /*timeout*/) override {
    if (::access(cfg_.journal.c_str(), R_OK | W_OK | X_OK) == 0) return core::ok();
    return core::unavailable("journal " + cfg_.journal + ": " +
                             file_error("using", cfg_.journal, errno).message);
  }

  core::Status apply_retention(core::WallTime now) override { return keeper_.keep(now); }

  [[nodiscard]] std::string space_warning() const override {
    const JournalUse use;
    auto control = JournalDatabase::open(journal_path(cfg_.journal, JournalFile::control),
                                         JournalAccess::read);
    if (!control) return {};
    const auto used = ControlLimit::used(**control);
    const auto limit = static_cast<double>(cfg_.journal_control_bytes.count);
    if (!used || static_cast<double>(*used) < ControlLimit::kNearly * limit) return {};
    const auto mib = [](double bytes) {
      return std::to_string(static_cast<std::uint64_t>(bytes / (1 << 20))) + " MiB";
    };
    return "control.db holds " + mib(static_cast<double>(*used)) + " of " + mib(limit) +
           " (transport.journal_control_bytes): the oldest records of its largest topic go first";
  }

  [[nodiscard]] bool is_kafka() const override { return false; }
  [[nodiscard]] std::string describe() const override { return "journal " + cfg_.journal; }

 private:
  [[nodiscard]] std::array<std::uint64_t, 2> identities() const {
    return {file_identity(journal_path(cfg_.journal, JournalFile::telemetry)),
            file_identity(journal_path(cfg_.journal, JournalFile::control))};
  }

  const TransportConfig cfg_;
  const std::vector<TopicSpec> plan_;
  const JournalTopics topics_;
  const std::string machine_;
  core::Log& log_;
  core::Telemetry& telemetry_;
  JournalKeeper keeper_;
  core::Mutex prepare_mutex_;
  // The files that prepare() has seen.
  std::array<std::uint64_t, 2> prepared_ GUARDED_BY(prepare_mutex_){};
};

}  // namespace

core::Result<std::unique_ptr<Transport>> open_journal(const TransportConfig& cfg,
                                                      const TopicsConfig& topics, core::Log& log,
                                                      core::Telemetry& telemetry,
                                                      const std::string& machine) {
  if (cfg.journal.empty()) return core::invalid_argument("transport.journal is empty");
  auto transport = std::make_unique<JournalTransport>(cfg, topics, machine, log, telemetry);
  if (auto status = transport->prepare_to_read(); !status) return status.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace tocsin::ingest
