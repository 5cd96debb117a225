#include "core/fields/describe.h"

namespace tocsin::core {
namespace {

using Type = FieldDoc::Type;

Value schema_of(const FieldDoc& doc);

ValueList words_of(const FieldDoc& doc) {
  ValueList out;
  out.reserve(doc.words.size() + 1);
  for (const std::string_view word : doc.words) out.emplace_back(std::string(word));
  return out;
}

ValueMap object_schema(const std::vector<FieldDoc>& fields) {
  ValueMap properties;
  ValueList required;
  for (const FieldDoc& doc : fields) {
    properties.emplace_back(doc.name, schema_of(doc));
    if (doc.required) required.emplace_back(doc.name);
  }
  ValueMap out{{"type", "object"}, {"properties", std::move(properties)}};
  if (!required.empty()) out.emplace_back("required", std::move(required));
  return out;
}

/// What a number may be beside one: JSON has no word for these.
Value number_schema() {
  return ValueList{ValueMap{{"type", "number"}},
                   ValueMap{{"enum", ValueList{"NaN", "Infinity", "-Infinity"}}}};
}

ValueMap bare_schema(const FieldDoc& doc) {
  switch (doc.type) {
    case Type::boolean:
      return {{"type", "boolean"}};
    case Type::integer:
      if (doc.natural) return {{"type", "integer"}, {"minimum", 0}};
      return {{"type", "integer"}};
    case Type::number:
      return {{"anyOf", number_schema()}};
    case Type::text:
      if (!doc.words.empty()) return {{"enum", words_of(doc)}};
      return {{"type", "string"}};
    case Type::time:
      return {{"type", "string"}, {"format", "date-time"}};
    case Type::uuid:
      return {{"type", "string"}, {"format", "uuid"}};
    case Type::object: {
      ValueMap out = object_schema(doc.members);
      if (doc.open) out.emplace_back("additionalProperties", ValueMap{{"type", "string"}});
      return out;
    }
    case Type::list: {
      ValueMap out{{"type", "array"}, {"items", schema_of(doc.members.front())}};
      if (doc.words.empty()) return out;
      return {{"anyOf", ValueList{ValueMap{{"enum", words_of(doc)}}, std::move(out)}}};
    }
    case Type::texts:
      return {{"type", "object"}, {"additionalProperties", schema_of(doc.members.front())}};
    case Type::any:
      return {};
  }
  return {};
}

Value schema_of(const FieldDoc& doc) {
  ValueMap out = bare_schema(doc);
  if (doc.nullable && !out.empty()) {
    out = {{"anyOf", ValueList{ValueMap{{"type", "null"}}, std::move(out)}}};
  }
  if (!doc.meaning.empty()) out.emplace_back("description", doc.meaning);
  return out;
}

std::string type_name(const FieldDoc& doc) {
  std::string out;
  switch (doc.type) {
    case Type::boolean:
      out = "boolean";
      break;
    case Type::integer:
      out = "integer";
      break;
    case Type::number:
      out = "number";
      break;
    case Type::text:
      out = doc.words.empty() ? "text" : "word";
      break;
    case Type::time:
      out = "time";
      break;
    case Type::uuid:
      out = "UUID";
      break;
    case Type::object:
    case Type::texts:
      out = "object";
      break;
    case Type::list:
      out = "list";
      break;
    case Type::any:
      out = "any";
      break;
  }
  if (doc.nullable) out += " or null";
  return out;
}

std::string meaning_of(const FieldDoc& doc) {
  std::string out = doc.meaning;
  // A word whose meaning names it needs no list; the others say which there are.
  if (doc.type == Type::text && !doc.words.empty() && out.find(doc.words.front()) == out.npos) {
    out += ": ";
    for (std::size_t i = 0; i < doc.words.size(); ++i) {
      out.append(i == 0 ? "" : ", ").append(doc.words[i]);
    }
  }
  return doc.required ? out + " (required)" : out;
}

void add_rows(const std::vector<FieldDoc>& fields, const std::string& prefix, std::string& out) {
  for (const FieldDoc& doc : fields) {
    const std::string path = prefix + doc.name;
    out.append("| `").append(path).append("` | ").append(type_name(doc)).append(" | ");
    out.append(meaning_of(doc)).append(" |\n");
    if (doc.type == Type::object) add_rows(doc.members, path + ".", out);
    if (doc.type == Type::list) add_rows(doc.members.front().members, path + "[].", out);
    if (doc.type == Type::texts) add_rows(doc.members.front().members, path + ".<name>.", out);
  }
}

}  // namespace

ValueMap json_schema(const std::vector<FieldDoc>& fields) { return object_schema(fields); }

std::string field_table(const std::vector<FieldDoc>& fields) {
  std::string out = "| Field | Type | Meaning |\n|---|---|---|\n";
  add_rows(fields, "", out);
  return out;
}

}  // namespace tocsin::core
