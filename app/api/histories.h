// The newest deliveries, commands and changes by people, as far as memory goes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/api/page.h"
#include "app/api/topic_watch.h"
#include "app/view/audit_record.h"
#include "app/view/told_groups.h"
#include "core/command.h"
#include "core/notification.h"

namespace tocsin::app {

/// "partition.offset" with leading zeros: the same in every process.
std::string record_id(const core::RecordView& record);

/// Attempts and ends of deliveries.
class RecentDeliveries final : public TopicWatch {
 public:
  static constexpr std::size_t kMost = 10'000;
  struct Entry {
    RowKey key;
    core::Delivery delivery;
  };

  void start_over() override;
  void saw(const core::RecordView& record, const TopicView& view) override;

  [[nodiscard]] const std::deque<Entry>& entries() const { return entries_; }
  /// From when on all are there; nullopt: all that the topic has.
  [[nodiscard]] std::optional<core::WallTime> complete_since() const { return complete_since_; }
  /// The number of the episode that was found by this event, as it was told; nullopt: nobody was.
  [[nodiscard]] std::optional<std::uint64_t> episode_of(const std::string& issue_key,
                                                        const std::string& event_id) const;

 private:
  std::deque<Entry> entries_;  // in the order they came
  std::optional<core::WallTime> complete_since_;
  std::map<std::string, core::IssueRef> told_;  // by issue key, the newest
};

/// Commands to runs, and what ranks answered.
class CommandHistory final : public TopicWatch {
 public:
  static constexpr std::size_t kMost = 2000;
  static constexpr std::size_t kMostAnswers = 256;  // of one command
  struct Answer {
    std::string phase;
    std::string worker;
    std::string reason;
    core::WallTime time{};
    std::int64_t step = 0;
    std::optional<std::int64_t> effective_step;  // from which on it holds
  };
  struct Entry {
    RowKey key;
    core::Command command;
    std::string node;  // of an agent's; empty: it is a run's
    bool withdrawn = false;
    std::string newest_phase;
    std::map<std::uint32_t, Answer> answers;  // by rank, the newest
  };

  void start_over() override;
  void saw(const core::RecordView& record, const TopicView& view) override;

  /// By command id.
  [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }
  [[nodiscard]] std::optional<core::WallTime> complete_since() const { return complete_since_; }

 private:
  void saw_command(const core::RecordView& record);
  void saw_ack(const core::Ack& ack);
  Entry* make_room(const std::string& id);

  std::map<std::string, Entry> entries_;
  std::map<std::string, std::vector<core::Ack>> early_;  // their command is read later
  std::size_t early_count_ = 0;
  std::optional<core::WallTime> complete_since_;
};

/// Which issues the messages of a group have told.
class ToldHistory final : public TopicWatch {
 public:
  [[nodiscard]] std::vector<std::string> topics() const override;
  void start_over() override { groups_.clear(); }
  void saw(const core::RecordView& record, const TopicView& /*view*/) override {
    groups_.apply(record);
  }
  [[nodiscard]] const ToldGroups& groups() const { return groups_; }

 private:
  ToldGroups groups_;
};

/// Changes by people and programs.
class AuditHistory final : public TopicWatch {
 public:
  static constexpr std::size_t kMost = 10'000;
  struct Entry {
    RowKey key;
    AuditEntry change;
  };

  [[nodiscard]] std::vector<std::string> topics() const override;
  void start_over() override;
  void saw(const core::RecordView& record, const TopicView& view) override;

  [[nodiscard]] const std::deque<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::optional<core::WallTime> complete_since() const { return complete_since_; }

 private:
  std::deque<Entry> entries_;
  std::optional<core::WallTime> complete_since_;
};

}  // namespace tocsin::app
