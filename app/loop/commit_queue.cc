#include "app/loop/commit_queue.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace tocsin::app {
namespace {

// One commit carries at most this much, and reading stops until it is through.
constexpr std::size_t kMaxPending = 10'000;
constexpr std::size_t kMaxPendingBytes = 16U << 20;

std::size_t bytes_of(const core::OutRecord& record) {
  return record.key.size() + (record.value ? record.value->size() : 0) + 64;
}

void raise(std::map<core::StreamPartition, std::int64_t>& positions,
           const core::StreamPartition& where, std::int64_t next) {
  auto& newest = positions[where];
  newest = std::max(newest, next);
}

}  // namespace

void CommitQueue::clear() {
  committer_.reset();
  pending_.clear();
  urgent_ = 0;
  ahead_.clear();
  held_.clear();
  pending_bytes_ = 0;
  positions_.clear();
  stage_says_positions_ = false;
  owners_.clear();
  ahead_under_way_.clear();
  held_under_way_.clear();
  positions_under_way_.clear();
  backoff_ = {};
}

void CommitQueue::add(StageRecord record) {
  pending_bytes_ += bytes_of(record.record);
  const std::string& topic = record.record.topic;
  if (record.ahead && committer_ && !held(topic) && committer_->write_ahead(record.record)) {
    ahead_.push_back(std::move(record));
    return;
  }
  if (!held_.contains(topic)) held_.insert(topic);
  if (!record.waits) ++urgent_;
  pending_.push_back(std::move(record));
}

void CommitQueue::add(StageOutput output) {
  for (auto& one : output.records) add(std::move(one));
  if (!output.positions) return;
  stage_says_positions_ = true;
  for (const auto& position : *output.positions) raise(positions_, position.where, position.next);
}

bool CommitQueue::full() const {
  return pending_.size() + ahead_.size() >= kMaxPending || pending_bytes_ >= kMaxPendingBytes;
}

void CommitQueue::start(core::Duration now, std::vector<core::Position> positions) {
  if (stage_says_positions_) {
    positions.clear();
    for (const auto& [where, next] : positions_) positions.push_back({where, next});
  }
  std::vector<core::OutRecord> records;
  records.reserve(pending_.size());
  owners_.clear();
  for (auto& one : pending_) {
    owners_.push_back(one.partition);
    records.push_back(std::move(one.record));
  }
  pending_.clear();
  urgent_ = 0;
  pending_bytes_ = 0;
  ahead_under_way_ = std::exchange(ahead_, {});
  held_under_way_ = std::exchange(held_, {});
  positions_under_way_ = std::exchange(positions_, {});
  began_ = now;
  committer_->start(std::move(records), std::move(positions));
}

CommitQueue::Progress CommitQueue::poll(core::Duration now) {
  if (!committer_) return Progress::none;
  const auto outcome = committer_->poll();
  return outcome ? settle(*outcome, now) : Progress::none;
}

CommitQueue::Progress CommitQueue::wait(core::Duration now) {
  if (!busy()) return Progress::none;
  return settle(committer_->wait(), now);
}

CommitQueue::Progress CommitQueue::settle(const core::Status& status, core::Duration now) {
  if (status) {
    probe_.commits.add();
    probe_.commit_seconds.observe(std::chrono::duration<double>(now - began_).count());
    owners_.clear();
    ahead_under_way_.clear();
    held_under_way_.clear();
    positions_under_way_.clear();
    backoff_ = {};
    return Progress::committed;
  }
  error_ = status.error();
  probe_.failures.add();
  log_.warn("commit_failed", {{"stage", stage_},
                              {"code", std::string(core::to_string(error_.code))},
                              {"error", error_.message}});
  // Fenced, or nobody knows what became of it: the log knows, so it is read back.
  if (!error_.retryable()) return Progress::broken;
  put_back();
  backoff_.grow(now);
  return Progress::again;
}

void CommitQueue::put_back() {
  auto records = committer_->take_back();
  // What went ahead may be lost too. Of one topic it stands before what waited for the commit: it goes
  // ahead again, so that the commit stays what it was (its transaction may still go through); only
  // where that is refused does it lead the commit.
  std::vector<StageRecord> ahead = std::exchange(ahead_under_way_, {});
  for (const StageRecord& one : ahead) pending_bytes_ += bytes_of(one.record);
  std::move(ahead_.begin(), ahead_.end(), std::back_inserter(ahead));
  ahead_.clear();
  std::vector<StageRecord> all;
  all.reserve(ahead.size() + records.size() + pending_.size());
  for (StageRecord& one : ahead) {
    const bool again = all.empty() && committer_->write_ahead(one.record);
    (again ? ahead_ : all).push_back(std::move(one));
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    pending_bytes_ += bytes_of(records[i]);
    all.push_back({owners_[i], std::move(records[i])});
  }
  std::move(pending_.begin(), pending_.end(), std::back_inserter(all));
  pending_ = std::move(all);
  count_urgent();
  held_under_way_.clear();
  held_.clear();
  for (const StageRecord& one : pending_) held_.insert(one.record.topic);
  for (const auto& [where, next] : positions_under_way_) raise(positions_, where, next);
  owners_.clear();
  positions_under_way_.clear();
}

void CommitQueue::count_urgent() {
  urgent_ = static_cast<std::size_t>(std::count_if(
      pending_.begin(), pending_.end(), [](const StageRecord& one) { return !one.waits; }));
}

void CommitQueue::take_away(const std::function<bool(std::int32_t partition)>& gone) {
  const auto goes = [&](const StageRecord& one) {
    if (!gone(one.partition)) return false;
    pending_bytes_ -= bytes_of(one.record);
    return true;
  };
  std::erase_if(pending_, goes);
  count_urgent();
  std::erase_if(ahead_, goes);
  std::erase_if(positions_, [&](const auto& entry) { return gone(entry.first.partition); });
}

}  // namespace tocsin::app
