// What waits to be committed, and the commit under way: records, whose they are, and positions. What
// may be read ahead of its commit is on its way as soon as it is added.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/loop/backoff.h"
#include "app/loop/committer.h"
#include "app/loop/loop_probe.h"
#include "app/loop/stage.h"
#include "core/log.h"

namespace tocsin::app {

/// Lives on the loop's thread. What a failed commit carried stands before everything newer again.
class CommitQueue {
 public:
  CommitQueue(std::string stage, LoopProbe& probe, core::Log& log)
      : stage_(std::move(stage)), probe_(probe), log_(log) {}

  void open(std::unique_ptr<Committer> committer) { committer_ = std::move(committer); }
  [[nodiscard]] bool is_open() const { return committer_ != nullptr; }
  /// Forgets everything, waits for the commit under way.
  void clear();

  void add(StageOutput output);
  void add(StageRecord record);
  /// So much waits that nothing more should be read.
  [[nodiscard]] bool full() const;
  [[nodiscard]] bool empty() const {
    return pending_.empty() && ahead_.empty() && positions_.empty();
  }
  /// Records that only a commit writes.
  [[nodiscard]] bool has_records() const { return !pending_.empty(); }
  /// Records that are to be committed at once.
  [[nodiscard]] bool has_urgent() const { return urgent_ > 0; }
  /// Records on their way, of which the next commit says whether they have arrived.
  [[nodiscard]] bool has_ahead() const { return !ahead_.empty(); }
  /// The stage says itself where reading may go on from.
  [[nodiscard]] bool stage_says_positions() const { return stage_says_positions_; }
  [[nodiscard]] bool busy() const { return committer_ && committer_->busy(); }
  [[nodiscard]] const Backoff& backoff() const { return backoff_; }
  void forgive() { backoff_ = {}; }

  /// Begins a commit of everything that waits. `positions`: of the loop, where the stage says none.
  void start(core::Duration now, std::vector<core::Position> positions);

  enum class Progress { none, committed, again, broken };
  /// What came of the commit begun last; `broken`: fenced, or nobody knows, see error().
  Progress poll(core::Duration now);
  /// The same, and waits for it.
  Progress wait(core::Duration now);
  [[nodiscard]] const core::Error& error() const { return error_; }

  /// Drops what belongs to partitions that are `gone`.
  void take_away(const std::function<bool(std::int32_t partition)>& gone);

 private:
  using Positions = std::map<core::StreamPartition, std::int64_t>;
  Progress settle(const core::Status& status, core::Duration now);
  void put_back();
  void count_urgent();
  [[nodiscard]] bool held(std::string_view topic) const {
    return held_.contains(topic) || held_under_way_.contains(topic);
  }

  std::string stage_;
  LoopProbe& probe_;
  core::Log& log_;
  std::unique_ptr<Committer> committer_;
  std::vector<StageRecord> pending_;
  std::size_t urgent_ = 0;  // of pending_: those that do not wait for the positions
  std::vector<StageRecord> ahead_;
  std::set<std::string, std::less<>>
      held_;                       // topics of pending_: nothing of theirs goes ahead of it
  std::size_t pending_bytes_ = 0;  // of both
  Positions positions_;            // that the stage said
  bool stage_says_positions_ = false;
  // Of the commit under way.
  std::vector<std::int32_t> owners_;  // of each record: its input partition
  std::vector<StageRecord> ahead_under_way_;
  std::set<std::string, std::less<>> held_under_way_;
  Positions positions_under_way_;
  core::Duration began_{};
  Backoff backoff_;
  core::Error error_;
};

}  // namespace tocsin::app
