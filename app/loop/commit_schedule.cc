#include "app/loop/commit_schedule.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tocsin::app {
namespace {

// What went ahead is committed behind it within this.
constexpr core::Duration kAheadFor = std::chrono::milliseconds(100);

}  // namespace

void CommitSchedule::open(std::unique_ptr<Committer> committer) {
  queue_.open(std::move(committer));
  last_ = time_.steady();
}

void CommitSchedule::clear() {
  queue_.clear();
  moved_ = false;
  oldest_.reset();
}

void CommitSchedule::note_handled() {
  if (wiring_.take_every != 0 && ++since_take_ >= wiring_.take_every) gather();
}

void CommitSchedule::gather() {
  since_take_ = 0;
  if (!queue_.full()) queue_.add(stage_.take(time_.now()));
}

CommitSchedule::Progress CommitSchedule::heed(Progress progress) {
  if (progress == Progress::committed) {
    stage_.committed(time_.now());
    oldest_ = queue_.has_records() ? std::optional(last_) : std::nullopt;  // came since it began
  }
  if (progress == Progress::again) moved_ = true;
  return progress;
}

std::optional<core::Duration> CommitSchedule::oldest() {
  if (!queue_.has_records() && !queue_.busy()) {
    oldest_.reset();
  } else if (!oldest_) {
    oldest_ = time_.steady();
  }
  return oldest_;
}

bool CommitSchedule::due(bool all, core::Duration now) const {
  if (queue_.has_urgent() || queue_.full()) return true;
  const bool moved = queue_.has_ahead() || queue_.has_records() ||
                     (queue_.stage_says_positions() ? !queue_.empty() : moved_);
  const core::Duration every =
      queue_.has_ahead() ? std::min(wiring_.commit_every, kAheadFor) : wiring_.commit_every;
  return moved && (all || now - last_ >= every);
}

void CommitSchedule::start(bool all, Positions positions) {
  if (!queue_.is_open() || queue_.busy()) return;
  const core::Duration now = time_.steady();
  if (queue_.backoff().waits(now) || !due(all, now)) return;
  std::vector<core::Position> where;
  if (!wiring_.group.empty()) where = positions();
  if (queue_.empty() && where.empty()) {
    queue_.forgive();  // what had failed went away with its partitions
    return;
  }
  last_ = now;
  moved_ = false;
  stage_.committing();
  queue_.start(now, std::move(where));
}

}  // namespace tocsin::app
