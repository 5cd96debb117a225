#include "ingest/wire/json_scalars.h"

#include <array>
#include <cstring>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/codes.h"
#include "core/fields/json_in.h"
#include "core/fields/out.h"
#include "core/fields/words.h"
#include "core/identity.h"
#include "core/topics.h"
#include "ingest/wire/frame_writer.h"

namespace tocsin::ingest {
namespace {

using core::DictionaryEntry;
using core::DictionaryType;
using core::FrameHeader;
using core::JsonIn;
using core::JsonTape;
using core::ScalarRow;

constexpr std::size_t kMaxNameBytes = 4096;
constexpr std::size_t kRowsPerFrame = 500;
constexpr std::size_t kDictionaryBytes = 256 * 1024;

/// Whose metric it is: what one frame has in common.
struct Source {
  core::RunUid run;
  std::uint32_t attempt = 1;
  std::uint32_t rank = 0;
  std::uint32_t world_size = 0;
  core::Mode mode = core::Mode::train;
  std::string worker = "worker_0";
  std::string attrs;  // JSON of job and labels, or empty
  friend bool operator==(const Source&, const Source&) = default;
};

struct Metric {
  Source source;
  std::string name;
  std::string attrs;  // JSON of direction and unit, or empty
  core::Role role = core::Role::metric;
  ScalarRow row;
};

void require_name(JsonIn& in, std::string_view field, std::string& out) {
  in.field(field, out);
  if (out.empty()) {
    if (in.has(field)) return in.wrong(field, "a text that is not empty");
    return in.missing(field);
  }
  if (out.size() > kMaxNameBytes) in.wrong(field, "a text of at most 4096 bytes");
}

/// What the dictionary says of a worker, and of a metric.
struct WorkerAttrs {
  std::string job;
  core::Labels labels;
};
template <typename A>
void fields(A& io, core::Of<A, WorkerAttrs>& attrs) {
  io.field("job", attrs.job, "", core::How::omit_if_empty);
  io.field("labels", attrs.labels, "", core::How::omit_if_empty);
}
struct MetricAttrs {
  std::string direction;  // min or max
  std::string unit;
};
template <typename A>
void fields(A& io, core::Of<A, MetricAttrs>& attrs) {
  io.field("direction", attrs.direction, "", core::How::omit_if_empty);
  io.field("unit", attrs.unit, "", core::How::omit_if_empty);
}
/// Empty when there is nothing to say.
template <typename Attrs>
std::string attrs_text(const Attrs& attrs) {
  std::string text = core::write_json(attrs);
  return text == "{}" ? "" : text;
}

void read_source(JsonIn& in, Source& out) {
  std::string run;
  WorkerAttrs attrs;
  require_name(in, "run", run);
  fields(in, attrs);
  out.run = core::run_uid_for(attrs.job, run);
  in.field("attempt", out.attempt);
  if (out.attempt == 0) in.wrong("attempt", "a whole number from 1");
  in.field("rank", out.rank);
  in.field("world_size", out.world_size);
  if (in.has("worker")) require_name(in, "worker", out.worker);
  in.field("mode", out.mode);
  out.attrs = attrs_text(attrs);
}

void read_metric(JsonIn& in, std::int64_t timestamp, Metric& out) {
  read_source(in, out.source);
  require_name(in, "name", out.name);
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
  MetricAttrs attrs;
  fields(in, attrs);
  if (!attrs.direction.empty() && attrs.direction != "min" && attrs.direction != "max") {
    in.wrong("direction", "min or max");
  }
  out.attrs = attrs_text(attrs);
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
  std::vector<DictionaryEntry> entries;
  std::vector<ScalarRow> rows;
  std::unordered_set<std::uint64_t> named;
  FrameWriter writer;

  void hand_out(FrameWriter& frame, FrameHandler handle) {
    const auto bytes = frame.finish();
    if (!bytes) return;  // cannot happen: slices stay far below the caps
    FrameHeader header;
    std::memcpy(&header, bytes->data(), sizeof header);
    header.flags |= core::frame_flag::kUnsequenced;
    handle(core::FrameView(header, bytes->data() + sizeof header));
  }

  /// One dictionary and one scalar frame from metrics[first…]; returns where the next slice begins.
  std::size_t emit(std::size_t first, FrameHandler handle) {
    entries.clear();
    rows.clear();
    named.clear();
    const Source& source = metrics[first].source;
    DictionaryEntry worker;
    worker.hash = core::name_hash(source.worker);
    worker.type = DictionaryType::worker;
    worker.name = source.worker;
    worker.attrs = source.attrs;
    entries.push_back(worker);
    std::size_t bytes = source.worker.size() + source.attrs.size();
    std::size_t next = first;
    while (next < metrics.size() && rows.size() < kRowsPerFrame && bytes < kDictionaryBytes &&
           metrics[next].source == source) {
      const Metric& metric = metrics[next++];
      rows.push_back(metric.row);
      if (!named.insert(metric.row.name).second) continue;
      DictionaryEntry entry;
      entry.hash = metric.row.name;
      entry.type = DictionaryType::scalar;
      entry.dtype = core::Dtype::f64;
      entry.role = metric.role;
      entry.name = metric.name;
      entry.attrs = metric.attrs;
      entries.push_back(entry);
      bytes += metric.name.size() + metric.attrs.size();
    }
    const FrameHeader header = header_of(metrics[next - 1]);
    hand_out(writer.dictionary(header, entries), handle);
    hand_out(writer.scalars(header, rows), handle);
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
  handle(decoded.frame());
  return std::nullopt;
}

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
  return out;
}

}  // namespace tocsin::ingest
