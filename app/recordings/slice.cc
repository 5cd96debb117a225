#include "app/recordings/slice.h"

#include <charconv>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/recordings/recording.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

namespace fs = std::filesystem;

// What is copied is kept, however old it is.
constexpr core::Duration kForEver = std::chrono::hours{24 * 365 * 100};
// Less than a stage has to end in.
constexpr std::chrono::seconds kSlicePatience{8};
constexpr const char* kFile = "telemetry.db";
// In a slice that may be left unfinished each record says where it stood, and its number.
constexpr const char* kMarkHeader = "tocsin_mark";
// What the file is besides the records in it.
constexpr std::uint64_t kOfFile = 256U << 10;
constexpr std::uint64_t kTrimEvery = 1U << 20;

std::optional<Slice::Mark> mark_of(const core::RecordView& record) {
  const auto text = record.header(kMarkHeader);
  if (!text) return std::nullopt;
  Slice::Mark out;
  const char* end = text->data() + text->size();
  const auto [space, bad] = std::from_chars(text->data(), end, out.next);
  if (bad != std::errc() || space == end) return std::nullopt;
  if (std::from_chars(space + 1, end, out.seen).ec != std::errc()) return std::nullopt;
  return out;
}

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
  if (const auto opened = out->open(); !opened) return opened.error();
  return out;
}

core::Result<std::unique_ptr<Slice>> Slice::go_on(const std::string& directory,
                                                  std::uint64_t most) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return core::Error{core::Code::unavailable, directory + ": " + error.message()};
  std::unique_ptr<Slice> out(new Slice(directory));
  out->most_ = most;
  if (fs::exists(fs::path(directory) / kFile, error)) {
    if (const auto counted = out->count(); !counted) return counted.error();
  }
  if (const auto opened = out->open(); !opened) return opened.error();
  return out;
}

core::Status Slice::open() {
  ingest::TransportConfig where;
  where.journal = directory_;
  where.journal_retention = kForEver;
  if (most_) where.journal_max_bytes.count = *most_ + kOfFile;
  ingest::TopicsConfig topics;
  topics.telemetry_retention = kForEver;
  auto transport = ingest::Transport::open(where, topics, log_, telemetry_);
  if (!transport) return transport.error();
  transport_ = std::move(*transport);
  ingest::PublisherOptions publishing;
  publishing.writer = "slice";
  auto publisher = transport_->publisher(publishing);
  if (!publisher) return publisher.error();
  publisher_ = std::move(*publisher);
  return core::ok();
}

core::Status Slice::count() {
  auto recording = ingest::Transport::open_recording(directory_, {}, log_, telemetry_);
  if (!recording) return recording.error();
  records_ = bytes_ = 0;
  const auto look = [&](const core::RecordView& record) {
    ++records_;
    bytes_ += record.value.size();
    if (const auto mark = mark_of(record)) mark_ = mark;
  };
  const auto read = read_recording(**recording, core::topic::kTelemetry, {}, look, [] {});
  return read ? core::ok() : core::Status(read.error());
}

void Slice::add(const core::RecordView& record) {
  if (!status_) return;
  core::OutRecord out;
  out.topic = core::topic::kTelemetry;
  out.key = std::string(record.key.value_or(""));
  if (!record.tombstone) out.value.emplace(record.text());
  out.timestamp = record.timestamp;
  if (most_) {
    mark_ = Mark{record.offset + 1, mark_ ? mark_->seen + 1 : 1};
    out.headers.emplace_back(kMarkHeader,
                             std::to_string(mark_->next) + " " + std::to_string(mark_->seen));
  }
  status_ = publisher_->publish(out);
  if (!status_ && status_.error().code == core::Code::resource_exhausted) {
    if ((status_ = publisher_->flush(kSlicePatience))) status_ = publisher_->publish(out);
  }
  if (!status_) return;
  ++records_;
  bytes_ += record.value.size();
  untrimmed_ += record.value.size();
  if (most_ && untrimmed_ >= kTrimEvery) trim();
}

// The journal's own limit does it; nothing in it is old.
void Slice::trim() {
  untrimmed_ = 0;
  if ((status_ = publisher_->flush(kSlicePatience))) {
    status_ = transport_->apply_retention(core::WallTime{});
  }
}

core::Status Slice::close() {
  if (status_) status_ = publisher_->flush(kSlicePatience);
  if (status_ && most_) trim();
  publisher_.reset();
  transport_.reset();
  return status_;
}

}  // namespace tocsin::app
