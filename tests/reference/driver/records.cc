#include "tests/reference/driver/records.h"

#include <cmath>
#include <stdexcept>

#include "core/statistics.h"

namespace tocsin::reference {
namespace {

[[noreturn]] void refuse(const std::string& why) { throw std::runtime_error(why); }

double number(const core::Value& value) {
  if (const auto* whole = core::as<std::int64_t>(value)) return static_cast<double>(*whole);
  if (const auto* real = core::as<double>(value)) return *real;
  const auto* text = core::as<std::string>(value);
  if (text != nullptr && *text == "NaN") return std::nan("");
  if (text != nullptr && *text == "Infinity") return HUGE_VAL;
  if (text != nullptr && *text == "-Infinity") return -HUGE_VAL;
  refuse("no number: " + core::to_json(value));
}

std::int64_t integer(const core::Value& value) {
  if (const auto* whole = core::as<std::int64_t>(value)) return *whole;
  refuse("no integer: " + core::to_json(value));
}

std::string text(const core::Value& value) {
  if (const auto* out = core::as<std::string>(value)) return *out;
  refuse("no text: " + core::to_json(value));
}

const core::ValueList& list(const core::Value& value) {
  if (const auto* out = core::as<core::ValueList>(value)) return *out;
  refuse("no list: " + core::to_json(value));
}

const core::ValueList& list_at(const core::Value& record, std::string_view key) {
  static const core::ValueList kNone;
  const core::Value* found = core::find(record, key);
  return found == nullptr ? kNone : list(*found);
}

std::int64_t integer_at(const core::Value& record, std::string_view key, std::int64_t otherwise) {
  const core::Value* found = core::find(record, key);
  return found == nullptr ? otherwise : integer(*found);
}

std::vector<double> numbers(const core::Value& value) {
  std::vector<double> out;
  for (const core::Value& one : list(value)) out.push_back(number(one));
  return out;
}

template <typename Code>
Code code(std::optional<Code> found, const std::string& name) {
  if (!found) refuse("unknown code: " + name);
  return *found;
}

core::Role role(const core::Value& value) {
  return code(core::role_from(text(value)), text(value));
}
core::Dtype dtype(const core::Value& value) {
  return code(core::dtype_from(text(value)), text(value));
}

std::uint16_t statistic(const std::string& name, core::StatisticForm form) {
  for (const core::Statistic& one : core::builtin_statistics()) {
    if (one.form == form && one.name == name) return one.id;
  }
  refuse("unknown statistic: " + name);
}

// [name, dtype, role, flags, count, sum, sumsq, m2, abs_sum, min, max, nan, posinf, neginf, zero,
//  negative]
core::SummaryRow summary_row(const core::Value& value) {
  const core::ValueList& at = list(value);
  if (at.size() != 16) refuse("a row of a summary has 16 parts");
  core::SummaryRow row;
  row.name = core::name_hash(text(at[0]));
  row.meta =
      core::meta::make(dtype(at[1]), role(at[2]), static_cast<std::uint64_t>(integer(at[3])));
  const auto count = [&](std::size_t i) { return static_cast<std::uint64_t>(integer(at[i])); };
  row.count = count(4);
  row.sum = number(at[5]);
  row.sumsq = number(at[6]);
  row.m2 = number(at[7]);
  row.abs_sum = number(at[8]);
  row.min = number(at[9]);
  row.max = number(at[10]);
  row.nan = count(11);
  row.posinf = count(12);
  row.neginf = count(13);
  row.zero = count(14);
  row.negative = count(15);
  return row;
}

// [name, role, step, global step, value]
core::ScalarRow scalar_row(const core::FrameHeader& header, const core::Value& value) {
  const core::ValueList& at = list(value);
  if (at.size() != 5) refuse("a row of scalars has 5 parts");
  return {core::name_hash(text(at[0])),
          integer(at[2]),
          integer(at[3]),
          header.time,
          number(at[4]),
          core::meta::make(core::Dtype::f64, role(at[1]))};
}

core::DictionaryType dictionary_type(const std::string& name) {
  using enum core::DictionaryType;
  const std::pair<std::string_view, core::DictionaryType> types[] = {
      {"tensor", tensor}, {"scalar", scalar},       {"series", series}, {"worker", worker},
      {"node", node},     {"span_name", span_name}, {"track", track},   {"span_args", span_args}};
  for (const auto& [known, type] : types) {
    if (known == name) return type;
  }
  refuse("unknown type of a name: " + name);
}

/// What a dictionary frame borrows.
struct Name {
  std::string name;
  std::string attrs;
  std::vector<std::int64_t> shape;
  core::DictionaryEntry entry;
};

std::vector<Name> names_of(const core::Value& record) {
  std::vector<Name> names;
  for (const core::Value& value : list_at(record, "names")) {
    Name& one = names.emplace_back();
    one.name = core::text_at(value, "name");
    if (const core::Value* attrs = core::find(value, "attrs")) one.attrs = core::to_json(*attrs);
    for (const core::Value& size : list_at(value, "shape")) one.shape.push_back(integer(size));
    one.entry.hash = core::name_hash(one.name);
    one.entry.type = dictionary_type(core::text_at(value, "type"));
    if (const core::Value* found = core::find(value, "role")) one.entry.role = role(*found);
    if (const core::Value* found = core::find(value, "dtype")) one.entry.dtype = dtype(*found);
  }
  return names;
}

}  // namespace

core::FrameHeader Feeder::header(const core::Value& record) {
  core::FrameHeader out;
  const std::string run = core::text_at(record, "run");
  out.run = core::run_uid_for("reference", run.empty() ? "case" : run);
  out.attempt = static_cast<std::uint32_t>(integer_at(record, "attempt", 1));
  out.rank = static_cast<std::uint32_t>(integer_at(record, "rank", 0));
  out.world_size = static_cast<std::uint32_t>(integer_at(record, "world", 1));
  const std::string mode = core::text_at(record, "mode");
  out.mode = mode.empty() ? core::Mode::global : code(core::mode_from(mode), mode);
  out.shard = static_cast<std::uint16_t>(integer_at(record, "shard", 0));
  out.shard_count = static_cast<std::uint16_t>(integer_at(record, "shards", 1));
  out.step = integer_at(record, "step", 0);
  out.global_step = integer_at(record, "global", 0);
  out.time = integer_at(record, "time", 0);
  out.sequence = static_cast<std::uint64_t>(integer_at(record, "seq", 0));
  out.incarnation = static_cast<std::uint64_t>(integer_at(record, "incarnation", 1));
  std::string worker = core::text_at(record, "worker");
  if (worker.empty()) worker = "worker_" + std::to_string(out.rank);
  out.worker = core::name_hash(worker);
  out.pass = static_cast<std::uint32_t>(integer_at(record, "pass", 0));
  return out;
}

void Feeder::feed(const core::Value& record) {
  const std::string kind = core::text_at(record, "kind");
  if (kind == "tick") {
    const core::Value* live = core::find(record, "live");
    const bool answer = live == nullptr || live->storage() == core::Value(true).storage();
    host_.engine().tick(core::wall_time(integer_at(record, "time", 0)),
                        [&](std::int32_t) { return answer; });
    return;
  }
  if (kind == "restart") {
    const auto budget = static_cast<std::size_t>(integer_at(record, "budget", 1 << 20));
    return host_.restart(budget, offset_ + 1, core::wall_time(timestamp_));
  }
  ++offset_;
  timestamp_ = integer_at(record, "at", integer_at(record, "time", 0));
  if (kind == "json") {
    const auto refused = json_.decode(
        core::text_at(record, "text"), timestamp_,
        [&](const core::FrameView& frame, const core::FrameBody& body) { hand_over(frame, body); });
    if (refused) refuse(refused->detail);
    return;
  }
  write(header(record), record);
  const auto bytes = writer_.finish();
  if (!bytes) refuse(bytes.error().message);
  const ingest::Decoded decoded = ingest::decode_frame(*bytes);
  if (!decoded) refuse(std::string(decoded.detail()));
  const auto body = ingest::decode_body(decoded.frame());
  if (!body) refuse(body.error().message);
  hand_over(decoded.frame(), *body);
}

void Feeder::hand_over(const core::FrameView& frame, const core::FrameBody& body) {
  const core::WallTime time = core::wall_time(timestamp_);
  const rules::RecordRef ref{"tocsin.telemetry.v1", Host::kStream, Host::kPartition, offset_, time};
  host_.engine().on_frame(frame, body, ref, time);
}

void Feeder::write(const core::FrameHeader& header, const core::Value& record) {
  const std::string kind = core::text_at(record, "kind");
  if (kind == "summary") {
    std::vector<core::SummaryRow> rows;
    for (const core::Value& row : list_at(record, "rows")) rows.push_back(summary_row(row));
    writer_.summary(header, rows);
    return extend(record);
  }
  if (kind == "scalars") {
    std::vector<core::ScalarRow> rows;
    for (const core::Value& row : list_at(record, "rows")) rows.push_back(scalar_row(header, row));
    writer_.scalars(header, rows);
  } else if (kind == "step_end") {
    std::vector<core::StepEndRow> rows;
    for (const core::Value& row : list_at(record, "rows")) {
      const core::ValueList& at = list(row);  // [step, global step, start, end]
      if (at.size() != 4) refuse("a row of a step-end has 4 parts");
      rows.push_back({integer(at[0]), integer(at[1]), integer(at[2]), integer(at[3]), 1, 0});
    }
    writer_.step_ends(header, rows);
  } else if (kind == "system") {
    std::vector<core::SystemRow> rows;
    for (const core::Value& row : list_at(record, "rows")) {
      const core::ValueList& at = list(row);  // [series, time, value]
      if (at.size() != 3) refuse("a row of samples has 3 parts");
      rows.push_back({core::name_hash(text(at[0])), integer(at[1]), number(at[2]), 0});
    }
    writer_.system(header, rows);
  } else if (kind == "span") {
    std::vector<core::SpanRow> rows;
    for (const core::Value& row : list_at(record, "rows")) {
      const core::ValueList& at = list(row);  // [name, track, start, duration, step]
      if (at.size() != 5) refuse("a row of spans has 5 parts");
      rows.push_back({core::name_hash(text(at[0])), core::name_hash(text(at[1])), integer(at[2]),
                      integer(at[3]), integer(at[4]), 0, 0});
    }
    writer_.spans(header, rows);
  } else if (kind == "lifecycle") {
    const core::Value* body = core::find(record, "body");
    writer_.lifecycle(header, body == nullptr ? "{}" : core::to_json(*body));
  } else if (kind == "dictionary") {
    std::vector<Name> names = names_of(record);
    std::vector<core::DictionaryEntry> entries;
    for (Name& one : names) {
      one.entry.name = one.name;
      one.entry.attrs = one.attrs;
      one.entry.dims_bytes = std::as_bytes(std::span(one.shape));
      entries.push_back(one.entry);
    }
    writer_.dictionary(header, entries);
  } else {
    refuse("unknown kind of a record: " + kind);
  }
}

void Feeder::extend(const core::Value& record) {
  for (const core::Value& value : list_at(record, "sparse")) {
    const core::ValueList& at = list(value);  // [statistic, [parameters], [rows], [values]]
    if (at.size() != 4) refuse("a sparse column has 4 parts");
    const std::string name = text(at[0]);
    const auto stat = static_cast<core::SparseStat>(statistic(name, core::StatisticForm::sparse));
    std::vector<std::uint32_t> rows;
    for (const core::Value& row : list(at[2])) {
      rows.push_back(static_cast<std::uint32_t>(integer(row)));
    }
    if (stat == core::SparseStat::digest) {
      std::vector<std::uint64_t> bits;
      for (const core::Value& one : list(at[3])) {
        bits.push_back(static_cast<std::uint64_t>(integer(one)));
      }
      writer_.sparse_bits(stat, rows, bits);
    } else {
      writer_.sparse_column(stat, numbers(at[1]), rows, numbers(at[3]));
    }
  }
  for (const core::Value& value : list_at(record, "vectors")) {
    const core::ValueList& at = list(value);  // [statistic, row, [parameters], [values]]
    if (at.size() != 4) refuse("a vector has 4 parts");
    writer_.vector(statistic(text(at[0]), core::StatisticForm::vector),
                   static_cast<std::uint32_t>(integer(at[1])), numbers(at[2]), numbers(at[3]));
  }
}

}  // namespace tocsin::reference
