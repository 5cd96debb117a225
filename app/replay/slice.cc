#include "app/replay/slice.h"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/topics.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;

// What is copied is kept, however old it is.
constexpr core::Duration kForEver = std::chrono::hours{24 * 365 * 100};
constexpr std::chrono::seconds kSlicePatience{30};

}  // namespace

core::Result<std::unique_ptr<Slice>> Slice::create(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return core::Error{core::Code::unavailable, directory + ": " + error.message()};
  if (!fs::is_empty(directory, error) || error) {
    return core::Error{core::Code::failed_precondition,
                       directory + " is not empty: a slice has a directory of its own"};
  }
  std::unique_ptr<Slice> out(new Slice(directory));
  ingest::TransportConfig where;
  where.journal = directory;
  where.journal_retention = kForEver;
  ingest::TopicsConfig topics;
  topics.telemetry_retention = kForEver;
  auto transport = ingest::Transport::open(where, topics, out->log_, out->telemetry_);
  if (!transport) return transport.error();
  out->transport_ = std::move(*transport);
  ingest::PublisherOptions publishing;
  publishing.writer = "slice";
  auto publisher = out->transport_->publisher(publishing);
  if (!publisher) return publisher.error();
  out->publisher_ = std::move(*publisher);
  return out;
}

void Slice::add(const core::RecordView& record) {
  if (!status_) return;
  core::OutRecord out;
  out.topic = core::topic::kTelemetry;
  out.key = std::string(record.key.value_or(""));
  if (!record.tombstone) out.value.emplace(record.text());
  out.timestamp = record.timestamp;
  status_ = publisher_->publish(out);
  if (!status_ && status_.error().code == core::Code::resource_exhausted) {
    if ((status_ = publisher_->flush(kSlicePatience))) status_ = publisher_->publish(out);
  }
  if (!status_) return;
  ++records_;
  bytes_ += record.value.size();
}

core::Status Slice::close() {
  if (status_) status_ = publisher_->flush(kSlicePatience);
  publisher_.reset();
  transport_.reset();
  return status_;
}

}  // namespace tocsin::app
