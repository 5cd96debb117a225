// Declarations → JSON Schema (draft-07) and docs tables.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/number_pattern.h"
#include "config/tree.h"

namespace tocsin::config {
namespace {

using Json = nlohmann::ordered_json;

// What a variable will give is not known here: any value that holds one is let through.
constexpr const char* kVariable = "\\$\\{";

Json or_variable(std::string_view pattern) {
  return "^(" + std::string(pattern) + ")$|" + kVariable;
}

// A number as a text too: YAML 1.1 takes 1e-7 for one.
Json number_schema(const SchemaNode& node) {
  const NumberRange range{node.minimum, node.maximum, node.exclusive_minimum};
  return {{"type", Json::array({node.type, "string"})},
          {"pattern",
           or_variable(node.type == "integer" ? whole_pattern(range) : number_pattern(range))}};
}

// What YAML reads as something else is a text where one is wanted.
Json any_scalar() { return {{"type", Json::array({"string", "number", "boolean"})}}; }

Json scalar_schema(const SchemaNode& node) {
  const std::string& type = node.type;
  if (type == "duration")
    return {{"type", "string"}, {"pattern", or_variable("([0-9.]+(ns|us|ms|s|m|h|d|w))+")}};
  if (type == "bytes") {
    return {{"type", Json::array({"string", "integer"})},
            {"pattern", or_variable("[0-9]+([KMGT]i?B|B)?")}};
  }
  if (type == "secret") {
    Json out = any_scalar();
    out["minLength"] = 1;
    return out;
  }
  if (type == "texts") {
    Json one = any_scalar();
    if (!node.choices.empty()) one = {{"enum", node.choices}};
    return {{"oneOf", Json::array({one, {{"type", "array"}, {"items", one}}})}};
  }
  if (type == "text map") {
    return {{"type", "object"},
            {"additionalProperties", {{"type", Json::array({"string", "number", "boolean"})}}}};
  }
  if (type == "ref") return {{"$ref", node.accepted}};
  if (type == "any") return node.accepted.empty() ? Json::object() : Json::parse(node.accepted);
  if (type == "integer" || type == "number") return number_schema(node);
  if (type == "boolean") {
    return {{"type", Json::array({type, "string"})},
            {"pattern", or_variable("[Tt]rue|TRUE|[Ff]alse|FALSE")}};
  }
  if (!node.choices.empty()) {
    return {{"anyOf", Json::array({{{"enum", node.choices}},
                                   {{"type", "string"}, {"pattern", kVariable}}})}};
  }
  Json out = any_scalar();
  if (node.range == not_empty().expected) out["minLength"] = 1;
  return out;
}

Json to_schema(const SchemaNode& node);

Json object_schema(const SchemaNode& node) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const auto& [key, child] : node.properties) {
    properties[key] = to_schema(child);
    if (child.required) required.push_back(key);
  }
  // A map without any key may be left empty, as long as none is needed.
  const bool nothing_needed = required.empty() && node.exactly_one_of.empty();
  Json out = {{"type", nothing_needed ? Json::array({"object", "null"}) : Json("object")},
              {"additionalProperties", false},
              {"properties", properties}};
  if (!required.empty()) out["required"] = required;
  for (const auto& group : node.exactly_one_of) {
    Json choices = Json::array();
    for (const auto& key : group) choices.push_back({{"required", Json::array({key})}});
    out["allOf"].push_back({{"oneOf", choices}});
  }
  for (const BesideNode& one : node.beside) {
    for (const std::string& key : one.keys) {
      out["dependencies"][key]["anyOf"].push_back({{"required", Json::array({one.mark})}});
    }
    for (const auto& group : one.needs) {
      Json choices = Json::array();
      for (const std::string& key : group) choices.push_back({{"required", Json::array({key})}});
      out["dependencies"][one.mark]["allOf"].push_back({{"oneOf", choices}});
    }
  }
  for (const ShapeNode& shape : node.shapes) {
    const Json is = {{"properties", {{shape.by, {{"enum", shape.values}}}}},
                     {"required", Json::array({shape.by})}};
    out["allOf"].push_back(
        {{"if", is}, {"then", {{"properties", {{shape.key, to_schema(shape.node)}}}}}});
  }
  return out;
}

