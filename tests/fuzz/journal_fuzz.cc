// Any bytes as a journal segment: parsers neither crash nor read beyond them, what passes the check
// can be walked record by record, and what is built from it is the same again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "ingest/journal_format.h"

namespace {

using namespace tocsin;  // a program of one file

void require(bool holds) {
  if (!holds) std::abort();
}

core::OutRecord copy_of(const ingest::JournalRecord& record) {
  core::OutRecord copy;
  copy.topic = record.topic;
  copy.key = record.key;
  if (record.value) copy.value = std::string(*record.value);
  copy.timestamp = record.timestamp;
  copy.headers = ingest::headers_of(record);
  return copy;
}

/// A whole batch: every record parses, and building them anew parses again.
void walk(std::span<const std::byte> batch, const ingest::BatchHeader& header) {
  ingest::BatchBuilder builder;
  builder.begin(header.first_sequence, header.flags, header.append_time);
  auto rest = batch.subspan(ingest::kBatchHeaderBytes);
  bool all_fit = true;
  for (std::uint32_t i = 0; i < header.count; ++i) {
    const auto record = ingest::parse_record(rest);
    require(record.has_value() && record->total_bytes <= rest.size());
    (void)record->header("ce_id");
    all_fit = all_fit && builder.add(copy_of(*record), 1).has_value();
    rest = rest.subspan(record->total_bytes);
  }
  require(rest.empty());
  if (!all_fit) return;  // for instance an empty topic name, which is read but never written
  const auto again = ingest::check_batch(builder.finish());
  require(again.state == ingest::BatchState::complete && again.header.count == header.count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  (void)ingest::decode_segment_header(bytes);
  (void)ingest::parse_record(bytes);
  auto rest = bytes;
  while (!rest.empty()) {
    const auto check = ingest::check_batch(rest);
    if (check.state != ingest::BatchState::complete) break;
    require(check.header.total_bytes() <= rest.size());
    walk(rest.first(check.header.total_bytes()), check.header);
    rest = rest.subspan(check.header.total_bytes());
  }
  // Fuzzers do not find checksums: the same bytes as records behind a header that fits.
  ingest::BatchBuilder builder;
  builder.begin(7, 0, 1);
  core::OutRecord record;
  record.topic = "acks";
  record.key = std::string(reinterpret_cast<const char*>(data), size / 2);
  record.value = std::string(reinterpret_cast<const char*>(data) + size / 2, size - size / 2);
  record.headers = {{record.key.substr(0, 100), *record.value}};
  require(builder.add(record, 1).has_value());
  const auto built = builder.finish();
  const auto check = ingest::check_batch(built);
  require(check.state == ingest::BatchState::complete);
  walk(built, check.header);
  return 0;
}
