#include "ingest/journal/watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

namespace tocsin::ingest {
namespace {

using std::chrono::nanoseconds;

/// Which of the two is readable within the time; -1 as `second` is ignored.
void sleep_until_readable(int first, int second, nanoseconds longest) {
  std::array<pollfd, 2> ready{{{first, POLLIN, 0}, {second, POLLIN, 0}}};
  const auto left = std::max(longest, nanoseconds{0});
  const timespec time{static_cast<std::time_t>(left.count() / 1'000'000'000),
                      static_cast<long>(left.count() % 1'000'000'000)};
  ::ppoll(ready.data(), ready.size(), &time, nullptr);
}

}  // namespace

JournalWatch::JournalWatch()
    : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

void JournalWatch::add(std::string path) {
  files_.push_back({std::move(path), -1});
  arm();
}

/// A log is there from the first use of its file on, and goes with the last one.
void JournalWatch::arm() {
  if (!inotify_.open()) return;
  for (auto& file : files_) {
    if (file.watch >= 0) continue;
    file.watch = ::inotify_add_watch(inotify_.get(), file.path.c_str(), IN_MODIFY | IN_DELETE_SELF);
    began_ = began_ || file.watch >= 0;
  }
}

bool JournalWatch::armed() const {
  return inotify_.open() && std::all_of(files_.begin(), files_.end(),
                                        [](const File& file) { return file.watch >= 0; });
}

JournalWatch::Wakeup JournalWatch::wait(nanoseconds deaf, nanoseconds longest) {
  if (take_wake()) return Wakeup::woken;
  deaf = std::min(deaf, longest);
  if (deaf.count() > 0) {
    sleep_until_readable(bell_.get(), -1, deaf);
    if (take_wake()) return Wakeup::woken;
  }
  arm();
  if (longest > deaf && !began_) {
    sleep_until_readable(bell_.get(), inotify_.get(), longest - deaf);
    if (take_wake()) return Wakeup::woken;
  }
  return changed() ? Wakeup::changed : Wakeup::time_over;
}

void JournalWatch::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(bell_.get(), &one, sizeof one);
}

bool JournalWatch::take_wake() {
  std::uint64_t count = 0;
  return ::read(bell_.get(), &count, sizeof count) == sizeof count;
}

bool JournalWatch::changed() {
  bool any = std::exchange(began_, false);
  if (!inotify_.open()) return any;
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = ::read(inotify_.get(), buffer.data(), buffer.size())) > 0;) {
    any = true;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      at += sizeof event + event.len;
      if ((event.mask & (IN_IGNORED | IN_DELETE_SELF)) == 0) continue;
      for (auto& file : files_) {
        if (file.watch == event.wd) file.watch = -1;  // armed again by the next wait
      }
    }
  }
  return any;
}

}  // namespace tocsin::ingest
