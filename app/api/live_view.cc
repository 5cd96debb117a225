#include "app/api/live_view.h"

#include <pthread.h>

#include <utility>

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {

constexpr auto kKept = 1h;  // of what is over
constexpr auto kTidyEvery = 1min;
constexpr auto kPauseOfFollowing = 5s;  // after an error
constexpr std::size_t kMostAtOnce = 1024;

}  // namespace

LiveView::~LiveView() {
  std::jthread ending;
  {
    const core::MutexLock lock(mutex_);
    ending = std::move(thread_);
  }
}  // asks the thread to stop, and joins it

void LiveView::begin() {
  if (thread_.joinable()) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "tocsin-api");
    follow(stop);
  });
}

core::Status LiveView::read(core::FunctionRef<void(const TopicView&)> look,
                            std::chrono::milliseconds patience) {
  const core::MutexLock lock(mutex_);
  begin();
  if (!changed_.wait_for(mutex_, patience, [this]() REQUIRES(mutex_) { return whole_; })) {
    return core::unavailable(trouble_.empty() ? "the topics are still being read" : trouble_);
  }
  look(view_);
  return core::ok();
}

core::Status LiveView::await(core::FunctionRef<bool(const TopicView&)> said,
                             std::chrono::milliseconds patience) {
  const core::MutexLock lock(mutex_);
  begin();
  const bool heard =
      changed_.wait_for(mutex_, patience, [&]() REQUIRES(mutex_) { return whole_ && said(view_); });
  return heard ? core::ok() : core::unavailable("it was written, but not read back in time");
}

void LiveView::follow(const std::stop_token& stop) {
  core::Mutex quiet;
  core::StoppableCondVar wake;
  while (!stop.stop_requested()) {
    if (const auto status = follow_once(stop); !status) {
      log_.warn("api_view_failed", {{"error", status.error().message}});
      const core::MutexLock lock(mutex_);
      trouble_ = status.error().message;
      whole_ = false;
    }
    const core::MutexLock lock(quiet);
    wake.wait_for(quiet, stop, kPauseOfFollowing, [] { return false; });
  }
}

core::Status LiveView::follow_once(const std::stop_token& stop) {
  auto source = view_source(transport_);
  if (!source) return source.error();
  {
    const core::MutexLock lock(mutex_);
    view_ = TopicView();
  }
  while (!stop.stop_requested()) {
    const auto read = (*source)->poll(100ms, kMostAtOnce,
                                      [this](const core::RecordView& record) { take(record); });
    if (!read && read.error().code != core::Code::data_loss) return read.error();
    const bool end = read && *read == 0 && (*source)->at_end();
    if (end) tidy();
    const core::MutexLock lock(mutex_);
    whole_ = whole_ || end;
    if (whole_) trouble_.clear();
    changed_.notify_all();
  }
  return core::ok();
}

void LiveView::take(const core::RecordView& record) {
  const core::MutexLock lock(mutex_);
  view_.apply(record);
}

void LiveView::tidy() {
  const core::WallTime now = clock_.now();
  if (now - tidied_ < kTidyEvery) return;
  tidied_ = now;
  const core::MutexLock lock(mutex_);
  view_.forget(now - kKept);
}

}  // namespace tocsin::app
