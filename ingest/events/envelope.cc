// CloudEvents 1.0: Kafka protocol binding §3.2 (binary) and §3.3 (structured), JSON event format.
#include "ingest/events/envelope.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace tocsin::ingest {
namespace {

constexpr std::string_view kStructured = "application/cloudevents";
constexpr std::string_view kBatch = "application/cloudevents-batch";
constexpr std::string_view kSchemaBase = "https://tocsin.dev/schemas/";

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char want, char have) {
           return want == (have >= 'A' && have <= 'Z' ? static_cast<char>(have + 32) : have);
         });
}

core::Status check(const Envelope& envelope, std::string_view version) {
  if (!version.starts_with("1.")) {
    return core::invalid_argument("CloudEvents specversion is \"" + std::string(version) +
                                  "\", not 1.0");
  }
  if (envelope.type.empty()) return core::invalid_argument("attribute type is missing");
  if (envelope.id.empty()) return core::invalid_argument("attribute id is missing");
  if (envelope.source.empty()) return core::invalid_argument("attribute source is missing");
  return core::ok();
}

core::Result<Opened> from_structured(core::JsonTape json) {
  Opened out;
  std::string error;
  std::string version;
  std::string sequence;
  core::JsonIn in(json, 0, error);
  in.field("specversion", version);
  in.field("type", out.envelope.type);
  in.field("source", out.envelope.source);
  in.field("id", out.envelope.id);
  in.field("subject", out.envelope.subject);
  in.field("time", out.envelope.time);
  in.field("sequence", sequence);
  in.field("causationid", out.envelope.causation_id);
  in.field("correlationid", out.envelope.correlation_id);
  in.field("traceparent", out.envelope.traceparent);
  in.field("tracestate", out.envelope.tracestate);
  if (in.has("data_base64")) error = "data_base64 is not supported: the data is JSON";
  if (!error.empty()) return core::invalid_argument(error);
  out.envelope.sequence = parse_sequence(sequence);
  if (core::Status good = check(out.envelope, version); !good) return good.error();
  if (!in.has("data")) return core::invalid_argument("data is missing");
  out.data = in.find("data");
  out.json = std::move(json);
  return out;
}

core::Result<Opened> from_binary(const core::RecordView& record, std::size_t max_bytes) {
  const auto attribute = [&](std::string_view name) {
    return std::string(record.header(name).value_or(std::string_view{}));
  };
  Opened out;
  out.envelope.type = attribute("ce_type");
  out.envelope.source = attribute("ce_source");
  out.envelope.id = attribute("ce_id");
  out.envelope.subject = attribute("ce_subject");
  out.envelope.causation_id = attribute("ce_causationid");
  out.envelope.correlation_id = attribute("ce_correlationid");
  out.envelope.traceparent = attribute("ce_traceparent");
  out.envelope.tracestate = attribute("ce_tracestate");
  out.envelope.sequence = parse_sequence(attribute("ce_sequence"));
  if (const std::string time = attribute("ce_time"); !time.empty()) {
    out.envelope.time = core::parse_rfc3339(time);
    if (!out.envelope.time) return core::invalid_argument("attribute time is no RFC 3339 time");
  }
  if (core::Status good = check(out.envelope, attribute("ce_specversion")); !good) {
    return good.error();
  }
  core::Result<core::JsonTape> data = core::JsonTape::parse(record.text(), max_bytes);
  if (!data) return data.error().in("data");
  out.json = std::move(*data);
  return out;
}

}  // namespace

std::optional<std::uint64_t> parse_sequence(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

core::Result<Opened> open_structured(std::string_view json, std::size_t max_bytes) {
  core::Result<core::JsonTape> event = core::JsonTape::parse(json, max_bytes);
  if (!event) return event.error();
  return from_structured(std::move(*event));
}

core::Result<Opened> open_event(const core::RecordView& record, std::size_t max_bytes) {
  if (record.tombstone) return core::invalid_argument("a tombstone is no event");
  const std::string_view content_type = record.header("content-type").value_or(std::string_view{});
  if (starts_with_ignoring_case(content_type, kBatch)) {
    return core::invalid_argument("a batch of events is not accepted in one record");
  }
  if (starts_with_ignoring_case(content_type, kStructured)) {
    return open_structured(record.text(), max_bytes);
  }
  if (record.header("ce_specversion")) return from_binary(record, max_bytes);
  // Tools that set no headers: a whole event says so itself.
  core::Result<core::JsonTape> event = core::JsonTape::parse(record.text(), max_bytes);
  if (!event) return event.error();
  std::string error;
  if (!core::JsonIn(*event, 0, error).has("specversion")) {
    return core::invalid_argument("no CloudEvent: neither ce_ headers nor specversion");
  }
  return from_structured(std::move(*event));
}

std::vector<std::pair<std::string, std::string>> binary_headers(const Attributes& from) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&out](std::string_view name, std::string value) {
    if (!value.empty()) out.emplace_back(name, std::move(value));
  };
  add("content-type", "application/json");
  add("ce_specversion", "1.0");
  add("ce_type", std::string(from.type));
  add("ce_source", from.source);
  add("ce_id", from.id);
  if (from.time != core::WallTime{}) add("ce_time", core::to_rfc3339(from.time));
  add("ce_subject", from.subject);
  add("ce_dataschema", std::string(kSchemaBase) + std::string(from.schema) + ".json");
  for (const auto& [name, value] : from.extensions) add("ce_" + name, value);
  return out;
}

}  // namespace tocsin::ingest
