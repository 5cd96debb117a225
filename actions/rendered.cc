#include "actions/rendered.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/value.h"

namespace tocsin::actions {

std::string Rendered::field(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return {};
}

std::string to_json(const Rendered& rendered) {
  core::ValueMap fields;
  for (const auto& [name, value] : rendered.fields) fields.emplace_back(name, value);
  return core::to_json(core::ValueMap{{"content_type", rendered.content_type},
                                      {"body", rendered.body},
                                      {"fields", std::move(fields)}});
}

core::Result<Rendered> parse_rendered(std::string_view json) {
  if (const auto bounds = core::check_json_bounds(json, kMaxRendered); !bounds) {
    return bounds.error().in("the stored message");
  }
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  const auto text = [](const nlohmann::json& value) { return value.is_string(); };
  if (!parsed.is_object() || !parsed.contains("body") || !text(parsed["body"]) ||
      !parsed.contains("content_type") || !text(parsed["content_type"])) {
    return core::invalid_argument("the stored message is not a rendered notification");
  }
  Rendered out;
  out.content_type = parsed["content_type"].get<std::string>();
  out.body = parsed["body"].get<std::string>();
  if (const auto fields = parsed.find("fields"); fields != parsed.end() && fields->is_object()) {
    for (const auto& [name, value] : fields->items()) {
      if (text(value)) out.fields.emplace_back(name, value.get<std::string>());
    }
  }
  return out;
}

}  // namespace tocsin::actions
