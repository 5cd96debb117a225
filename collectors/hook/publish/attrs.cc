#include "collectors/hook/publish/attrs.h"

#include "collectors/hook/identity/bounded_json.h"

namespace tocsin::hook {

using Json = nlohmann::json;

std::string worker_attrs(std::string_view job, const core::Labels& labels) {
  Json out = {{"job", job}, {"labels", Json::object()}};
  for (const auto& [name, value] : labels.entries()) out["labels"][name] = value;
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string op_type_of(std::string_view given) {
  if (given.empty()) return {};
  const Json attrs = parse_given(given);
  if (!attrs.is_object()) return {};
  const auto at = attrs.find("op_type");
  return at != attrs.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::string name_attrs(std::string_view given, const std::vector<std::string>& collections) {
  Json out = parse_given(given);
  if (!out.is_object()) out = Json::object();
  if (!collections.empty()) out["collections"] = collections;
  if (out.empty()) return {};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tocsin::hook
