// What the stages share that do something about single events of `issues` some time after they were
// told: which events wait, where reading goes on after a crash, and what is said of the work.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "app/loop/stage.h"
#include "app/stages/input_positions.h"
#include "core/issue.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {

/// `Event`: core::Issue or core::JobEvent. One event is worked off after the other, in the order in
/// which they were told.
template <typename Event>
class AfterwardsStage : public Stage {
 public:
  [[nodiscard]] const StageWiring& wiring() const override { return wiring_; }

  core::Status open(const Instant& /*now*/) override {
    leave();
    ending_ = false;
    waiting_.clear();
    positions_.clear();
    return core::ok();
  }

  std::optional<Refusal> handle(const core::RecordView& record,
                                const StageContext& context) override {
    core::StreamPartition where = positions_.read(record);
    if (record.tombstone || record.header("ce_type") != type()) return std::nullopt;
    auto decoded = ingest::decode_event(record);
    if (!decoded) return Refusal{"bad_event", decoded.error().message};
    auto* event = std::get_if<Event>(&decoded->event);
    if (event == nullptr) return std::nullopt;
    if (const auto due = wanted(*event, record, context)) {
      waiting_.push_back({std::move(where), record.offset, std::move(*event), *due});
    }
    return std::nullopt;
  }

  std::optional<core::Duration> tick(const StageTick& /*tick*/) override {
    if (waiting_.empty()) return std::nullopt;
    return waiting_.front().due;
  }

  StageOutput take(const Instant& now) override {
    StageOutput out;
    if (!ending_ && !waiting_.empty() && waiting_.front().due <= now.steady) {
      std::optional<core::RuleStatusEvent> told;
      if (work(waiting_.front().event, now, told)) {
        const std::int32_t partition = waiting_.front().where.partition;
        waiting_.pop_front();
        if (told) out.records.push_back({partition, ingest::encode_rule_status(*told, cluster_)});
      }
    }
    // After a crash the events are read again that are not worked off.
    out.positions = positions_.take(waiting_);
    return out;
  }

  /// What waits, and what is half done, is for the next process.
  void finish(const Instant& /*now*/) override {
    ending_ = true;
    leave();
  }

  void revoked(std::span<const core::StreamPartition> partitions) override {
    for (const core::StreamPartition& gone : partitions) {
      if (!waiting_.empty() && waiting_.front().where == gone) leave();
      std::erase_if(waiting_, [&](const Waiting& one) { return one.where == gone; });
    }
    positions_.forget(partitions);
  }
  void lost(std::span<const core::StreamPartition> partitions) override { revoked(partitions); }

 protected:
  struct Waiting {
    core::StreamPartition where;
    std::int64_t offset = 0;
    Event event;
    core::Duration due{};  // steady
  };

  /// `name`: of the stage, its group and its writer. `instance`: of several processes.
  AfterwardsStage(const std::string& name, const std::string& topic_prefix,
                  const std::string& instance, std::string cluster)
      : cluster_(std::move(cluster)) {
    wiring_.name = wiring_.writer = name;
    wiring_.part = "rules";
    wiring_.group = topic_prefix + "-" + name;
    wiring_.topics = {core::topic::kIssues};
    wiring_.transactional_id = wiring_.group + "-" + instance;
    wiring_.commit_every = std::chrono::seconds{1};
    wiring_.fetch_wait = std::chrono::milliseconds{100};  // what comes ends it at once
  }

  /// From when on (steady) it is to be worked off; nullopt: it is not.
  virtual std::optional<core::Duration> wanted(const Event& event, const core::RecordView& record,
                                               const StageContext& context) = 0;
  /// Some tenths of a second of work; true: it is done, and `told` is what is said of it, if
  /// anything. Called for the same event until then, or until leave().
  virtual bool work(const Event& event, const Instant& now,
                    std::optional<core::RuleStatusEvent>& told) = 0;
  /// The event that is worked at is not ours any more, or we end.
  virtual void leave() = 0;

  /// That wait at once, of all runs: a cluster that goes down ends them all. Further ones are not
  /// wanted, which is counted.
  static constexpr std::size_t kMostWaiting = 1000;
  [[nodiscard]] const std::deque<Waiting>& waiting() const noexcept { return waiting_; }

 private:
  static constexpr std::string_view type() {
    return std::is_same_v<Event, core::Issue> ? ingest::event_type::kIssue
                                              : ingest::event_type::kJob;
  }

  std::string cluster_;
  StageWiring wiring_;
  std::deque<Waiting> waiting_;
  InputPositions positions_;
  bool ending_ = false;
};

}  // namespace tocsin::app
