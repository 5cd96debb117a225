#include "app/process/memory_ahead.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <system_error>
#include <utility>

#include "app/process/allocator.h"

namespace tocsin::app {
namespace {

/// What a stage keeps of so many bytes, and allocates beside them, is well within what is taken ahead.
constexpr std::size_t kBytesAhead = std::size_t{256} << 10;

/// Has the pages of `memory` cleared that nobody has used yet. What is in use stays as it is, and what
/// is not there any more is left alone: the range may have been given back since.
bool clear_pages(std::span<std::byte> memory) noexcept {
#ifdef MADV_POPULATE_WRITE
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t before = (begin + page - 1) / page * page - begin;  // what is no whole page
  if (memory.size() < before + page) return false;
  const std::size_t size = (memory.size() - before) / page * page;
  return madvise(memory.data() + before, size, MADV_POPULATE_WRITE) == 0;
#else
  return memory.empty();
#endif
}

/// The part of `memory` that begins where `known` ends; all of it when they do not overlap so.
std::span<std::byte> behind(std::span<std::byte> known, std::span<std::byte> memory) noexcept {
  const std::byte* const known_end = known.data() + known.size();
  if (memory.data() < known.data() || memory.data() > known_end) return memory;
  const auto shared = static_cast<std::size_t>(known_end - memory.data());
  return shared < memory.size() ? memory.subspan(shared) : std::span<std::byte>{};
}

}  // namespace

void MemoryAhead::reading(std::size_t bytes) {
  read_ += bytes;
  if (taken_ > 0 && read_ < kBytesAhead) return;
  read_ = 0;
  if (++taken_ == 1) {
    take_memory_ahead();  // it may be all that there is to read
  } else {
    take();
  }
}

void MemoryAhead::take() {
  const std::span<std::byte> memory = take_memory_ahead();
  if (memory.empty()) return;
  const std::span<std::byte> fresh = behind(last_, memory);
  last_ = memory;
  if (fresh.empty()) return;
  {
    const core::MutexLock lock(mutex_);
    const bool goes_on = !wanted_.empty() && wanted_.data() + wanted_.size() == fresh.data();
    wanted_ = goes_on ? std::span(wanted_.data(), wanted_.size() + fresh.size()) : fresh;
  }
  changed_.notify_all();
  if (thread_.joinable() || no_thread_) return;
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { clear_what_is_taken(stop); });
  } catch (const std::system_error&) {
    no_thread_ = true;  // each page is cleared when it is used
  }
}

std::size_t MemoryAhead::cleared() {
  const core::MutexLock lock(mutex_);
  return cleared_;
}

void MemoryAhead::clear_what_is_taken(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "tocsin-memory");
  while (true) {
    std::span<std::byte> memory;
    {
      const core::MutexLock lock(mutex_);
      const auto is_wanted = [this]() REQUIRES(mutex_) { return !wanted_.empty(); };
      if (!changed_.wait(mutex_, stop, is_wanted)) return;
      memory = std::exchange(wanted_, {});
    }
    if (!clear_pages(memory)) continue;
    const core::MutexLock lock(mutex_);
    cleared_ += memory.size();
  }
}

}  // namespace tocsin::app
