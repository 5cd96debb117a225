#include "app/api/api_writer.h"

#include <unistd.h>

namespace tocsin::app {

using namespace std::chrono_literals;

namespace {

constexpr auto kApiWritten = 10s;

}  // namespace

core::Status ApiWriter::write(std::span<const core::OutRecord> records) {
  const core::MutexLock lock(mutex_);
  auto status = send(records);
  if (!status) publisher_.reset();
  return status;
}

core::Status ApiWriter::send(std::span<const core::OutRecord> records) {
  if (!publisher_) {
    ingest::PublisherOptions options;
    options.writer = "api-" + host_ + "-" + std::to_string(getpid());
    options.durable = true;
    auto opened = transport_.publisher(std::move(options));
    if (!opened) return opened.error();
    publisher_ = std::move(*opened);
  }
  for (const core::OutRecord& record : records) {
    if (auto sent = publisher_->publish(record); !sent) return sent;
  }
  return publisher_->flush(kApiWritten);
}

}  // namespace tocsin::app
