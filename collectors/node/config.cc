// Section `collect`: its own keys, and for each collector a section that the collector reads.
#include <algorithm>

#include "collectors/node/descriptors.h"
#include "core/text.h"

namespace tocsin::collectors {
namespace {

std::vector<std::string> names_of(std::span<const CollectorDescriptor> table) {
  std::vector<std::string> names;
  for (const CollectorDescriptor& each : table) names.emplace_back(each.name);
  return names;
}

// Those that this build has, each once.
std::vector<std::string> known(const config::Reader& in, const std::vector<std::string>& named,
                               std::span<const CollectorDescriptor> table) {
  std::vector<std::string> kept;
  for (const std::string& name : named) {
    if (find_collector(name, table) == nullptr) {
      in.error("collectors", unknown_collector(name, table));
    } else if (std::find(kept.begin(), kept.end(), name) == kept.end()) {
      kept.push_back(name);
    }
  }
  return kept;
}

void read_collector(config::Reader& in, const CollectorDescriptor& descriptor, Config& cfg) {
  CollectorSettings settings{descriptor.every, nullptr};
  in.optional("every", settings.every, config::at_least(core::Duration{}),
              "read no more often than this; 0s: in every sweep");
  settings.own = descriptor.read(in);
  if (in.describing()) return;
  const std::string name(descriptor.name);
  if (std::find(cfg.collectors.begin(), cfg.collectors.end(), name) == cfg.collectors.end()) {
    in.warning("", "`collectors` does not name " + name + ", so this is not used");
  }
  cfg.settings.insert_or_assign(name, std::move(settings));
}

// Nothing is configured: every key keeps its default.
std::shared_ptr<const CollectorConfig> defaults_of(const CollectorDescriptor& descriptor) {
  std::shared_ptr<const CollectorConfig> out;
  config::Diagnostics none;
  const auto empty = config::Document::parse(
      "{}", "", [](const std::string&) { return std::nullopt; }, none);
  empty->read(none, [&](config::Reader& in) { out = descriptor.read(in); });
  return out;
}

}  // namespace

const CollectorDescriptor* find_collector(std::string_view name,
                                          std::span<const CollectorDescriptor> table) {
  for (const CollectorDescriptor& each : table) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::string unknown_collector(std::string_view name, std::span<const CollectorDescriptor> table) {
  std::string message = "no collector is called \"" + std::string(name) + "\"";
  const std::string nearest = core::nearest(name, names_of(table));
  if (!nearest.empty()) message += "; did you mean \"" + nearest + "\"?";
  return message;
}

CollectorSettings settings_of(const CollectorDescriptor& descriptor, const Config& config) {
  const auto given = config.settings.find(std::string(descriptor.name));
  if (given != config.settings.end()) return given->second;
  return {descriptor.every, defaults_of(descriptor)};
}

void read(config::Reader& in, Config& cfg, std::span<const CollectorDescriptor> table) {
  in.optional("interval", cfg.interval, config::between(kShortestInterval, kLongestInterval),
              "time between two sweeps");
  in.optional("collectors", cfg.collectors, "what a sweep reads");
  in.choices("collectors", names_of(table));
  in.optional("node", cfg.node, "name of this node; the host name if empty");
  in.optional("proc_root", cfg.proc_root, config::not_empty(),
              "where procfs is mounted, such as /host/proc in a container");
  in.optional("sys_root", cfg.sys_root, config::not_empty(), "where sysfs is mounted");
  if (!in.describing()) cfg.collectors = known(in, cfg.collectors, table);
  for (const CollectorDescriptor& descriptor : table) {
    in.section(descriptor.name, descriptor.help,
               [&](config::Reader& own) { read_collector(own, descriptor, cfg); });
  }
}

std::string series_tables() {
  std::string out;
  for (const CollectorDescriptor& descriptor : builtin_collectors()) {
    out.append("## ").append(descriptor.name).append("\n\n| Series | Unit |\n|---|---|\n");
    for (const Gathered& each : descriptor.gathers) {
      out.append("| `").append(each.metric);
      if (!each.attributes.empty()) out.append("{").append(each.attributes).append("}");
      out.append("` | ").append(each.unit).append(each.counter ? ", counter |\n" : " |\n");
    }
    out += "\n";
  }
  return out;
}

}  // namespace tocsin::collectors
