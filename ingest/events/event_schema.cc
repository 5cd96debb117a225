#include "ingest/events/event_schema.h"

#include <string_view>
#include <utility>
#include <vector>

#include "core/fields/command.h"
#include "core/fields/describe.h"
#include "core/fields/job.h"
#include "core/fields/notification.h"

namespace tocsin::ingest {
namespace {

std::vector<std::pair<std::string_view, std::vector<core::FieldDoc>>> events() {
  return {{"issue", core::describe_fields<core::Issue>()},
          {"job", core::describe_fields<core::JobEvent>()},
          {"rule", core::describe_fields<core::RuleStatusEvent>()},
          {"command", core::describe_fields<core::Command>()},
          {"ack", core::describe_fields<core::Ack>()},
          {"delivery", core::describe_fields<core::Delivery>()}};
}

}  // namespace

std::string event_schemas() {
  core::ValueMap definitions;
  for (const auto& [name, fields] : events()) {
    const std::string version = std::string(name) + ".v1";
    core::ValueMap schema{{"$id", "https://tocsin.dev/schemas/" + version + ".json"}};
    for (auto& [key, value] : core::json_schema(fields)) {
      schema.emplace_back(key, std::move(value));
    }
    definitions.emplace_back(version, std::move(schema));
  }
  return core::to_json(core::ValueMap{{"$schema", "http://json-schema.org/draft-07/schema#"},
                                      {"title", "data of tocsin's events"},
                                      {"definitions", std::move(definitions)}}) +
         "\n";
}

std::string event_tables() {
  std::string out;
  for (const auto& [name, fields] : events()) {
    out.append("## ").append(name).append("\n\n").append(core::field_table(fields)).append("\n");
  }
  return out;
}

}  // namespace tocsin::ingest
