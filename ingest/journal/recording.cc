// A journal as a recording: read where it lies, and left as it is.
#include <array>
#include <filesystem>
#include <utility>

#include "ingest/journal/database.h"
#include "ingest/journal/layout.h"
#include "ingest/journal/source.h"
#include "ingest/journal/transport.h"

namespace tocsin::ingest {
namespace {

class RecordingTransport final : public Transport {
 public:
  RecordingTransport(std::string directory, const TopicsConfig& topics, core::Log& log,
                     core::Telemetry& telemetry)
      : directory_(std::move(directory)),
        plan_(topic_plan(topics)),
        topics_(journal_topics(topics)),
        log_(log),
        telemetry_(telemetry) {}

  core::Result<std::unique_ptr<core::RecordSource>> source(SourceOptions options) override {
    if (!options.group.empty()) return refused("a position of group " + options.group);
    for (const auto& topic : options.topics) {
      const auto known = topics_.find(topic);
      if (known == topics_.end()) return core::not_found("topic " + topic + " is not one of ours");
      if (auto there = look(known->second.file); !there) return there.error();
    }
    return std::unique_ptr<core::RecordSource>(
        std::make_unique<JournalSource>(directory_, topics_, std::move(options), nullptr, log_,
                                        telemetry_, JournalAccess::recorded));
  }

  core::Result<std::unique_ptr<core::RecordPublisher>> publisher(PublisherOptions) override {
    return refused("a record");
  }
  core::Result<std::unique_ptr<core::Lease>> lease(std::string_view name) override {
    return refused("lease " + std::string(name));
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
    return look(JournalFile::telemetry);
  }
  core::Status apply_retention(core::WallTime /*now*/) override { return core::ok(); }
  [[nodiscard]] bool is_kafka() const override { return false; }
  [[nodiscard]] std::string describe() const override { return "journal " + directory_; }

 private:
  [[nodiscard]] core::Error refused(const std::string& what) const {
    return {core::Code::failed_precondition,
            "journal " + directory_ + " is open as a recording: " + what + " is not written"};
  }

  [[nodiscard]] core::Status look(JournalFile file) const {
    const std::string path = journal_path(directory_, file);
    if (file_identity(path) == 0) {
      return core::unavailable("there is no journal " + directory_ + ": " + path + " is missing");
    }
    const auto opened = JournalDatabase::open(path, JournalAccess::recorded);
    return opened ? core::ok() : core::Status(opened.error());
  }

  const std::string directory_;
  const std::vector<TopicSpec> plan_;
  const JournalTopics topics_;
  core::Log& log_;
  core::Telemetry& telemetry_;
};

}  // namespace

core::Result<std::unique_ptr<Transport>> open_journal_recording(const std::string& directory,
                                                                const TopicsConfig& topics,
                                                                core::Log& log,
                                                                core::Telemetry& telemetry) {
  if (directory.empty()) return core::invalid_argument("the folder of the journal has no name");
  return std::unique_ptr<Transport>(
      std::make_unique<RecordingTransport>(directory, topics, log, telemetry));
}

}  // namespace tocsin::ingest
