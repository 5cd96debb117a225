// Events, commands, acks, deliveries and outbox records from any bytes: never crash; an event that
// is accepted is written in a form that is accepted again and stays the same. The first byte
// chooses the reader, the second the mode, the rest is the value.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#include "ingest/ingest.h"

namespace {

using tocsin::core::OutRecord;
using tocsin::core::RecordView;

void require(bool holds) {
  if (!holds) std::abort();
}

RecordView view_of(const OutRecord& record) {
  RecordView out;
  out.topic = record.topic;
  out.key = record.key;
  out.value = {reinterpret_cast<const std::byte*>(record.value->data()), record.value->size()};
  out.native = &record;
  out.find_header = [](const void* native,
                       std::string_view name) -> std::optional<std::string_view> {
    for (const auto& [key, value] : static_cast<const OutRecord*>(native)->headers) {
      if (key == name) return value;
    }
    return std::nullopt;
  };
  return out;
}

void issues(const OutRecord& record) {
  const auto decoded = tocsin::ingest::decode_event(view_of(record));
  if (!decoded) return require(!decoded.error().message.empty());
  if (const auto* issue = std::get_if<tocsin::core::Issue>(&decoded->event)) {
    const OutRecord written = tocsin::ingest::encode_issue(*issue);
    const auto again = tocsin::ingest::decode_event(view_of(written));
    // Only a limit may stand in the way: our form says more than the producer's did.
    if (!again) return require(again.error().message.find("at most") != std::string::npos);
    const auto& same = std::get<tocsin::core::Issue>(again->event);
    require(tocsin::ingest::issue_json(same) == tocsin::ingest::issue_json(*issue));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static constexpr std::array<std::string_view, 6> kTypes{
      tocsin::ingest::event_type::kIssue, tocsin::ingest::event_type::kJob,
      tocsin::ingest::event_type::kRule,  tocsin::ingest::event_type::kCommand,
      tocsin::ingest::event_type::kAck,   tocsin::ingest::event_type::kDelivery};
  const std::size_t reader = data[0] % 7;
  OutRecord record;
  record.topic = "issues";
  record.key = "4e3046d4-8c1f-5278-82e3-ea3595bc5999/stop";
  record.value = std::string(reinterpret_cast<const char*>(data + 2), size - 2);
  if (data[1] % 2 == 0) {
    record.headers = {{"ce_specversion", "1.0"},
                      {"ce_type", std::string(kTypes[reader % kTypes.size()])},
                      {"ce_source", "/x"},
                      {"ce_id", "1"}};
  }
  const RecordView view = view_of(record);
  if (reader < 3) issues(record);
  if (reader == 3) static_cast<void>(tocsin::ingest::decode_command(view).has_value());
  if (reader == 4) static_cast<void>(tocsin::ingest::decode_ack(view).has_value());
  if (reader == 5) static_cast<void>(tocsin::ingest::decode_delivery(view).has_value());
  if (reader == 6) static_cast<void>(tocsin::ingest::decode_notification(view).has_value());
  return 0;
}
