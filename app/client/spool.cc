#include "app/client/spool.h"

#include <utility>

#include "core/topics.h"

namespace tocsin::app::client {
namespace {

std::uint64_t size_of(const core::OutRecord& record) {
  return sizeof(core::OutRecord) + record.key.size() + (record.value ? record.value->size() : 0);
}

}  // namespace

void Unconfirmed::keep(const core::OutRecord& record) {
  bytes_ += size_of(record);
  records_.push_back(record);
  while (bytes_ > kMostBytes && !records_.empty()) {
    bytes_ -= size_of(records_.front());
    records_.pop_front();
  }
}

void Unconfirmed::confirmed() {
  records_.clear();
  bytes_ = 0;
}

std::deque<core::OutRecord> Unconfirmed::take() {
  bytes_ = 0;
  return std::exchange(records_, {});
}

Spool::Spool(std::string directory, Open open)
    : directory_(std::move(directory)), open_(std::move(open)) {}

bool Spool::add(const core::OutRecord& record) {
  if (record.topic != core::topic::kTelemetry) return true;
  if (!trouble_.empty()) return false;
  if (publisher_ == nullptr) {
    auto opened = open_();
    if (!opened) {
      trouble_ = opened.error().message;
      return false;
    }
    publisher_ = *std::move(opened);
  }
  if (auto added = publisher_->publish(record); !added) {
    trouble_ = added.error().message;
    return false;
  }
  ++records_;
  return true;
}

bool Spool::flush(std::chrono::milliseconds timeout) {
  if (publisher_ == nullptr) return true;
  if (auto flushed = publisher_->flush(timeout); !flushed) {
    trouble_ = flushed.error().message;
    return false;
  }
  return true;
}

}  // namespace tocsin::app::client
