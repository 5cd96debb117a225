#include "app/api/openapi.h"

#include <algorithm>
#include <map>

#include "app/api/api_schemas.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

Value reference(const std::string& schema) {
  return ValueMap{{"$ref", "#/components/schemas/" + schema}};
}

Value parameter_schema(const ApiParameter& parameter) {
  switch (parameter.type) {
    case ParameterType::flag:
      return ValueMap{{"type", "boolean"}};
    case ParameterType::integer:
      return ValueMap{
          {"type", "integer"}, {"minimum", parameter.least}, {"maximum", parameter.most}};
    case ParameterType::time:
      return ValueMap{{"type", "string"}, {"format", "date-time"}};
    case ParameterType::choice:
      return ValueMap{{"type", "string"},
                      {"enum", ValueList(parameter.choices.begin(), parameter.choices.end())}};
    case ParameterType::regex:
      return ValueMap{{"type", "string"}, {"format", "regex"}};
    case ParameterType::matcher:
    case ParameterType::text:
      break;
  }
  return ValueMap{{"type", "string"}, {"maxLength", 1024}};
}

Value parameter_value(const ApiParameter& parameter) {
  Value schema = parameter_schema(parameter);
  if (parameter.repeated) schema = ValueMap{{"type", "array"}, {"items", std::move(schema)}};
  ValueMap out{{"name", parameter.name},
               {"in", parameter.in_path ? "path" : "query"},
               {"required", parameter.in_path},
               {"description", parameter.meaning},
               {"schema", std::move(schema)}};
  if (parameter.repeated) out.emplace_back("explode", true);
  return out;
}

Value header_parameter(const char* name, const char* meaning) {
  return ValueMap{{"name", name},
                  {"in", "header"},
                  {"required", false},
                  {"description", meaning},
                  {"schema", ValueMap{{"type", "string"}, {"maxLength", 255}}}};
}

Value content(const std::string& type, const std::string& schema) {
  return ValueMap{{type, ValueMap{{"schema", reference(schema)}}}};
}

Value replies(const ApiRoute& route) {
  ValueMap out;
  std::map<int, ValueMap> contents;  // one status may come in several types
  std::map<int, std::string> meanings;
  for (const ApiReply& reply : route.replies) {
    std::string& meaning = meanings[reply.status];
    meaning += (meaning.empty() ? "" : "; ") + reply.meaning;
    if (!reply.schema.empty())
      contents[reply.status].emplace_back(reply.content_type,
                                          ValueMap{{"schema", reference(reply.schema)}});
  }
  for (auto& entry : meanings) {
    ValueMap one{{"description", std::move(entry.second)}};
    if (ValueMap& types = contents[entry.first]; !types.empty())
      one.emplace_back("content", std::move(types));
    out.emplace_back(std::to_string(entry.first), std::move(one));
  }
  out.emplace_back("default",
                   ValueMap{{"description", "Refused or failed; `detail` says why in one sentence"},
                            {"content", content("application/problem+json", "Problem")}});
  return out;
}

Value security(ApiRole role) {
  if (role == ApiRole::anybody) return ValueList{};
  return ValueList{ValueMap{{"token", ValueList{}}}, ValueMap{{"session", ValueList{}}}};
}

Value operation(const ApiRoute& route) {
  ValueList parameters;
  for (const ApiParameter& parameter : route.parameters)
    parameters.push_back(parameter_value(parameter));
  if (route.method != "GET" && !route.only_reads) {
    parameters.push_back(header_parameter("Idempotency-Key",
                                          "The same key within 24 h gets the first answer again"));
    parameters.push_back(header_parameter(
        "X-Tocsin-CSRF", "`csrf` of GET /api/v1/status; needed with a session or a proxy"));
  }
  ValueMap out{{"summary", route.summary},
               {"x-tocsin-role", std::string(to_string(route.role))},
               {"parameters", std::move(parameters)}};
  for (const ApiBody& body : route.body) {
    ValueMap types;
    for (const std::string& type : body.content_types)
      types.emplace_back(type, ValueMap{{"schema", reference(body.schema)}});
    out.emplace_back("requestBody",
                     ValueMap{{"required", body.needed}, {"content", std::move(types)}});
  }
  out.emplace_back("responses", replies(route));
  out.emplace_back("security", security(route.role));
  return out;
}

std::string lower_case_method(std::string method) {
  for (char& c : method) c = static_cast<char>(c + ('a' - 'A'));
  return method;
}

}  // namespace

Value openapi_document(std::span<const ApiRoute> routes, const std::string& version) {
  ValueMap paths;
  for (const ApiRoute& route : routes) {
    auto found = std::find_if(paths.begin(), paths.end(),
                              [&](const auto& entry) { return entry.first == route.path; });
    if (found == paths.end()) found = paths.insert(paths.end(), {route.path, ValueMap{}});
    ValueMap methods = *core::as<ValueMap>(found->second);
    methods.emplace_back(lower_case_method(route.method), operation(route));
    found->second = std::move(methods);
  }
  return ValueMap{
      {"openapi", "3.0.3"},
      {"info", ValueMap{{"title", "Tocsin"},
                        {"version", version},
                        {"description", "Alarms of ML training: issues, silences, deliveries"}}},
      {"paths", std::move(paths)},
      {"components", ValueMap{{"schemas", api_schemas()},
                              {"securitySchemes",
                               ValueMap{{"token", ValueMap{{"type", "http"}, {"scheme", "bearer"}}},
                                        {"session", ValueMap{{"type", "apiKey"},
                                                             {"in", "cookie"},
                                                             {"name", "tocsin_session"}}}}}}}};
}

}  // namespace tocsin::app
