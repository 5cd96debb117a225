// What a Document owns, and what a Reader works on. Internal to config.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/node.h"

namespace tocsin::config {

struct Document::Tree {
  Node root;
};

struct Property;
struct ShapeNode;

/// Reader::only_beside().
struct BesideNode {
  std::string mark;
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> needs;
};

/// One declared key, as a tree: what JSON Schema and the docs tables are made of.
struct SchemaNode {
  std::string type;  // boolean integer number string duration bytes secret list-of-text map-of-text
                     // any object array map ref
  std::string help;
  core::Value fallback;
  std::string range;
  std::optional<double> minimum;
  std::optional<double> maximum;
  bool exclusive_minimum = false;
  bool required = false;
  bool hidden = false;  // in tables: another spelling stands there
  std::vector<std::string> choices;
  std::vector<Property> properties;
  std::vector<SchemaNode> item;  // 0 or 1: of a list or map
  std::string bare_key;
  std::vector<std::vector<std::string>> exactly_one_of;
  std::string accepted;           // of any: JSON Schema as text; of ref: where it points
  std::vector<ShapeNode> shapes;  // of an object: keys that depend on others
  std::vector<BesideNode> beside;

  SchemaNode& property(std::string_view key);

  // Defined where the type is complete: Clang 14 else asks pair<…, SchemaNode> about it too early.
  SchemaNode();
  SchemaNode(const SchemaNode&);
  SchemaNode(SchemaNode&&) noexcept;
  SchemaNode& operator=(const SchemaNode&);
  SchemaNode& operator=(SchemaNode&&) noexcept;
  ~SchemaNode();
};

struct Property {
  std::string key;
  SchemaNode node;
};

struct ShapeNode {
  std::string key;
  std::string by;
  std::vector<std::string> values;
  SchemaNode node;
};

struct Reader::Impl {
  // Parsing: the map being read. Both null when describing.
  const Node* node = nullptr;
  Diagnostics* diagnostics = nullptr;
  std::string path;
  std::vector<std::string> known;  // in the order asked
  std::set<std::string, std::less<>> asked;
  std::vector<core::Parameter> effective;
  // Describing: where declarations go.
  SchemaNode* schema = nullptr;

  const Entry* take(std::string_view key);
  std::string path_of(std::string_view key) const;
  void report(const Location& location, Grade grade, std::string_view key,
              std::string message) const;
  void report_unknown_keys() const;
};

/// Records what `read` declares.
void describe_map(SchemaNode& schema, const std::function<void(Reader&)>& read);

}  // namespace tocsin::config
