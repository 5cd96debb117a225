// Declarations that only the describing pass records, and the tree it records them in.
#include <algorithm>

#include "config/tree.h"

namespace tocsin::config {

SchemaNode::SchemaNode() = default;
SchemaNode::SchemaNode(const SchemaNode&) = default;
SchemaNode::SchemaNode(SchemaNode&&) noexcept = default;
SchemaNode& SchemaNode::operator=(const SchemaNode&) = default;
SchemaNode& SchemaNode::operator=(SchemaNode&&) noexcept = default;
SchemaNode::~SchemaNode() = default;

SchemaNode& SchemaNode::property(std::string_view key) {
  for (auto& [name, node] : properties) {
    if (name == key) return node;
  }
  return properties.emplace_back(Property{std::string(key), {}}).node;
}

void describe_map(SchemaNode& schema, const std::function<void(Reader&)>& read) {
  Reader::Impl impl;
  impl.schema = &schema;
  Reader reader(impl);
  read(reader);
}

void Reader::any(std::string_view key, core::Value& out, std::string_view help,
                 std::string_view schema) {
  if (impl_->schema != nullptr) {
    SchemaNode& node = impl_->schema->property(key);
    node.type = "any";
    node.help = help;
    node.accepted = schema;
    if (!out.is_null()) node.fallback = out;
  }
  const Entry* entry = impl_->take(key);
  if (entry != nullptr) out = to_value(entry->value);
  impl_->effective.push_back({std::string(key), out, entry != nullptr ? "user" : "default"});
}

void Reader::choices(std::string_view key, std::vector<std::string> values) {
  if (impl_->schema != nullptr) impl_->schema->property(key).choices = std::move(values);
}

void Reader::prefixed(const std::vector<std::string>& prefixes,
                      const std::function<void(Reader&)>& read,
                      const std::function<std::string(const std::string&)>& help) {
  if (impl_->schema == nullptr) return;
  SchemaNode part;
  describe_map(part, read);
  for (const auto& [key, node] : part.properties) {
    const std::string said = help(key);
    for (std::size_t i = 0; i < prefixes.size(); ++i) {
      SchemaNode& here = impl_->schema->property(prefixes[i] + key);
      here = node;
      here.help = said;
      here.required = false;
      here.hidden = i > 0 || said.empty();
    }
  }
}

void Reader::only_beside(std::string_view mark, std::vector<std::string> keys,
                         std::vector<std::vector<std::string>> needs) {
  if (impl_->schema == nullptr) return;
  impl_->schema->beside.push_back({std::string(mark), std::move(keys), std::move(needs)});
}

void Reader::recurs(std::string_view path) {
  if (impl_->schema == nullptr) return;
  SchemaNode* at = impl_->schema;
  std::string pointer = "#";
  std::string_view key;
  while (!path.empty()) {
    key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(key.size() + 1, path.size()));
    pointer += "/properties/" + std::string(key);
    at = &at->property(key);
  }
  SchemaNode again;
  again.type = "ref";
  again.accepted = pointer;
  at->item.front().properties.push_back({std::string(key), std::move(again)});
}

void Reader::depends(std::string_view key, std::string_view by, const std::vector<Shape>& shapes) {
  if (impl_->schema == nullptr) return;
  std::vector<std::string> all;
  for (const Shape& shape : shapes) {
    all.insert(all.end(), shape.values.begin(), shape.values.end());
    ShapeNode node{std::string(key), std::string(by), shape.values, {}};
    node.node.type = "object";
    describe_map(node.node, shape.read);
    impl_->schema->shapes.push_back(std::move(node));
  }
  choices(by, std::move(all));
}

}  // namespace tocsin::config
