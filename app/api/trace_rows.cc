#include "app/api/trace_rows.h"

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "core/topics.h"
#include "ingest/ingest.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueMap;

// "profiler/trace at step 131 of worker_0, 412345 bytes: …" (python/tocsin/traces/profiler.py)
constexpr std::string_view kTraceSent = "profiler/trace at step ";

bool take_words(std::string_view& rest, std::string_view text) {
  if (!rest.starts_with(text)) return false;
  rest.remove_prefix(text.size());
  return true;
}
template <typename Number>
bool take_number(std::string_view& rest, Number& out) {
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
  if (error != std::errc()) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

std::optional<std::int64_t> integer_at(const Value& args, std::string_view name) {
  const auto* members = core::as<ValueMap>(args);
  const Value* found = members == nullptr ? nullptr : core::find(*members, name);
  const auto* number = found == nullptr ? nullptr : core::as<std::int64_t>(*found);
  return number == nullptr ? std::nullopt : std::optional(*number);
}
Value trace_word(const std::string& text) { return text.empty() ? Value() : Value(text); }
Value trace_number(const std::optional<std::int64_t>& number) {
  return number ? Value(*number) : Value();
}

}  // namespace

std::optional<SentTrace> trace_of(const core::Ack& ack) {
  std::string_view rest = ack.reason;
  SentTrace out;
  if (ack.phase != "ended" || !take_words(rest, kTraceSent) || !take_number(rest, out.step) ||
      !take_words(rest, " of "))
    return std::nullopt;
  const std::size_t bytes = rest.find(" bytes");
  const std::size_t comma = rest.rfind(", ", bytes);  // a worker may have one in its name
  if (bytes == std::string_view::npos || comma == std::string_view::npos) return std::nullopt;
  out.worker = rest.substr(0, comma);
  rest.remove_prefix(comma + 2);
  if (!take_number(rest, out.bytes)) return std::nullopt;
  out.command_id = ack.command_id;
  out.node = ack.node;
  out.attempt = ack.attempt;
  out.rank = ack.rank;
  out.at = ack.time;
  out.id =
      std::to_string(ack.attempt) + "-" + std::to_string(ack.rank) + "-" + std::to_string(out.step);
  return out;
}

std::vector<SentTrace> traces_of(const std::vector<insights::KeptRecord>& events) {
  std::map<std::string, SentTrace> by_id;
  std::map<std::string, core::Command> asked;
  for (const insights::KeptRecord& kept : events) {
    const core::RecordView record = kept.view();
    if (record.topic == core::topic::kAcks) {
      const auto ack = ingest::decode_ack(record);
      auto trace = ack ? trace_of(*ack) : std::nullopt;
      if (trace) by_id.insert_or_assign(trace->id, std::move(*trace));
    } else if (record.topic == core::topic::kCommands) {
      auto decoded = ingest::decode_command(record);
      if (decoded && decoded->command)
        asked.insert_or_assign(decoded->command->command_id, std::move(*decoded->command));
    }
  }
  std::vector<SentTrace> out;
  for (auto& [id, trace] : by_id) {
    if (const auto found = asked.find(trace.command_id); found != asked.end()) {
      trace.by = found->second.requested_by;
      trace.first_step = integer_at(found->second.args, "from_step");
      trace.steps = integer_at(found->second.args, "steps");
    }
    out.push_back(std::move(trace));
  }
  std::sort(out.begin(), out.end(), [](const SentTrace& a, const SentTrace& b) {
    return std::tuple(b.attempt, b.first_step.value_or(b.step), a.rank, b.step) <
           std::tuple(a.attempt, a.first_step.value_or(a.step), b.rank, a.step);
  });
  return out;
}

Value trace_row(const SentTrace& trace) {
  return ValueMap{{"id", trace.id},
                  {"command_id", trace.command_id},
                  {"by", trace_word(trace.by)},
                  {"worker", trace.worker},
                  {"rank", std::int64_t{trace.rank}},
                  {"node", trace_word(trace.node)},
                  {"attempt", std::int64_t{trace.attempt}},
                  {"step", trace.step},
                  {"first_step", trace_number(trace.first_step)},
                  {"steps", trace_number(trace.steps)},
                  {"bytes", static_cast<std::int64_t>(trace.bytes)},
                  {"sent_at", core::to_rfc3339(trace.at)}};
}

}  // namespace tocsin::app
