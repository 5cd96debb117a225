#include "ingest/journal_transport.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "core/text.h"
#include "ingest/journal_directory.h"
#include "ingest/journal_publisher.h"
#include "ingest/journal_source.h"

namespace tocsin::ingest {
namespace {

std::int64_t wall_now() {
  return core::nanoseconds(
      std::chrono::time_point_cast<core::Duration>(std::chrono::system_clock::now()));
}

/// The writer's lock of the journal already keeps a second router out.
class LockedLease final : public core::Lease {
 public:
  core::Status step(core::Duration steady, std::chrono::milliseconds /*timeout*/) override {
    valid_until_ = steady + kSession * 2 / 3;
    return core::ok();
  }
  [[nodiscard]] std::optional<core::Duration> valid_until() const override { return valid_until_; }
  void release() override { valid_until_.reset(); }

 private:
  std::optional<core::Duration> valid_until_;
};

class JournalTransport final : public Transport {
 public:
  JournalTransport(TransportConfig cfg, const TopicsConfig& topics, std::string machine,
                   core::Log& log, core::Telemetry& telemetry)
      : cfg_(std::move(cfg)),
        plan_(topic_plan(topics)),
        machine_(std::move(machine)),
        log_(log),
        telemetry_(telemetry) {
    for (const auto& topic : plan_) {
      names_.insert(topic.name);
      if (topic.compacted) compacted_.insert(topic.name);
    }
  }

  core::Result<std::unique_ptr<core::RecordSource>> source(SourceOptions options) override {
    for (const auto& topic : options.topics) {
      if (!names_.contains(topic)) return core::not_found("topic " + topic + " is not one of ours");
    }
    // A reader may come before the first writer, so it makes the folder. Where it may not, it
    // reads what is there: reading works anywhere.
    if (auto status = prepare_journal(cfg_.journal, machine_, wall_now()); !status) {
      if (::access(cfg_.journal.c_str(), R_OK | X_OK) != 0) return status.error();
      log_.warn("journal_opened_to_read_only", {{"reason", status.error().message}});
    }
    const bool all_compacted =
        !options.topics.empty() &&
        std::all_of(options.topics.begin(), options.topics.end(),
                    [this](const std::string& topic) { return compacted_.contains(topic); });
    return std::unique_ptr<core::RecordSource>(std::make_unique<JournalSource>(
        cfg_.journal, std::move(options), all_compacted, log_, telemetry_));
  }

  core::Result<std::unique_ptr<core::RecordPublisher>> publisher(
      PublisherOptions options) override {
    if (auto status = prepare_journal(cfg_.journal, machine_, wall_now()); !status) {
      return status.error();
    }
    JournalWriterOptions writer;
    writer.directory = cfg_.journal;
    writer.writer = std::move(options.writer);
    writer.durable = options.durable && cfg_.journal_fsync == "commit";
    writer.topics = names_;
    writer.compacted = compacted_;
    writer.now = wall_now;
    auto opened = JournalPublisher::open(std::move(writer), log_, telemetry_);
    if (!opened) return opened.error();
    return std::unique_ptr<core::RecordPublisher>(std::move(*opened));
  }

  core::Result<std::unique_ptr<core::Lease>> lease(std::string_view /*name*/) override {
    return std::unique_ptr<core::Lease>(std::make_unique<LockedLease>());
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

  core::Status apply_retention(core::WallTime now) override {
    apply_journal_retention(cfg_.journal, {cfg_.journal_retention, cfg_.journal_max_bytes.count},
                            now, log_);
    return core::ok();
  }

  [[nodiscard]] bool is_kafka() const override { return false; }
  [[nodiscard]] std::string describe() const override { return "journal " + cfg_.journal; }

 private:
  const TransportConfig cfg_;
  const std::vector<TopicSpec> plan_;
  const std::string machine_;
  std::set<std::string, std::less<>> names_;
  std::set<std::string, std::less<>> compacted_;
  core::Log& log_;
  core::Telemetry& telemetry_;
};

}  // namespace

core::Result<std::unique_ptr<Transport>> open_journal(const TransportConfig& cfg,
                                                      const TopicsConfig& topics, core::Log& log,
                                                      core::Telemetry& telemetry,
                                                      const std::string& machine) {
  if (cfg.journal.empty()) return core::invalid_argument("transport.journal is empty");
  if (auto status = prepare_journal(cfg.journal, machine, wall_now()); !status) {
    if (::access(cfg.journal.c_str(), R_OK | X_OK) != 0) return status.error();
    // Reading works anywhere; publisher() refuses with the same words.
    log.warn("journal_is_not_ours", {{"reason", status.error().message}});
  }
  return std::unique_ptr<Transport>(
      std::make_unique<JournalTransport>(cfg, topics, machine, log, telemetry));
}

}  // namespace tocsin::ingest
