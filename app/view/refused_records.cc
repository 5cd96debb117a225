#include "app/view/refused_records.h"

#include <charconv>

#include "core/json.h"
#include "core/topics.h"
#include "core/visible_text.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

constexpr std::size_t kMaxHeaders = 64 * 1024;
constexpr std::size_t kMostOfBytesShown = 600;
constexpr std::size_t kMostOfARefusedLine = 300;

std::string refused_header(const core::RecordView& record, std::string_view name) {
  return std::string(record.header(name).value_or(""));
}

std::int64_t refused_number(const core::RecordView& record, std::string_view name) {
  const std::string text = refused_header(record, name);
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

bool is_text(std::string_view bytes) {
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 && c != '\n' && c != '\t' && c != '\r') return false;
  }
  return true;
}

std::string hex_line(std::string_view bytes) {
  constexpr std::size_t kBytes = 48;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes.substr(0, kBytes)) {
    const auto code = static_cast<unsigned char>(c);
    out += kDigits[code >> 4U];
    out += kDigits[code & 15U];
  }
  return out + (bytes.size() > kBytes ? "…" : "");
}

}  // namespace

void RefusedRecords::apply(const core::RecordView& record) {
  if (record.topic != core::topic::kDlq || record.tombstone) return;
  if (const auto act = record.header(dlq_act::kAct)) {
    const auto of = records_.find(refused_header(record, dlq_act::kOf));
    if (of == records_.end()) return;
    of->second.act = *act;
    of->second.by = refused_header(record, dlq_act::kBy);
    of->second.note = refused_header(record, dlq_act::kNote);
    return;
  }
  RefusedRecord one;
  one.topic = refused_header(record, "source-topic");
  one.partition = static_cast<std::int32_t>(refused_number(record, "source-partition"));
  one.id = one.topic + "/" + std::to_string(one.partition) + "@" +
           refused_header(record, "source-offset");
  one.at = core::wall_time(record.timestamp);
  one.published = core::wall_time(refused_number(record, "source-timestamp"));
  one.code = refused_header(record, "error-code");
  one.detail = refused_header(record, "error-detail");
  one.component = refused_header(record, "component");
  if (const auto key = record.header("source-key")) one.key = std::string(*key);
  one.size = static_cast<std::uint64_t>(refused_number(record, "original-bytes"));
  // The attributes of an event, where it had some.
  const auto kept = core::parse_json(record.header("source-headers").value_or("{}"), kMaxHeaders);
  if (kept && core::as<core::ValueMap>(*kept) != nullptr) {
    for (const auto& [name, value] : *core::as<core::ValueMap>(*kept)) {
      if (const auto* text = core::as<std::string>(value)) one.headers.emplace_back(name, *text);
    }
  }
  if (whole_.contains(one.id)) one.bytes = std::string(record.text());
  records_.insert_or_assign(one.id, std::move(one));
}

core::Result<core::OutRecord> replay_of_refused(const RefusedRecord& record) {
  if (record.bytes.size() != record.size) {
    return core::Error{core::Code::failed_precondition,
                       "only the first " + std::to_string(record.bytes.size()) + " of its " +
                           std::to_string(record.size) + " bytes were kept"};
  }
  core::OutRecord out;
  out.topic = record.topic;
  out.key = record.key.value_or("");
  out.value = record.bytes;
  out.headers = record.headers;
  out.timestamp = core::nanoseconds(record.published);
  out.partition = record.partition;
  return out;
}

core::OutRecord refused_act_record(const RefusedRecord& record, const std::string& act,
                                   const std::string& by, const std::string& note) {
  core::OutRecord out;
  out.topic = core::topic::kDlq;
  out.key = record.topic + "/" + std::to_string(record.partition);
  out.value = "";
  out.headers = {{std::string(dlq_act::kAct), act},
                 {std::string(dlq_act::kOf), record.id},
                 {std::string(dlq_act::kBy), by},
                 {std::string(dlq_act::kNote), note}};
  return out;
}

std::string refused_text(const RefusedRecord& record) {
  std::string out = core::visible(record.id, 200) + "  " +
                    (record.act.empty() ? std::string("refused") : core::visible(record.act, 40)) +
                    "  " + core::visible(record.code, 60) + "\n  written " +
                    core::to_rfc3339(record.published) + ", refused " +
                    core::to_rfc3339(record.at) + " by " + core::visible(record.component, 60) +
                    ", " + std::to_string(record.size) + " bytes\n";
  if (!record.detail.empty()) {
    out += "  " + core::visible(record.detail, kMostOfARefusedLine) + "\n";
  }
  if (record.key) out += "  key " + core::visible(*record.key, 200) + "\n";
  for (const auto& [name, value] : record.headers) {
    out += "  " + name + ": " + core::visible(value, 200) + "\n";
  }
  if (!record.bytes.empty()) {
    out += "  " +
           (is_text(record.bytes) ? core::visible(record.bytes, kMostOfBytesShown)
                                  : "0x" + hex_line(record.bytes)) +
           "\n";
  }
  if (!record.act.empty()) {
    out += "  " + core::visible(record.act, 40) + " by " + core::visible(record.by, 100) +
           (record.note.empty() ? "" : ": " + core::visible(record.note, kMostOfARefusedLine)) +
           "\n";
  }
  return out;
}

core::Value refused_value(const RefusedRecord& record, bool whole) {
  core::ValueMap headers;
  for (const auto& [name, value] : record.headers) headers.emplace_back(name, value);
  core::ValueMap out{{"id", record.id},
                     {"what", "record"},
                     {"stand", record.act.empty() ? "refused" : record.act},
                     {"topic", record.topic},
                     {"partition", std::int64_t{record.partition}},
                     {"written_at", core::to_rfc3339(record.published)},
                     {"refused_at", core::to_rfc3339(record.at)},
                     {"code", record.code},
                     {"detail", record.detail},
                     {"component", record.component},
                     {"key", record.key ? core::Value(*record.key) : core::Value()},
                     {"bytes", record.size},
                     {"headers", std::move(headers)},
                     {"by", record.by},
                     {"note", record.note}};
  if (whole && is_text(record.bytes)) out.emplace_back("value", record.bytes);
  return out;
}

}  // namespace tocsin::app
