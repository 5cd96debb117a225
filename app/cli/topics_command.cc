#include "app/cli/topics_command.h"

#include <algorithm>
#include <iostream>

#include "app/app.h"
#include "app/config/transport_settings.h"
#include "app/process/exit_code.h"
#include "core/system_clock.h"
#include "core/topic_settings.h"

namespace tocsin::app {
namespace {

using core::TopicDifference;

/// A topic of the plan beside what is there.
struct Line {
  ingest::TopicState state;
  std::vector<TopicDifference> differences;
};

int failed(const core::Error& error) {
  std::cerr << "tocsin: " << error.message << "\n";
  return exit_code(error);
}

int export_plan(const TransportSettings& config, const std::string& format) {
  const std::string bootstrap = core::text_at(config.transport.kafka, "bootstrap.servers");
  const auto text = ingest::export_topics(format, config.topics,
                                          bootstrap.empty() ? "localhost:9092" : bootstrap);
  if (!text) {
    std::cerr << "tocsin: " << text.error().message << "\n";
    return kUsage;
  }
  std::cout << *text;
  return kOk;
}

const char* word(TopicDifference::Grade grade) {
  switch (grade) {
    case TopicDifference::Grade::danger:
      return "DANGER";
    case TopicDifference::Grade::warning:
      return "warning";
    case TopicDifference::Grade::note:
      return "note";
  }
  return "";
}

bool fits(const Line& line) {
  return line.state.partitions && std::all_of(line.differences.begin(), line.differences.end(),
                                              [](const TopicDifference& one) {
                                                return one.grade == TopicDifference::Grade::note;
                                              });
}

const char* verdict(const Line& line) {
  if (!line.state.partitions) return "missing";
  return fits(line) ? "ok" : "differs";
}

core::Value line_value(const Line& line) {
  const ingest::TopicState& state = line.state;
  core::ValueMap settings;
  for (const auto& [key, value] : state.wanted.settings) settings.emplace_back(key, value);
  core::ValueList differences;
  for (const TopicDifference& one : line.differences) {
    differences.push_back(core::ValueMap{{"grade", word(one.grade)},
                                         {"key", one.key},
                                         {"found", one.found},
                                         {"wanted", one.wanted},
                                         {"cost", one.cost},
                                         {"safe", one.safe}});
  }
  return core::ValueMap{
      {"topic", state.wanted.full_name},
      {"state", verdict(line)},
      {"partitions", std::int64_t{state.wanted.partitions}},
      {"has", state.partitions ? core::Value(std::int64_t{*state.partitions}) : core::Value()},
      {"settings", std::move(settings)},
      {"differences", std::move(differences)}};
}

void show(const Line& line) {
  const ingest::TopicState& state = line.state;
  std::cout << (fits(line)         ? "ok       "
                : state.partitions ? "differs  "
                                   : "missing  ")
            << state.wanted.full_name << "  partitions " << state.wanted.partitions;
  if (state.partitions && *state.partitions != state.wanted.partitions) {
    std::cout << " (has " << *state.partitions << ")";
  }
  std::cout << "  replication " << state.wanted.replication;
  for (const auto& [key, value] : state.wanted.settings) std::cout << "  " << key << "=" << value;
  std::cout << "\n";
  for (const TopicDifference& one : line.differences) {
    std::cout << "           " << word(one.grade) << ": " << one.key << " is " << one.found
              << ", wanted " << one.wanted << ": " << one.cost << ". "
              << (one.safe ? "`tocsin topics apply` sets it"
                           : "Tocsin does not change it: " + one.kept)
              << ".\n";
  }
}

core::Result<std::vector<Line>> compared(ingest::Transport& transport) {
  const auto states = transport.topic_states();
  if (!states) return states.error();
  std::vector<Line> out;
  for (const ingest::TopicState& state : *states) out.push_back({state, {}});
  auto* settings = dynamic_cast<core::TopicSettings*>(&transport);
  if (settings == nullptr) return out;  // a journal
  const auto comparisons = settings->compare();
  if (!comparisons) return comparisons.error();
  for (Line& line : out) {
    for (const core::TopicComparison& one : *comparisons) {
      if (one.topic == line.state.wanted.full_name) line.differences = one.differences;
    }
  }
  return out;
}

core::Status apply(ingest::Transport& transport) {
  if (auto status = transport.ensure_topics(); !status) return status;
  auto* settings = dynamic_cast<core::TopicSettings*>(&transport);
  if (settings == nullptr) return core::ok();
  const auto comparisons = settings->compare();
  if (!comparisons) return comparisons.error();
  return settings->apply(*comparisons);
}

/// `creates`: the missing ones are made first.
int compare_topics(const TopicsOptions& options, bool creates) {
  const auto config = transport_settings(options.config_file, options.out);
  if (!config) return failed(config.error());
  core::SystemClock clock;
  const auto log = make_log({"warn", "logfmt"}, clock);
  core::NullTelemetry telemetry;
  auto topics = config->topics;
  topics.create = topics.create || creates;
  auto transport = ingest::Transport::open(config->transport, topics, *log, telemetry);
  if (!transport) return failed(transport.error());
  if (creates) {
    if (const auto status = apply(**transport); !status) return failed(status.error());
  }
  const auto lines = compared(**transport);
  if (!lines) return failed(lines.error());
  if (options.format == "json") {
    core::ValueList list;
    for (const Line& line : *lines) list.push_back(line_value(line));
    std::cout << core::to_json(core::Value(std::move(list))) << "\n";
  } else {
    for (const Line& line : *lines) show(line);
  }
  return std::all_of(lines->begin(), lines->end(), fits) ? kOk : kFailed;
}

}  // namespace

int topics_plan(const TopicsOptions& options) { return compare_topics(options, false); }

int topics_apply(const TopicsOptions& options) { return compare_topics(options, true); }

int topics_export(const TopicsOptions& options) {
  const auto config = transport_settings(options.config_file, options.out);
  return config ? export_plan(*config, options.format) : failed(config.error());
}

}  // namespace tocsin::app
