#include "app/api/live_view.h"

#include <pthread.h>

#include <string>
#include <utility>
#include <vector>

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
    run(stop);
  });
}

void LiveView::follow() {
  const core::MutexLock lock(mutex_);
  begin();
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

void LiveView::run(const std::stop_token& stop) {
  core::Mutex quiet;
  core::StoppableCondVar wake;
  while (!stop.stop_requested()) {
    if (const auto status = follow_once(stop); !status) {
      log_.warn("api_view_failed", {{"error", status.error().message}});
      const core::MutexLock lock(mutex_);
      trouble_ = status.error().message;
      whole_ = false;
      stand(false, trouble_);
    }
    const core::MutexLock lock(quiet);
    wake.wait_for(quiet, stop, kPauseOfFollowing, [] { return false; });
  }
}

core::Status LiveView::follow_once(const std::stop_token& stop) {
  if (auto reached = transport_.ping(5s); !reached) return reached.error();
  ingest::SourceOptions options;
  options.topics = TopicView::topics();
  options.start = ingest::Start::beginning;
  for (const TopicWatch* watch : watches_) {
    for (std::string& topic : watch->topics()) options.topics.push_back(std::move(topic));
  }
  auto source = transport_.source(options);
  if (!source) return source.error();
  {
    const core::MutexLock lock(mutex_);
    view_ = TopicView();
    for (TopicWatch* watch : watches_) watch->start_over();
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
    stand(end || (whole_ && read), trouble_);
    changed_.notify_all();
  }
  return core::ok();
}

void LiveView::take(const core::RecordView& record) {
  const core::MutexLock lock(mutex_);
  view_.apply(record);
  for (TopicWatch* watch : watches_) watch->saw(record, view_);
}

void LiveView::stand(bool at_end, const std::string& why_not) {
  for (TopicWatch* watch : watches_) watch->stands(at_end, why_not);
}

void LiveView::tidy() {
  const core::WallTime now = clock_.now();
  if (now - tidied_ < kTidyEvery) return;
  tidied_ = now;
  const core::MutexLock lock(mutex_);
  view_.forget(now - kKept);
  for (TopicWatch* watch : watches_) watch->forget(now - kKept);
}

}  // namespace tocsin::app