// A key without a value is one that is not given.
void allow_null(Json& out) {
  const Json null = {{"type", "null"}};
  for (const char* choice : {"oneOf", "anyOf"}) {
    if (out.contains(choice)) return out[choice].push_back(null);
  }
  if (!out.contains("type")) return;
  Json& type = out["type"];
  if (!type.is_array()) type = Json::array({type});
  if (std::find(type.begin(), type.end(), Json("null")) == type.end()) type.push_back("null");
}

Json item_schema(const SchemaNode& node) {
  return node.item.empty() ? Json::object() : to_schema(node.item.front());
}

Json to_schema(const SchemaNode& node) {
  Json out;
  if (node.type == "object") {
    out = object_schema(node);
  } else if (node.type == "array") {
    Json item = item_schema(node);
    if (!node.bare_key.empty()) {
      Json bare = {{"type", "string"}};
      for (const auto& [key, child] : node.item.front().properties) {
        if (key == node.bare_key && !child.choices.empty()) bare["enum"] = child.choices;
      }
      item = {{"oneOf", Json::array({item, bare})}};
    }
    out = {{"type", "array"}, {"items", item}};
  } else if (node.type == "map") {
    const Json one = item_schema(node);
    const Json many = {{"oneOf", Json::array({one, {{"type", "array"}, {"items", one}}})}};
    out = {{"type", "object"}, {"additionalProperties", many}};
  } else {
    out = scalar_schema(node);
    if (node.minimum) out[node.exclusive_minimum ? "exclusiveMinimum" : "minimum"] = *node.minimum;
    if (node.maximum) out["maximum"] = *node.maximum;
    if (!node.fallback.is_null()) out["default"] = Json::parse(core::to_json(node.fallback));
  }
  const bool may_be_empty = node.type != "object" && node.type != "ref" && node.type != "secret";
  if (!node.required && may_be_empty) allow_null(out);
  if (!node.help.empty()) out["description"] = node.help;
  return out;
}

void rows(const SchemaNode& node, const std::string& prefix, std::vector<KeyDoc>& out) {
  for (const auto& [key, child] : node.properties) {
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    if (child.type == "ref" || child.hidden) continue;  // its keys stand in the table already
    if (child.type == "object") {
      rows(child, path, out);
    } else if (child.type == "array" || child.type == "map") {
      const bool list = child.type == "array";
      out.push_back({path, list ? "list" : "map", "", "", child.help, child.required});
      if (!child.item.empty()) rows(child.item.front(), path + (list ? "[]" : ".<name>"), out);
    } else {
      std::string fallback = child.fallback.is_null() ? "" : core::to_json(child.fallback);
      if (fallback.size() >= 2 && fallback.front() == '"')
        fallback = fallback.substr(1, fallback.size() - 2);
      out.push_back({path, child.type, fallback, child.range, child.help, child.required});
    }
  }
}

SchemaNode described(const std::function<void(Reader&)>& read) {
  SchemaNode root;
  root.type = "object";
  describe_map(root, read);
  return root;
}

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.replace(at, 1, "\\|");
  return text;
}

}  // namespace

std::string schema(std::string_view title, const std::function<void(Reader&)>& read) {
  Json out = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}};
  Json body = to_schema(described(read));
  body["properties"]["include"] = {
      {"description",
       "files whose sections are merged into this one (globs, relative to this file)"},
      {"oneOf",
       Json::array({{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", "string"}}}}})}};
  out.update(body);
  return out.dump(2) + "\n";
}

std::vector<KeyDoc> describe(const std::function<void(Reader&)>& read) {
  std::vector<KeyDoc> out;
  rows(described(read), "", out);
  return out;
}

std::string to_markdown(const std::vector<KeyDoc>& keys) {
  std::string out = "| Key | Type | Default | Valid | Meaning |\n|---|---|---|---|---|\n";
  for (const auto& key : keys) {
    out += "| `" + key.path + "` | " + key.type + " | " +
           (key.required           ? "required"
            : key.fallback.empty() ? "–"
                                   : "`" + cell(key.fallback) + "`") +
           " | " + cell(key.range) + " | " + cell(key.help) + " |\n";
  }
  return out;
}

}  // namespace tocsin::config
