#include "app/view/simulated_events.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/view/topic_view.h"
#include "core/json.h"
#include "core/topics.h"

namespace tocsin::app {
namespace {

constexpr std::chrono::seconds kSimulatedPatience{60};
constexpr std::size_t kMaxEventLine = 1U << 20;

std::optional<SimulatedEvent> of_event(ingest::DecodedEvent decoded, core::WallTime at) {
  if (auto* issue = std::get_if<core::Issue>(&decoded.event)) {
    if (!decoded.has_starts_at) issue->starts_at = decoded.envelope.time.value_or(at);
    return SimulatedEvent{at, std::move(*issue)};
  }
  if (auto* job = std::get_if<core::JobEvent>(&decoded.event)) {
    return SimulatedEvent{at, std::move(*job)};
  }
  return std::nullopt;
}

std::optional<SimulatedEvent> of_record(const core::RecordView& record) {
  const core::WallTime at = core::wall_time(record.timestamp);
  if (record.topic == core::topic::kRouterControl) {
    ControlEvent control{std::string(record.key.value_or("")), std::nullopt};
    if (!record.tombstone) control.value = std::string(record.text());
    return SimulatedEvent{at, std::move(control)};
  }
  if (record.topic == core::topic::kAcks) {
    auto ack = ingest::decode_ack(record);
    if (!ack) return std::nullopt;
    return SimulatedEvent{at, std::move(*ack)};
  }
  if (record.topic == core::topic::kCommands) {
    auto command = ingest::decode_command(record);
    if (!command || command->action != "stop") return std::nullopt;
    if (!command->command) return SimulatedEvent{at, StopWithdrawn{command->run}};
    return SimulatedEvent{at, std::move(*command->command)};
  }
  auto decoded = ingest::decode_event(record);
  if (!decoded) return std::nullopt;
  return of_event(std::move(*decoded), at);
}

// A bare issue as an event: `tail` prints the data alone.
core::Result<std::string> enveloped(const std::string& line, std::size_t number) {
  auto value = core::parse_json(line, kMaxEventLine);
  if (!value) return value.error();
  if (core::find(*value, "specversion") != nullptr) return line;
  const std::string status = core::text_at(*value, "status");
  std::string time = core::text_at(*value, status == "resolved" ? "ends_at" : "starts_at");
  if (time.empty()) time = core::text_at(*value, "starts_at");
  if (time.empty()) return core::invalid_argument("no starts_at and no time: when was it?");
  return core::to_json(core::ValueMap{{"specversion", "1.0"},
                                      {"type", std::string(ingest::event_type::kIssue)},
                                      {"source", "/simulate"},
                                      {"id", "line-" + std::to_string(number)},
                                      {"time", std::move(time)},
                                      {"data", std::move(*value)}});
}

void in_order(std::vector<SimulatedEvent>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.at < b.at; });
}

}  // namespace

core::Result<std::vector<SimulatedEvent>> events_of_topics(ingest::Transport& transport,
                                                           const EventSpan& span) {
  if (auto reached = transport.ping(std::chrono::seconds(5)); !reached) return reached.error();
  ingest::SourceOptions options;
  options.topics = {core::topic::kIssues, core::topic::kRouterControl, core::topic::kCommands,
                    core::topic::kAcks};
  options.start = ingest::Start::beginning;
  auto source = transport.source(std::move(options));
  if (!source) return source.error();
  std::vector<SimulatedEvent> out;
  const auto read = read_to_end(
      **source,
      [&](const core::RecordView& record) {
        // What people asked of the router before holds in the span too.
        const bool control = record.topic == core::topic::kRouterControl;
        if (!control && !span.holds(core::wall_time(record.timestamp))) return;
        if (auto event = of_record(record)) out.push_back(std::move(*event));
      },
      kSimulatedPatience);
  if (!read) return read.error();
  in_order(out);
  return out;
}

core::Result<std::vector<SimulatedEvent>> events_of_lines(const std::string& text,
                                                          const EventSpan& span) {
  std::vector<SimulatedEvent> out;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string where = "line " + std::to_string(number);
    const auto whole = enveloped(line, number);
    if (!whole) return whole.error().in(where);
    auto decoded = ingest::decode_structured_event(*whole);
    if (!decoded) return decoded.error().in(where);
    if (!decoded->envelope.time) {
      return core::invalid_argument("no time: when was it?").in(where);
    }
    const core::WallTime at = *decoded->envelope.time;
    if (!span.holds(at)) continue;
    if (auto event = of_event(std::move(*decoded), at)) out.push_back(std::move(*event));
  }
  in_order(out);
  return out;
}

}  // namespace tocsin::app
