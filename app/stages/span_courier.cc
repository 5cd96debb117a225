#include "app/stages/span_courier.h"

#include <pthread.h>

#include <exception>
#include <utility>

namespace tocsin::app {

SpanCourier::SpanCourier(std::unique_ptr<actions::SpanExporter> exporter)
    : exporter_(std::move(exporter)), thread_([this](const std::stop_token& stop) {
        pthread_setname_np(pthread_self(), "tocsin-tracing");
        run(stop);
      }) {}

SpanCourier::~SpanCourier() {
  thread_.request_stop();
  thread_.join();
}

void SpanCourier::submit(std::vector<actions::Span> spans) {
  {
    const core::MutexLock lock(mutex_);
    parcel_ = std::move(spans);
  }
  wake_.notify_all();
}

std::optional<SpanCourier::Answer> SpanCourier::take() {
  const core::MutexLock lock(mutex_);
  return std::exchange(answer_, std::nullopt);
}

void SpanCourier::run(const std::stop_token& stop) {
  while (true) {
    Answer done;
    {
      const core::MutexLock lock(mutex_);
      wake_.wait(mutex_, stop, [this]() REQUIRES(mutex_) { return parcel_.has_value(); });
      if (stop.stop_requested()) return;
      done.spans = std::move(*std::exchange(parcel_, std::nullopt));
    }
    try {
      done.answer = exporter_->send(done.spans);
    } catch (const std::exception& error) {
      done.answer = {actions::SpansTaken::refused, error.what()};
    }
    {
      const core::MutexLock lock(mutex_);
      answer_ = std::move(done);
    }
  }
}

}  // namespace tocsin::app
