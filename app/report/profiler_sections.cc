// What profiler_report sums up, and overall_system_usage and overall_framework_metrics, by themselves
// or as part of it.
#include <algorithm>

#include "app/report/sections.h"

namespace tocsin::app::report {
namespace {

constexpr std::size_t kMostShares = 8;  // further parts are bars
constexpr std::size_t kMostBars = 40;

double number_at(const core::ValueMap& map, std::string_view name) {
  return number_of(core::find(map, name)).value_or(0);
}

/// {"name": percent, …}
std::vector<std::pair<std::string, double>> parts_of(const core::ValueMap& map) {
  std::vector<std::pair<std::string, double>> out;
  for (const auto& [name, value] : map) out.emplace_back(name, number_of(&value).value_or(0));
  return out;
}

void tell_parts(const core::ValueMap& percent, Section& out) {
  auto parts = parts_of(percent);
  if (parts.empty()) return;
  if (parts.size() <= kMostShares) return out.add(Shares{std::move(parts)});
  if (parts.size() > kMostBars) parts.resize(kMostBars);
  out.add(BarChart{" %", std::move(parts)});
}

BoxChart::Box box_of(const std::string& name, const core::ValueMap& spread) {
  return {name,
          number_at(spread, "min"),
          number_at(spread, "p05"),
          number_at(spread, "p50"),
          number_at(spread, "p95"),
          number_at(spread, "max")};
}

void tell_means(const core::ValueMap& of, const std::string& whose, Section& out) {
  if (const auto* means = core::as<std::string>(core::find(of, "means"))) {
    out.add(Paragraph{whose.empty() ? *means : whose + ": " + *means, true});
  }
}

Section time_section(const core::ValueMap& summary) {
  Section out{"Time of the run", {}};
  const auto& run = map_at(summary, "run");
  if (run.empty()) return out;
  Table table{{"", "seconds", "percent"}, {}};
  Shares shares;
  table.rows.push_back({"whole run", number_text(number_at(run, "seconds")), "100"});
  for (const auto& [name, words] : {std::pair{"initialization", "before the first step"},
                                    {"training_loop", "training loop"},
                                    {"finalization", "after the last step"}}) {
    const auto& part = map_at(run, name);
    if (part.empty()) continue;
    table.rows.push_back(
        {words, number_text(number_at(part, "seconds")), number_text(number_at(part, "percent"))});
    shares.parts.emplace_back(words, number_at(part, "percent"));
  }
  out.add(Paragraph{"From " + core::text_at(run, "start") + " to " + core::text_at(run, "end") +
                    (shares.parts.empty() ? "; no step was seen." : ".")});
  if (!shares.parts.empty()) {
    if (map_at(run, "initialization").size() > 1 &&
        number_at(map_at(run, "initialization"), "seconds") >
            number_at(map_at(run, "training_loop"), "seconds")) {
      out.add(
          Paragraph{"More time went by before the first step than in the training loop.", true});
    }
    out.add(std::move(shares));
  }
  out.add(std::move(table));
  return out;
}

Section system_section(const core::ValueMap& usage) {
  Section out{"System usage", {}};
  Table table{{"node", "metric", "unit", "max", "p99", "p95", "p50", "min"}, {}};
  for (const auto& [node, value] : map_at(usage, "nodes")) {
    const auto* metrics = core::as<core::ValueMap>(value);
    if (metrics == nullptr) continue;
    tell_means(*metrics, node, out);
    for (const auto& [metric, spread] : *metrics) {
      const auto* of = core::as<core::ValueMap>(spread);
      if (of == nullptr) continue;
      std::vector<std::string> row{node, metric, core::text_at(*of, "unit")};
      for (const char* name : {"max", "p99", "p95", "p50", "min"}) {
        row.push_back(number_text(number_at(*of, name)));
      }
      table.rows.push_back(std::move(row));
    }
  }
  if (!table.rows.empty()) out.add(std::move(table));
  if (const auto* more = core::find(usage, "more_nodes")) {
    out.add(Paragraph{cell_text(*more) + " more nodes are not listed."});
  }
  return out;
}

Section framework_section(const core::ValueMap& metrics) {
  Section out{"What the time went into", {}};
  const auto& steps = map_at(metrics, "steps");
  if (!steps.empty()) {
    out.add(
        Paragraph{"Steps, " + number_text(number_at(steps, "seconds")) + " s over all workers"});
    tell_means(steps, "", out);
    tell_parts(map_at(steps, "percent"), out);
  }
  for (const auto& [track, value] : map_at(metrics, "tracks")) {
    const auto* of = core::as<core::ValueMap>(value);
    if (of == nullptr) continue;
    const auto& percent = map_at(*of, "percent");
    std::string words = track + ", " + number_text(number_at(*of, "seconds")) + " s";
    if (!percent.empty()) {
      words += "; most costly: " + percent.front().first + ", " +
               number_text(number_of(&percent.front().second).value_or(0)) + " %";
    }
    out.add(Paragraph{std::move(words)});
    tell_means(*of, track, out);
    tell_parts(percent, out);
  }
  return out;
}

Section step_section(const core::ValueMap& summary) {
  Section out{"Step durations", {}};
  BoxChart boxes{"s", {}};
  for (const auto& [mode, spread] : map_at(summary, "step_seconds")) {
    const auto* of = core::as<core::ValueMap>(spread);
    if (of != nullptr) {
      boxes.boxes.push_back(
          box_of(mode + " (" + number_text(number_at(*of, "count")) + " steps)", *of));
    }
  }
  if (!boxes.boxes.empty()) out.add(std::move(boxes));
  return out;
}

Section gpu_section(const core::ValueMap& summary) {
  Section out{"GPUs", {}};
  for (const auto& [series, words] :
       {std::pair{"utilization_percent", "utilisation"}, {"memory_percent", "memory"}}) {
    BoxChart boxes{"%", {}};
    for (const auto& [device, value] : map_at(summary, "gpus")) {
      const auto* of = core::as<core::ValueMap>(value);
      if (of == nullptr || map_at(*of, series).empty()) continue;
      const auto box = box_of(device, map_at(*of, series));
      if (box.p95 - box.p05 > 50) {
        out.add(Paragraph{device + ": " + words + " fluctuates, p05 " + number_text(box.p05) +
                          " %, p95 " + number_text(box.p95) + " %"});
      }
      boxes.boxes.push_back(box);
    }
    if (boxes.boxes.empty()) continue;
    out.add(Paragraph{std::string("GPU ") + words});
    out.add(std::move(boxes));
  }
  return out;
}

Section findings_section(const core::ValueMap& summary) {
  Section out{"Profiler rules", {}};
  const auto& rules = map_at(summary, "rules");
  if (rules.empty()) return out;
  Table table{{"rule", "status", "triggered", "issues", "data points", "what it looks for"}, {}};
  std::string most;
  for (const auto& [rule, value] : rules) {
    const auto* of = core::as<core::ValueMap>(value);
    if (of == nullptr) continue;
    const double triggered = number_at(*of, "triggered");
    if (most.empty() && triggered > 0) {
      most = rule + " was triggered most often: " + number_text(triggered) + " of " +
             number_text(number_at(*of, "data_points")) + " data points.";
    }
    table.rows.push_back({rule, core::text_at(*of, "status"), number_text(triggered),
                          number_text(number_at(*of, "violations")),
                          number_text(number_at(*of, "data_points")),
                          core::text_at(*of, "description")});
  }
  out.add(Paragraph{most.empty() ? "None of them was triggered." : most});
  out.add(std::move(table));
  Group quiet{"parameters of those that found nothing", {}, true};
  for (const auto& [rule, value] : rules) {
    const auto* of = core::as<core::ValueMap>(value);
    if (of == nullptr) continue;
    const auto& details = map_at(*of, "details");
    Section inner;
    if (!details.empty()) {
      if (const std::string advice = core::text_at(*of, "recommendation"); !advice.empty()) {
        inner.add(Paragraph{"→ " + advice});
      }
      for (const auto& [unit, found] : details) {
        const auto* map = core::as<core::ValueMap>(found);
        if (map == nullptr) continue;
        inner.add(Paragraph{unit + ": " + core::text_at(*map, "summary"), true});
        core::ValueMap rest;
        std::copy_if(map->begin(), map->end(), std::back_inserter(rest),
                     [](const auto& entry) { return entry.first != "summary"; });
        tell(rest, inner);
      }
    }
    Section parameters;
    tell(map_at(*of, "parameters"), parameters);
    if (details.empty()) {
      quiet.blocks.push_back(Block{Group{rule, std::move(parameters.blocks), true}});
      continue;
    }
    inner.add(Group{"parameters", std::move(parameters.blocks), true});
    out.add(Group{rule, std::move(inner.blocks)});
  }
  if (!quiet.blocks.empty()) out.add(std::move(quiet));
  return out;
}

/// As part of the report, or by itself.
const core::ValueMap& part(const RunReport& report, const core::ValueMap& summary,
                           std::string_view rule) {
  if (const auto& inside = map_at(summary, rule); !inside.empty()) return inside;
  static const core::ValueMap kNone;
  const auto* alone = summary_of(report, rule);
  return alone == nullptr ? kNone : *alone;
}

}  // namespace

std::vector<Section> profiler_sections(const RunReport& report) {
  static const core::ValueMap kNone;
  const auto* told = summary_of(report, "profiler_report");
  const core::ValueMap& summary = told == nullptr ? kNone : *told;
  return {time_section(summary),
          system_section(part(report, summary, "overall_system_usage")),
          framework_section(part(report, summary, "overall_framework_metrics")),
          step_section(summary),
          gpu_section(summary),
          findings_section(summary)};
}

}  // namespace tocsin::app::report
