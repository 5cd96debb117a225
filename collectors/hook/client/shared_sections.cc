#include "collectors/hook/client/shared_sections.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "collectors/hook/client/out_place.h"
#include "config/config.h"

namespace tocsin::hook {
namespace {

constexpr std::string_view kTransport = "transport";
constexpr std::string_view kProperty = "transport.kafka.";
constexpr std::string_view kServers = "bootstrap.servers";

bool within(std::string_view path, std::string_view section) {
  return path == section || (path.starts_with(section) &&
                             (path[section.size()] == '.' || path[section.size()] == '['));
}

// Without the property: what else the file says of the cluster holds.
void forget_property(ingest::TransportConfig& transport, std::string_view property) {
  const auto* given = core::as<core::ValueMap>(transport.kafka);
  if (given == nullptr) return;
  core::ValueMap left = *given;
  std::erase_if(left, [&](const auto& one) { return within(property, one.first); });
  transport.kafka = std::move(left);
}

bool names_brokers(const ingest::TransportConfig& transport) {
  const core::Value* servers = core::find(transport.kafka, kServers);
  return servers != nullptr && core::as<std::string>(servers) != nullptr;
}

void keep_what_is_right(const config::Diagnostics& problems, SharedSections& out) {
  for (const config::Diagnostic& one : problems.items()) {
    if (one.grade != config::Grade::error || !within(one.path, kTransport)) continue;
    if (one.path.starts_with(kProperty)) {
      forget_property(out.transport, std::string_view(one.path).substr(kProperty.size()));
    } else if (one.path == kTransport || one.path == "transport.kafka") {
      out.transport.kafka = {};
    } else if (one.path == "transport.journal") {
      out.transport.journal = ingest::TransportConfig().journal;
    }
  }
  if (!out.transport.kafka.is_null() && !names_brokers(out.transport)) out.transport.kafka = {};
  if (CapturePlan::compile(out.capture)) return;
  out.capture.collections.clear();
  if (!CapturePlan::compile(out.capture)) out.capture = {};
}

}  // namespace

void read_place(config::Reader& root, SharedSections& out) {
  root.section("transport",
               "where records travel: a Kafka cluster, or a journal directory on this machine",
               [&](config::Reader& in) {
                 ingest::read(in, out.transport);
                 if (in.describing() || !in.has("journal")) return;
                 if (const auto good = check_directory("journal", out.transport.journal); !good) {
                   in.error("journal", good.error().message);
                 }
               });
  root.section("topics", "names and settings of our topics",
               [&](config::Reader& in) { ingest::read(in, out.topics); });
  root.optional("cluster", out.cluster,
                "name of this installation; a label of every issue and part of event sources");
  root.optional("labels", out.labels, "labels added to every issue");
}

void read_capture(config::Reader& root, SharedSections& out) {
  root.section("capture", "what the training hook captures (read by the hook, checked here)",
               [&](config::Reader& in) {
                 read(in, out.capture);
                 const auto plan = CapturePlan::compile(out.capture);
                 if (!plan && !in.describing()) in.error("collections", plan.error().message);
               });
}

std::vector<std::string> read_shared(const std::string& path,
                                     const config::Environment& environment, SharedSections& out) {
  const auto read = [](config::Reader& root, SharedSections& sections) {
    read_place(root, sections);
    read_capture(root, sections);
  };
  config::Diagnostics problems;
  config::read_own_sections(
      path, environment, [&](config::Reader& root) { read(root, out); }, problems);
  keep_what_is_right(problems, out);
  problems.sort(path);
  std::vector<std::string> warnings;
  for (const config::Diagnostic& one : problems.items()) {
    if (one.grade == config::Grade::error ||
        (one.grade == config::Grade::warning && one.path.empty())) {
      warnings.push_back(config::to_text(one));
    } else if (one.grade == config::Grade::warning && within(one.path, "capture")) {
      out.capture.warnings.push_back(one.message);
    }
  }
  return warnings;
}

}  // namespace tocsin::hook
