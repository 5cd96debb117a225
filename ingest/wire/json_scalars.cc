#include "ingest/wire/json_scalars.h"

#include <array>
#include <cstring>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "core/fields/dictionary.h"
#include "core/fields/json_in.h"
#include "core/fields/words.h"
#include "core/identity.h"
#include "core/limits.h"
#include "core/topics.h"
#include "core/value.h"
#include "ingest/wire/frame_body.h"
#include "ingest/wire/frame_writer.h"

namespace tocsin::ingest {
namespace {

using core::DictionaryType;
using core::FrameHeader;
using core::JsonIn;
using core::JsonTape;
using core::ScalarRow;

constexpr std::size_t kMaxRunBytes = 4096;  // an identity: nothing of it may be cut
constexpr std::size_t kRowsPerFrame = 500;

/// Whose metric it is: what one frame has in common.
struct Source {
  core::RunUid run;
  std::uint32_t attempt = 1;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  core::Mode mode = core::Mode::train;
  std::string worker = "worker_0";
  core::NameAttrs attrs;  // of the worker: job and labels
  friend bool operator==(const Source&, const Source&) = default;
};

struct Metric {
  Source source;
  std::string name;
  core::NameAttrs attrs;  // direction and unit
  core::Role role = core::Role::metric;
  ScalarRow row;
};

void require_name(JsonIn& in, std::string_view field, std::string& out) {
  in.field(field, out);
  if (out.empty()) {
    if (in.has(field)) return in.wrong(field, "a text that is not empty");
    return in.missing(field);
  }
}

// A name that is too long is one that ends in a mark, as everywhere (core/limits.h).
void require_fitting_name(JsonIn& in, std::string_view field, std::string& out) {
  require_name(in, field, out);
  if (!out.empty()) (void)core::bound_name(out);
}

void read_source(JsonIn& in, Source& out) {
  std::string run;
  require_name(in, "run", run);
  if (run.size() > kMaxRunBytes) in.wrong("run", "a text of at most 4096 bytes");
  in.field("job", out.attrs.job);
  in.field("labels", out.attrs.labels);
  out.run = core::run_uid_for(out.attrs.job, run);
  in.field("attempt", out.attempt);
  if (out.attempt == 0) in.wrong("attempt", "a whole number from 1");
  in.field("rank", out.rank);
  in.field("world_size", out.world_size);
  if (in.has("worker")) require_fitting_name(in, "worker", out.worker);
  in.field("mode", out.mode);
}

void read_metric(JsonIn& in, std::int64_t timestamp, Metric& out) {
  read_source(in, out.source);
  require_fitting_name(in, "name", out.name);
  in.field("value", out.row.value, "", core::How::required);
  in.field("step", out.row.step, "", core::How::required);
  out.row.global_step = out.row.step;
  in.field("global_step", out.row.global_step);
  if (out.row.step < 0) in.wrong("step", "a whole number from 0");
  if (out.row.global_step < 0) in.wrong("global_step", "a whole number from 0");
  std::optional<core::WallTime> time;
  in.field("time", time);
  out.row.time = time ? core::nanoseconds(*time) : timestamp;
  out.role = core::scalar_role(out.name);
  in.field("role", out.role);
  out.row.name = core::name_hash(out.name);
  out.row.meta = core::meta::make(core::Dtype::f64, out.role);
  in.field("direction", out.attrs.direction);
  in.field("unit", out.attrs.unit);
}

FrameHeader header_of(const Metric& metric) {
  FrameHeader header;
  header.mode = metric.source.mode;
  header.run = metric.source.run;
  header.attempt = metric.source.attempt;
  header.rank = metric.source.rank;
  header.world_size = metric.source.world_size;
  header.step = metric.row.step;
  header.global_step = metric.row.global_step;
  header.time = metric.row.time;
  header.worker = core::name_hash(metric.source.worker);
  return header;
}

DecodeFailure bad_json(std::string detail) { return {DecodeError::bad_json, std::move(detail)}; }

bool space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

}  // namespace

struct JsonScalarDecoder::State {
  std::vector<Metric> metrics;
  core::FrameBody names;
  std::vector<ScalarRow> rows;
  std::unordered_set<std::uint64_t> named;
  FrameWriter writer;

  /// Names need no bytes: nobody decodes them again.
  void hand_out_names(FrameHeader header, std::size_t count, FrameHandler handle) {
    header.kind = core::FrameKind::dictionary;
    header.row_count = static_cast<std::uint32_t>(count);
    header.flags |= core::frame_flag::kUnsequenced;
    handle(core::FrameView(header, nullptr), names);
  }

  void hand_out_rows(const FrameHeader& from, FrameHandler handle) {
    const auto bytes = writer.scalars(from, rows).finish();
    if (!bytes) return;  // cannot happen: slices stay far below the caps
    FrameHeader header;
    std::memcpy(&header, bytes->data(), sizeof header);
    header.flags |= core::frame_flag::kUnsequenced;
    handle(core::FrameView(header, bytes->data() + sizeof header), core::FrameBody());
  }

