#include "collectors/hook/publish/spool.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "core/frame.h"
#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::hook {
namespace {

using std::chrono::milliseconds;

constexpr auto kMakeRoom = milliseconds(1000);
constexpr std::size_t kAtOnce = 500;

std::uint64_t size_of(const core::OutRecord& record) {
  return sizeof(core::OutRecord) + record.key.size() + (record.value ? record.value->size() : 0);
}

// The frame with the flag that says that it comes late; what is no frame stays as it is.
std::string marked(std::string bytes) {
  core::FrameHeader header;
  if (bytes.size() < sizeof header || std::memcmp(bytes.data(), header.magic.data(), 4) != 0) {
    return bytes;
  }
  std::memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  header.flags |= core::frame_flag::kFromSpool;
  header.crc = 0;
  std::memcpy(bytes.data(), &header, sizeof header);
  header.crc = ingest::crc32c(std::as_bytes(std::span(bytes.data(), bytes.size())));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
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

Spool::Spool(SpoolPlace place) : place_(std::move(place)) {}

bool Spool::add(const core::OutRecord& record) {
  if (!trouble_.empty() || !there()) return false;
  const std::uint64_t size = size_of(record);
  if (bytes_ + size > place_.most_bytes) return false;
  if (publisher_ == nullptr) {
    auto opened = place_.write();
    if (!opened) {
      trouble_ = opened.error().message;
      return false;
    }
    publisher_ = *std::move(opened);
  }
  core::OutRecord late = record;
  if (late.value) late.value = marked(*std::move(late.value));
  auto added = publisher_->publish(late);
  if (!added && added.error().code == core::Code::resource_exhausted && flush(kMakeRoom)) {
    added = publisher_->publish(late);
  }
  if (!added) {
    trouble_ = added.error().message;
    return false;
  }
  bytes_ += size;
  ++added_;
  ++added_ever_;
  return true;
}

bool Spool::flush(milliseconds timeout) {
  if (publisher_ == nullptr) return true;
  const auto flushed = publisher_->flush(timeout);
  // A slow disk is waited for another time.
  if (!flushed && flushed.error().code != core::Code::deadline_exceeded) {
    trouble_ = flushed.error().message;
  }
  return flushed.has_value();
}

core::Result<bool> Spool::replay(Publish publish) {
  if (handed_out_ == added_) return true;
  if (source_ == nullptr) {
    auto opened = place_.read();
    if (!opened) return opened.error();
    source_ = *std::move(opened);
  }
  std::optional<core::Position> refused;
  while (handed_out_ < added_) {
    const auto polled =
        source_->poll(milliseconds(0), kAtOnce, [&](const core::RecordView& record) {
          if (refused || record.offset < next_) return;
          core::OutRecord out;
          out.topic = core::topic::kTelemetry;
          out.key = std::string(record.key.value_or(""));
          if (!record.tombstone) out.value.emplace(record.text());
          if (!publish(out)) {
            refused = {{std::string(record.stream), record.partition}, record.offset};
            return;
          }
          next_ = record.offset + 1;
          ++handed_out_;
        });
    if (!polled) return polled.error();
    if (refused) {
      if (auto sought = source_->seek(*refused); !sought) return sought.error();
      return false;
    }
    if (*polled == 0) return false;  // on its way to the disk
  }
  return true;
}

void Spool::forget() {
  source_.reset();
  publisher_.reset();
  added_ = confirmed_ = bytes_ = handed_out_ = 0;
  next_ = confirmed_next_ = 0;
  trouble_.clear();
}

void Spool::confirmed() {
  if (waiting() == 0) return;
  confirmed_ = handed_out_;
  confirmed_next_ = next_;
  if (confirmed_ < added_) return;
  forget();
  place_.remove();
}

std::uint64_t Spool::rewind() {
  const std::uint64_t again = handed_out_ - confirmed_;
  source_.reset();
  handed_out_ = confirmed_;
  next_ = confirmed_next_;
  return again;
}

void Spool::release() {
  source_.reset();
  publisher_.reset();
  place_.write = nullptr;
  place_.read = nullptr;
  place_.remove = nullptr;
}

std::uint64_t Spool::abandon() {
  const std::uint64_t left = waiting();
  const std::string why = trouble_;
  forget();
  trouble_ = why.empty() ? "it cannot be read" : why;
  return left;
}

}  // namespace tocsin::hook
