#include "app/cli/route_cases.h"

#include <iostream>
#include <utility>

#include "config/config.h"
#include "core/value.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

// A label is text; YAML reads some texts as numbers or truths.
std::string label_text(const core::Value& value) {
  if (const auto* text = core::as<std::string>(value)) return *text;
  return value.is_null() ? "" : core::to_json(value);
}

void read_case(config::Reader& in, std::vector<RouteCase>& out) {
  RouteCase one;
  in.optional("name", one.name, "what it shows");
  core::Value labels;
  in.any("labels", labels, "labels of an issue: a map of names to values");
  in.required("receivers", one.receivers, "all receivers that are told; []: nobody");
  std::string at;
  in.optional("at", at,
              "when: 2026-11-28T03:00:00Z, or a date; left out, intervals are not looked at");
  if (!at.empty()) {
    const auto time = route_time(at);
    if (time) {
      one.at = *time;
    } else {
      in.error("at", time.error().message);
    }
  }
  const auto* map = core::as<core::ValueMap>(labels);
  if (map == nullptr || map->empty()) {
    in.error("labels", "expected a map of label names to values, such as {rule: overfit}");
    return;
  }
  for (const auto& [name, value] : *map) one.labels.set(name, label_text(value));
  if (one.name.empty()) one.name = "case " + std::to_string(out.size() + 1);
  out.push_back(std::move(one));
}

}  // namespace

core::Result<core::Labels> labels_from(const std::vector<std::string>& words) {
  core::Labels out;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return core::invalid_argument("\"" + core::visible(word, 100) +
                                    "\" is no label: expected name=value, such as rule=overfit");
    }
    std::string value = word.substr(equals + 1);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    out.set(word.substr(0, equals), value);
  }
  return out;
}

core::Result<core::WallTime> route_time(const std::string& text) {
  auto out = core::parse_rfc3339(text);
  if (!out) out = core::parse_rfc3339(text + "T00:00:00Z");
  if (out) return *out;
  return core::invalid_argument("\"" + core::visible(text, 100) +
                                "\" is no time: expected 2026-11-28T03:00:00Z, "
                                "2026-11-28T03:00:00+01:00 or 2026-11-28");
}

std::optional<std::vector<RouteCase>> read_route_cases(const std::string& path) {
  config::Diagnostics diagnostics;
  std::vector<RouteCase> out;
  const auto document = config::Document::load(path, config::process_environment(), diagnostics);
  if (document) {
    document->read(diagnostics, [&](config::Reader& root) {
      root.list("tests", "labels, and who must be told of them",
                [&](config::Reader& item) { read_case(item, out); });
      if (out.empty() && !diagnostics.has_errors()) root.error("", "no tests");
    });
  }
  for (const auto& item : diagnostics.items()) {
    if (item.grade == config::Grade::error) std::cerr << config::to_text(item) << "\n";
  }
  if (diagnostics.has_errors()) return std::nullopt;
  return out;
}

}  // namespace tocsin::app
