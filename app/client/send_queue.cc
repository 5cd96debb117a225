#include "app/client/send_queue.h"

#include <algorithm>
#include <utility>

namespace tocsin::app::client {
namespace {

std::uint64_t size_of(const QueuedRecord& item) {
  constexpr std::uint64_t kOverhead = sizeof(QueuedRecord) + 64;  // key, allocator, deque slot
  return kOverhead + (item.record.value ? item.record.value->size() : 0);
}

std::size_t index(Precedence precedence) { return static_cast<std::size_t>(precedence); }

}  // namespace

std::string_view to_string(Precedence precedence) noexcept {
  switch (precedence) {
    case Precedence::control:
      return "control";
    case Precedence::scalars:
      return "scalars";
    case Precedence::statistics:
      return "statistics";
    case Precedence::raw:
      return "raw";
  }
  return "control";
}

void SendQueue::count(const QueuedRecord& record) {
  Gap& gap = gaps_[index(record.precedence)];
  if (gap.frames == 0) {
    gap.precedence = record.precedence;
    gap.first_step = record.first_step;
    gap.last_step = record.last_step;
  }
  gap.first_step = std::min(gap.first_step, record.first_step);
  gap.last_step = std::max(gap.last_step, record.last_step);
  ++gap.frames;
  gap.rows += record.rows;
  ++dropped_[index(record.precedence)];
}

// Makes room from the lowest precedence upwards, oldest first, an eighth of the queue at a time so
// that a full queue is not walked for every record.
bool SendQueue::make_room(Precedence above, std::uint64_t bytes) {
  const std::uint64_t goal = capacity_ - std::min(capacity_, std::max(bytes, capacity_ / 8));
  for (std::size_t precedence = kPrecedences - 1; precedence > index(above) && bytes_ > goal;
       --precedence) {
    std::deque<QueuedRecord> kept;
    for (QueuedRecord& item : records_) {
      if (index(item.precedence) == precedence && bytes_ > goal) {
        bytes_ -= size_of(item);
        count(item);
      } else {
        kept.push_back(std::move(item));
      }
    }
    records_.swap(kept);
  }
  return bytes_ + bytes <= capacity_;
}

bool SendQueue::push(QueuedRecord record) {
  if (tap_) tap_(record.record);
  const std::uint64_t bytes = size_of(record);
  bool much = false;
  {
    const std::lock_guard lock(mutex_);
    ++pushed_[index(record.precedence)];
    if (bytes_ + bytes > capacity_ && !make_room(record.precedence, bytes)) {
      count(record);
      return false;
    }
    much = bytes_ <= capacity_ / 8 && bytes_ + bytes > capacity_ / 8;
    bytes_ += bytes;
    records_.push_back(std::move(record));
  }
  if (much || idle_.load()) {
    ++wakes_;
    filled_.notify_one();
  }
  return true;
}

std::optional<QueuedRecord> SendQueue::pop() {
  const std::lock_guard lock(mutex_);
  if (records_.empty()) return std::nullopt;
  QueuedRecord record = std::move(records_.front());
  records_.pop_front();
  bytes_ -= size_of(record);
  return record;
}

void SendQueue::put_back(QueuedRecord record) {
  const std::lock_guard lock(mutex_);
  bytes_ += size_of(record);
  records_.push_front(std::move(record));
}

void SendQueue::wait(std::chrono::nanoseconds timeout, bool only_wake) {
  std::unique_lock lock(mutex_);
  filled_.wait_for(lock, timeout, [&] { return woken_ || (!only_wake && !records_.empty()); });
  woken_ = false;
}

void SendQueue::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  ++wakes_;
  filled_.notify_one();
}

std::vector<Gap> SendQueue::take_gaps() {
  const std::lock_guard lock(mutex_);
  std::vector<Gap> out;
  if (bytes_ > capacity_ / 2) return out;
  for (Gap& gap : gaps_) {
    if (gap.frames > 0) out.push_back(std::exchange(gap, Gap{}));
  }
  return out;
}

std::uint64_t SendQueue::purge() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t purged = records_.size();
  for (const QueuedRecord& item : records_) count(item);
  records_.clear();
  bytes_ = 0;
  return purged;
}

void SendQueue::count_lost(const QueuedRecord& record) {
  const std::lock_guard lock(mutex_);
  count(record);
}

std::uint64_t SendQueue::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t SendQueue::size() const {
  const std::lock_guard lock(mutex_);
  return records_.size();
}

std::array<std::uint64_t, kPrecedences> SendQueue::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::array<std::uint64_t, kPrecedences> SendQueue::pushed() const {
  const std::lock_guard lock(mutex_);
  return pushed_;
}

}  // namespace tocsin::app::client
