// Outlines of any bytes: never crash. What has an outline like that of an issue which the decoder takes is
// one that it takes too, and says the same but for what is free; what is decoded otherwise has another one.
// The first two bytes say what is changed in the rest, so that two texts that are nearly alike are compared.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "ingest/ingest.h"

namespace {

using tocsin::core::Issue;
using tocsin::core::OutRecord;
using tocsin::core::RecordView;

void require(bool holds) {
  if (!holds) std::abort();
}

OutRecord issue_record(std::string text) {
  OutRecord record;
  record.topic = "issues";
  record.key = "4e3046d4-8c1f-5278-82e3-ea3595bc5999";
  record.value = std::move(text);
  record.headers = {{"content-type", "application/json"},
                    {"ce_specversion", "1.0"},
                    {"ce_type", std::string(tocsin::ingest::event_type::kIssue)},
                    {"ce_source", "/x"},
                    {"ce_id", "1"}};
  return record;
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

/// Without what a repeat may say anew.
std::string fixed_of(Issue issue) {
  issue.event_id.clear();
  issue.sequence = 0;
  issue.time = issue.starts_at = issue.measured_at = issue.published_at = issue.evaluated_at = {};
  issue.traceparent.clear();
  issue.tracestate.clear();
  issue.summary.clear();
  issue.description.clear();
  issue.recommendation.clear();
  issue.runbook_url.clear();
  for (auto& [name, text] : issue.annotations) text.clear();
  issue.step = issue.global_step = issue.epoch = {};
  auto& seen = issue.evidence;
  seen.observed.value = 0;
  seen.first_seen = {};
  seen.occurrences = 0;
  seen.window.first = seen.window.last = {};
  seen.window.first_time = seen.window.last_time = {};
  seen.window.points = 0;
  seen.affected.hit = seen.affected.evaluated = 0;
  for (auto& [unit, value] : seen.affected.worst) value = 0;
  if (seen.threshold) seen.threshold->value = 0;
  for (auto& ref : seen.data_refs) ref.first = ref.last = 0;
  for (auto& parameter : seen.parameters) parameter.value = {};
  seen.values.clear();
  return tocsin::ingest::issue_json(issue);
}

void changed(std::string& text, std::uint8_t where, std::uint8_t how) {
  static constexpr std::string_view kBytes = "0123456789{}[]\",:.-+eE\\ TZtfn\x01\x04\x7f\xc3";
  if (text.empty()) return;
  const std::size_t at = where * text.size() / 256;
  const char byte = kBytes[how / 3 % kBytes.size()];
  if (how % 3 == 0) text.erase(at, 1);
  if (how % 3 == 1) text.insert(at, 1, byte);
  if (how % 3 == 2) text[at] = byte;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::string text(reinterpret_cast<const char*>(data + 2), size - 2);
  const OutRecord first = issue_record(text);
  const auto outline = tocsin::ingest::outline_of(view_of(first));
  const auto one = tocsin::ingest::decode_event(view_of(first));
  if (outline && one) {
    const Issue& issue = std::get<Issue>(one->event);
    require(!issue.ends_at);
    require(outline->starts_at.has_value() == one->has_starts_at);
    if (outline->starts_at) require(*outline->starts_at == issue.starts_at);
    require(outline->id == issue.event_id && outline->source == issue.source);
  }
  for (unsigned where = data[0], step = 0; step < 8; ++step, where += 37) {
    std::string other = text;
    changed(other, static_cast<std::uint8_t>(where),
            static_cast<std::uint8_t>(data[1] + 11 * step));
    const OutRecord second = issue_record(std::move(other));
    const auto again = tocsin::ingest::outline_of(view_of(second));
    if (!outline || !again || again->rest != outline->rest) continue;
    const auto two = tocsin::ingest::decode_event(view_of(second));
    require(one.has_value() == two.has_value());
    if (!one) continue;
    require(fixed_of(std::get<Issue>(one->event)) == fixed_of(std::get<Issue>(two->event)));
  }
  return 0;
}
