#include "collectors/hook/raw/raw_queue.h"

#include <algorithm>
#include <utility>

namespace tocsin::hook {
namespace {

std::uint64_t held_by(const RawTensor& tensor) {
  return sizeof(RawTensor) + tensor.text.size() + tensor.data.size();
}

constexpr std::array<std::string_view, kRawSkips> kSkipWords = {
    "step_limit", "queue_full", "unreadable", "refused", "undelivered"};

}  // namespace

std::string_view to_string(RawSkip reason) noexcept {
  return kSkipWords.at(static_cast<std::size_t>(reason));
}

void RawQueue::count(RawSkip reason, std::uint64_t bytes) {
  Skipped& skipped = skipped_.at(static_cast<std::size_t>(reason));
  ++skipped.tensors;
  skipped.bytes += bytes;
}

bool RawQueue::admit(std::int64_t global_step, std::uint64_t bytes) {
  const core::MutexLock lock(mutex_);
  if (global_step != step_) {
    step_ = global_step;
    step_bytes_ = 0;
  }
  if (bytes > config_.max_bytes - std::min(step_bytes_, config_.max_bytes)) {
    count(RawSkip::step_limit, bytes);
    return false;
  }
  if (bytes + sizeof(RawTensor) > config_.queue - std::min(held_, config_.queue)) {
    count(RawSkip::queue_full, bytes);
    return false;
  }
  step_bytes_ += bytes;
  return true;
}

void RawQueue::skip(RawSkip reason, std::uint64_t bytes) {
  const core::MutexLock lock(mutex_);
  count(reason, bytes);
}

void RawQueue::push(RawTensor tensor) {
  bool first = false;
  {
    const core::MutexLock lock(mutex_);
    first = pushed_++ == 0;
    pushed_bytes_ += tensor.data.size();
    held_ += held_by(tensor);
    waiting_.push_back(std::move(tensor));
  }
  if (first && first_) first_();
}

std::vector<RawSkip> RawQueue::take_news() {
  const core::MutexLock lock(mutex_);
  std::vector<RawSkip> out;
  for (std::size_t i = 0; i < kRawSkips; ++i) {
    Skipped& skipped = skipped_.at(i);
    if (skipped.tensors > 0 && !std::exchange(skipped.told, true)) {
      out.push_back(static_cast<RawSkip>(i));
    }
  }
  return out;
}

std::vector<RawTensor> RawQueue::take(std::uint64_t most_bytes) {
  const core::MutexLock lock(mutex_);
  std::vector<RawTensor> out;
  std::uint64_t bytes = 0;
  while (!waiting_.empty()) {
    const RawTensor& next = waiting_.front();
    bytes += next.data.size();
    if (!out.empty()) {
      const core::FrameHeader& first = out.front().header;
      if (bytes > most_bytes || next.header.mode != first.mode || next.header.step != first.step) {
        break;
      }
    }
    out.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  under_way_ += out.size();
  for (const RawTensor& tensor : out) under_way_bytes_ += tensor.data.size();
  return out;
}

void RawQueue::settle(const std::vector<RawTensor>& taken) {
  for (const RawTensor& tensor : taken) {
    held_ -= held_by(tensor);
    under_way_bytes_ -= tensor.data.size();
  }
  under_way_ -= taken.size();
}

void RawQueue::done(const std::vector<RawTensor>& taken) {
  {
    const core::MutexLock lock(mutex_);
    settle(taken);
    if (given_up_) return;
    sent_ += taken.size();
    for (const RawTensor& tensor : taken) sent_bytes_ += tensor.data.size();
  }
  changed_.notify_all();
}

void RawQueue::done(const std::vector<RawTensor>& taken, RawSkip lost) {
  {
    const core::MutexLock lock(mutex_);
    settle(taken);
    if (given_up_) return;
    for (const RawTensor& tensor : taken) count(lost, tensor.data.size());
  }
  changed_.notify_all();
}

void RawQueue::wait(std::chrono::nanoseconds timeout, bool only_wake) {
  const core::MutexLock lock(mutex_);
  changed_.wait_for(mutex_, timeout,
                    [&]() REQUIRES(mutex_) { return woken_ || (!only_wake && !waiting_.empty()); });
  woken_ = false;
}

void RawQueue::wake() {
  {
    const core::MutexLock lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

void RawQueue::give_up() {
  {
    const core::MutexLock lock(mutex_);
    for (const RawTensor& tensor : waiting_) {
      held_ -= held_by(tensor);
      count(RawSkip::undelivered, tensor.data.size());
    }
    waiting_.clear();
    // What is under way may still arrive: nobody will know.
    Skipped& open = skipped_.at(static_cast<std::size_t>(RawSkip::undelivered));
    open.tensors += under_way_;
    open.bytes += under_way_bytes_;
    given_up_ = true;
  }
  changed_.notify_all();
}

bool RawQueue::wait_until_empty(std::chrono::nanoseconds timeout) const {
  const core::MutexLock lock(mutex_);
  return changed_.wait_for(mutex_, timeout,
                           [&]() REQUIRES(mutex_) { return waiting_.empty() && under_way_ == 0; });
}

core::ValueMap RawQueue::counters() const {
  const core::MutexLock lock(mutex_);
  core::ValueMap skipped;
  for (std::size_t i = 0; i < kRawSkips; ++i) {
    skipped.emplace_back(std::string(kSkipWords.at(i)), skipped_.at(i).tensors);
  }
  return {{"to", config_.to},
          {"tensors_total", pushed_},
          {"bytes_total", pushed_bytes_},
          {"sent_total", sent_},
          {"sent_bytes_total", sent_bytes_},
          {"waiting_bytes", held_},
          {"skipped_total", std::move(skipped)}};
}

std::string RawQueue::loss() const {
  const core::MutexLock lock(mutex_);
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::string why;
  for (std::size_t i = 0; i < kRawSkips; ++i) {
    const Skipped& skipped = skipped_.at(i);
    if (skipped.tensors == 0) continue;
    tensors += skipped.tensors;
    bytes += skipped.bytes;
    why += (why.empty() ? "" : ", ") + std::to_string(skipped.tensors) + " " +
           std::string(kSkipWords.at(i));
  }
  if (tensors == 0) return {};
  return std::to_string(tensors) + " raw tensors (" + std::to_string(bytes) +
         " bytes) did not go to " + config_.to + ": " + why;
}

}  // namespace tocsin::hook
