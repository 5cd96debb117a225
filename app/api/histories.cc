#include "app/api/histories.h"

#include <algorithm>

#include "app/view/agent_order.h"
#include "core/audit_topic.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMostEarly = 10'000;  // answers whose command is not there yet
constexpr std::size_t kMostTold = 50'000;

std::string padded(std::int64_t number, std::size_t width) {
  std::string out = std::to_string(number);
  return out.size() < width ? std::string(width - out.size(), '0') + out : out;
}

}  // namespace

std::string record_id(const core::RecordView& record) {
  return padded(record.partition, 4) + "." + padded(record.offset, 12);
}

void RecentDeliveries::start_over() {
  entries_.clear();
  told_.clear();
  complete_since_.reset();
}

void RecentDeliveries::saw(const core::RecordView& record, const TopicView&) {
  if (record.topic != core::topic::kRouterDeliveries || record.tombstone) return;
  auto delivery = ingest::decode_delivery(record);
  if (!delivery) return;
  for (const core::IssueRef& issue : delivery->issues) {
    if (told_.size() >= kMostTold && !told_.contains(issue.issue_key)) told_.erase(told_.begin());
    core::IssueRef& known = told_[issue.issue_key];
    if (issue.episode >= known.episode) known = issue;
  }
  entries_.push_back(
      {{core::wall_time(record.timestamp), record_id(record)}, std::move(*delivery)});
  if (entries_.size() <= kMost) return;
  entries_.pop_front();
  complete_since_ = entries_.front().key.at;
}

std::optional<std::uint64_t> RecentDeliveries::episode_of(const std::string& issue_key,
                                                          const std::string& event_id) const {
  const auto found = told_.find(issue_key);
  if (found == told_.end() || found->second.event_id != event_id) return std::nullopt;
  return found->second.episode;
}

void CommandHistory::start_over() {
  entries_.clear();
  early_.clear();
  early_count_ = 0;
  complete_since_.reset();
}

void CommandHistory::saw(const core::RecordView& record, const TopicView&) {
  if (record.topic == core::topic::kCommands) return saw_command(record);
  if (record.topic != core::topic::kAcks || record.tombstone) return;
  if (const auto ack = ingest::decode_ack(record)) saw_ack(*ack);
}

CommandHistory::Entry* CommandHistory::make_room(const std::string& id) {
  const auto found = entries_.find(id);
  if (found != entries_.end()) return &found->second;
  if (entries_.size() >= kMost) {
    const auto oldest =
        std::min_element(entries_.begin(), entries_.end(),
                         [](const auto& a, const auto& b) { return a.second.key < b.second.key; });
    complete_since_ = std::max(complete_since_.value_or(core::WallTime{}), oldest->second.key.at);
    entries_.erase(oldest);
  }
  return &entries_[id];
}

void CommandHistory::saw_command(const core::RecordView& record) {
  auto decoded = ingest::decode_command(record);
  if (!decoded) return;
  std::string node = node_of_key(decoded->key);
  if (!decoded->command) {
    for (auto& [id, entry] : entries_) {
      const bool meant = entry.command.run == decoded->run &&
                         entry.command.action == decoded->action && entry.node == node;
      entry.withdrawn = entry.withdrawn || meant;
    }
    return;
  }
  const std::string id = decoded->command->command_id;
  Entry& entry = *make_room(id);
  entry.key = {decoded->command->issued_at, id};
  entry.command = std::move(*decoded->command);
  entry.node = std::move(node);
  entry.withdrawn = false;
  const auto early = early_.find(id);
  if (early == early_.end()) return;
  const auto acks = std::move(early->second);
  early_count_ -= acks.size();
  early_.erase(early);
  for (const core::Ack& ack : acks) saw_ack(ack);
}

void CommandHistory::saw_ack(const core::Ack& ack) {
  const auto found = entries_.find(ack.command_id);
  if (found == entries_.end()) {
    if (early_count_ >= kMostEarly) return;
    ++early_count_;
    early_[ack.command_id].push_back(ack);
    return;
  }
  Entry& entry = found->second;
  entry.newest_phase = ack.phase;
  if (entry.answers.size() >= kMostAnswers && !entry.answers.contains(ack.rank)) return;
  entry.answers[ack.rank] = {ack.phase, ack.worker, ack.reason,
                             ack.time,  ack.step,   ack.effective_step};
}

std::vector<std::string> ToldHistory::topics() const { return {core::topic::kRouterOutbox}; }

std::vector<std::string> AuditHistory::topics() const { return {core::topic::kRouterAudit}; }

void AuditHistory::start_over() {
  entries_.clear();
  complete_since_.reset();
}

void AuditHistory::saw(const core::RecordView& record, const TopicView&) {
  if (record.topic != core::topic::kRouterAudit || record.tombstone) return;
  auto change = read_audit_record(record.text());
  if (!change) return;
  entries_.push_back({{change->at, record_id(record)}, std::move(*change)});
  if (entries_.size() <= kMost) return;
  entries_.pop_front();
  complete_since_ = entries_.front().key.at;
}

}  // namespace tocsin::app