  /// One dictionary and one scalar frame from metrics[first…]; returns where the next slice begins.
  std::size_t emit(std::size_t first, FrameHandler handle) {
    auto& entries = names.emplace<core::Dictionary>();
    rows.clear();
    named.clear();
    const Source& source = metrics[first].source;
    core::NamedEntry& worker = entries.emplace_back();
    worker.hash = core::name_hash(source.worker);
    worker.type = DictionaryType::worker;
    worker.name = source.worker;
    worker.attrs = source.attrs;
    std::size_t next = first;
    while (next < metrics.size() && rows.size() < kRowsPerFrame && metrics[next].source == source) {
      const Metric& metric = metrics[next++];
      rows.push_back(metric.row);
      if (!named.insert(metric.row.name).second) continue;
      core::NamedEntry& entry = entries.emplace_back();
      entry.hash = metric.row.name;
      entry.type = DictionaryType::scalar;
      entry.dtype = core::Dtype::f64;
      entry.role = metric.role;
      entry.name = metric.name;
      entry.attrs = metric.attrs;
    }
    const FrameHeader header = header_of(metrics[next - 1]);
    hand_out_names(header, entries.size(), handle);
    hand_out_rows(header, handle);
    return next;
  }
};

JsonScalarDecoder::JsonScalarDecoder() : state_(std::make_unique<State>()) {}
JsonScalarDecoder::~JsonScalarDecoder() = default;
JsonScalarDecoder::JsonScalarDecoder(JsonScalarDecoder&&) noexcept = default;
JsonScalarDecoder& JsonScalarDecoder::operator=(JsonScalarDecoder&&) noexcept = default;

std::optional<DecodeFailure> JsonScalarDecoder::decode(std::string_view json,
                                                       std::int64_t timestamp,
                                                       FrameHandler handle) {
  if (json.size() > core::kMaxFrameBytes) {
    return DecodeFailure{DecodeError::too_large, "a JSON record of more than 1 MiB"};
  }
  const core::Result<JsonTape> parsed = JsonTape::parse(json, core::kMaxFrameBytes);
  if (!parsed) return bad_json(parsed.error().message);

  std::vector<Metric>& metrics = state_->metrics;
  metrics.clear();
  std::string error;
  const auto add = [&](std::uint32_t index, std::string_view place) {
    if (!error.empty()) return;
    if (parsed->at(index).kind != JsonTape::Kind::object) {
      error = std::string(place) + " expected an object with run, name, value and step";
      return;
    }
    metrics.emplace_back();
    JsonIn in(*parsed, index, error, place);
    read_metric(in, timestamp, metrics.back());
  };
  if (parsed->at(0).kind == JsonTape::Kind::list) {
    std::size_t number = 0;
    parsed->each_item(
        0, [&](std::uint32_t index) { add(index, "[" + std::to_string(number++) + "]"); });
  } else {
    add(0, "");
  }
  if (!error.empty()) return bad_json(std::move(error));
  for (std::size_t at = 0; at < metrics.size();) at = state_->emit(at, handle);
  return std::nullopt;
}

std::optional<DecodeFailure> decode_telemetry(const core::RecordView& record,
                                              JsonScalarDecoder& json, FrameHandler handle) {
  const std::string_view text = record.text();
  std::size_t start = 0;
  while (start < text.size() && space(text[start])) ++start;
  if (start < text.size() && (text[start] == '{' || text[start] == '[')) {
    return json.decode(text, record.timestamp, handle);
  }
  const Decoded decoded = decode_frame(record.value);
  if (!decoded) return DecodeFailure{decoded.error(), std::string(decoded.detail())};
  const core::Result<core::FrameBody> body = decode_body(decoded.frame());
  if (!body) return DecodeFailure{DecodeError::bad_lifecycle, body.error().message};
  handle(decoded.frame(), *body);
  return std::nullopt;
}

namespace {

// Where the attributes of an event stand; without them its bytes cannot be published again.
constexpr std::array<std::string_view, 18> kKeptHeaders{
    "content-type",     "ce_specversion", "ce_type",         "ce_source",         "ce_id",
    "ce_time",          "ce_subject",     "ce_dataschema",   "ce_sequence",       "ce_partitionkey",
    "ce_correlationid", "ce_causationid", "ce_severitytext", "ce_severitynumber", "ce_expirytime",
    "ce_traceparent",   "ce_tracestate",  "replay"};

}  // namespace

core::OutRecord dead_letter(const core::RecordView& record, std::string_view code,
                            std::string_view detail, std::string_view component) {
  constexpr std::size_t kMaxDetail = 1024;
  core::OutRecord out;
  out.topic = core::topic::kDlq;
  out.key = std::string(record.topic) + "/" + std::to_string(record.partition);
  out.value = std::string(record.text().substr(0, kMaxRecordBytes));
  out.headers = {{"error-code", std::string(code)},
                 {"error-detail", std::string(detail.substr(0, kMaxDetail))},
                 {"source-topic", std::string(record.topic)},
                 {"source-stream", std::string(record.stream)},
                 {"source-partition", std::to_string(record.partition)},
                 {"source-offset", std::to_string(record.offset)},
                 {"source-timestamp", std::to_string(record.timestamp)},
                 {"original-bytes", std::to_string(record.value.size())},
                 {"decoder", std::string(kDecoderVersion)},
                 {"component", std::string(component)}};
  if (record.key) out.headers.emplace_back("source-key", record.key->substr(0, kMaxDetail));
  core::ValueMap kept;
  for (const std::string_view name : kKeptHeaders) {
    const auto value = record.header(name);
    if (value) kept.emplace_back(std::string(name), std::string(value->substr(0, kMaxDetail)));
  }
  if (!kept.empty()) out.headers.emplace_back("source-headers", core::to_json(kept));
  return out;
}

}  // namespace tocsin::ingest
