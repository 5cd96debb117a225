#include "collectors/hook/publish/send_queue.h"

#include <algorithm>
#include <utility>

namespace tocsin::hook {
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

// Makes room from the lowest precedence upwards, oldest first, and no more than is needed: the
// caller is the training thread.
bool SendQueue::make_room(Precedence above, std::uint64_t bytes) {
  for (std::size_t lane = kPrecedences - 1; lane > index(above); --lane) {
    std::deque<QueuedRecord>& records = lanes_[lane];
    while (bytes_ + bytes > capacity_ && !records.empty()) {
      bytes_ -= size_of(records.front());
      count(records.front());
      records.pop_front();
    }
  }
  return bytes_ + bytes <= capacity_;
}

// The lane whose first record is next; null when there is none.
std::deque<QueuedRecord>* SendQueue::oldest() {
  std::deque<QueuedRecord>* found = nullptr;
  for (std::deque<QueuedRecord>& lane : lanes_) {
    if (lane.empty()) continue;
    if (found == nullptr || lane.front().place < found->front().place) found = &lane;
  }
  return found;
}

bool SendQueue::push(QueuedRecord record) {
  if (tap_) tap_(record.record);
  const std::uint64_t bytes = size_of(record);
  bool much = false;
  {
    const core::MutexLock lock(mutex_);
    ++pushed_[index(record.precedence)];
    if (bytes_ + bytes > capacity_ && !make_room(record.precedence, bytes)) {
      count(record);
      return false;
    }
    much = bytes_ <= capacity_ / 8 && bytes_ + bytes > capacity_ / 8;
    bytes_ += bytes;
    record.place = next_place_++;
    lanes_[index(record.precedence)].push_back(std::move(record));
  }
  if (much || idle_.load()) {
    ++wakes_;
    filled_.notify_one();
  }
  return true;
}

std::optional<QueuedRecord> SendQueue::pop() {
  const core::MutexLock lock(mutex_);
  std::deque<QueuedRecord>* lane = oldest();
  if (lane == nullptr) return std::nullopt;
  QueuedRecord record = std::move(lane->front());
  lane->pop_front();
  bytes_ -= size_of(record);
  return record;
}

void SendQueue::put_back(QueuedRecord record) {
  const core::MutexLock lock(mutex_);
  bytes_ += size_of(record);
  record.place = --first_place_;
  lanes_[index(record.precedence)].push_front(std::move(record));
}

void SendQueue::wait(std::chrono::nanoseconds timeout, bool only_wake) {
  const core::MutexLock lock(mutex_);
  filled_.wait_for(mutex_, timeout, [&]() REQUIRES(mutex_) {
    return woken_ || (!only_wake && oldest() != nullptr);
  });
  woken_ = false;
}

void SendQueue::wake() {
  {
    const core::MutexLock lock(mutex_);
    woken_ = true;
  }
  ++wakes_;
  filled_.notify_one();
}

std::vector<Gap> SendQueue::take_gaps() {
  const core::MutexLock lock(mutex_);
  std::vector<Gap> out;
  if (bytes_ > capacity_ / 2) return out;
  for (Gap& gap : gaps_) {
    if (gap.frames > 0) out.push_back(std::exchange(gap, Gap{}));
  }
  return out;
}

std::uint64_t SendQueue::purge() {
  const core::MutexLock lock(mutex_);
  std::uint64_t purged = 0;
  for (std::deque<QueuedRecord>& lane : lanes_) {
    purged += lane.size();
    for (const QueuedRecord& item : lane) count(item);
    lane.clear();
  }
  bytes_ = 0;
  return purged;
}

void SendQueue::count_lost(const QueuedRecord& record) {
  const core::MutexLock lock(mutex_);
  count(record);
}

std::uint64_t SendQueue::bytes() const {
  const core::MutexLock lock(mutex_);
  return bytes_;
}

std::size_t SendQueue::size() const {
  const core::MutexLock lock(mutex_);
  std::size_t size = 0;
  for (const std::deque<QueuedRecord>& lane : lanes_) size += lane.size();
  return size;
}

std::array<std::uint64_t, kPrecedences> SendQueue::dropped() const {
  const core::MutexLock lock(mutex_);
  return dropped_;
}

std::array<std::uint64_t, kPrecedences> SendQueue::pushed() const {
  const core::MutexLock lock(mutex_);
  return pushed_;
}

}  // namespace tocsin::hook
