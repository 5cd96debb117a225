// Files to trees: YAML syntax, duplicate keys, includes, environment substitution.
#include <glob.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "config/node.h"
#include "config/tree.h"
#include "config/yaml_hints.h"
#include "core/text.h"

namespace tocsin::config {
namespace {

constexpr int kMaxDepth = 64;              // a cyclic alias would never end
constexpr std::size_t kMaxNodes = 200000;  // an alias bomb would fill the memory
constexpr std::size_t kMaxFileBytes = 16U << 20;

struct Converter {
  const std::string& file;
  Diagnostics& diagnostics;
  std::shared_ptr<const std::string> source;
  const Lines lines{*source};
  std::size_t nodes = 0;
  bool refused = false;

  Location location_of(const YAML::Mark& mark) const {
    return mark.is_null() ? Location{file, 0, 0} : Location{file, mark.line + 1, mark.column + 1};
  }

  void refuse(const Location& location, const std::string& message) {
    if (!refused) diagnostics.add({location, Grade::error, "", message});
    refused = true;
  }

  Node convert(const YAML::Node& from, int depth) {
    Node out;
    out.location = location_of(from.Mark());
    if (depth > kMaxDepth) {
      refuse(out.location, "nested deeper than 64 levels, or an alias that contains itself");
    } else if (++nodes > kMaxNodes) {
      refuse(out.location, "more than 200000 values once aliases are expanded");
    }
    if (refused) return out;
    if (from.IsScalar()) {
      out.kind = Node::Kind::scalar;
      out.text = from.Scalar();
      out.source = source;
      out.quoted = from.Tag() == "!";
      if (out.quoted && !lines.quote_is_closed(out.location)) {
        refuse(out.location,
               "not valid YAML: a quote is never closed, so the rest of the file is part of this "
               "text; add the closing quote where it ends");
      }
      if (!out.quoted && (out.text == "null" || out.text == "~" || out.text.empty())) {
        out.kind = Node::Kind::null;
      }
    } else if (from.IsSequence()) {
      out.kind = Node::Kind::list;
      for (const auto& item : from) out.items.push_back(convert(item, depth + 1));
    } else if (from.IsMap()) {
      convert_map(from, depth, out);
    }
    return out;
  }

  void convert_map(const YAML::Node& from, int depth, Node& out) {
    out.kind = Node::Kind::map;
    std::vector<YAML::Node> merged;
    for (const auto& pair : from) {
      const Location key_location = location_of(pair.first.Mark());
      if (!pair.first.IsScalar()) {
        refuse(key_location, "a key must be plain text");
        return;
      }
      const std::string& key = pair.first.Scalar();
      if (is_merge(pair.first, pair.second)) {
        merged.push_back(pair.second);
        continue;
      }
      if (const Entry* first = out.find(key)) {
        diagnostics.add({key_location, Grade::error, key,
                         "duplicate key \"" + key + "\"; first given at line " +
                             std::to_string(first->key_location.line)});
        continue;
      }
      out.entries.push_back({key, key_location, convert(pair.second, depth + 1)});
      // A value that is not there stands, to the YAML library, at what comes next.
      Node& value = out.entries.back().value;
      if (pair.second.IsNull()) value.location = key_location;
    }
    for (const YAML::Node& maps : merged) merge(maps, depth, out);
  }

  // YAML's merge key: `<<: *defaults`, or a list of such.
  static bool is_merge(const YAML::Node& key, const YAML::Node& value) {
    if (key.Scalar() != "<<" || key.Tag() == "!") return false;
    return value.IsMap() ||
           (value.IsSequence() &&
            std::all_of(value.begin(), value.end(), [](const auto& item) { return item.IsMap(); }));
  }

  // What the map says itself counts before what is merged, and of that what comes first.
  void merge(const YAML::Node& maps, int depth, Node& out) {
    if (maps.IsSequence()) {
      for (const auto& item : maps) merge(item, depth, out);
      return;
    }
    Node more = convert(maps, depth + 1);
    for (Entry& entry : more.entries) {
      if (out.find(entry.key) == nullptr) out.entries.push_back(std::move(entry));
    }
  }
};

Location location_at(const std::string& file, std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, byte);
  const std::size_t line = before.rfind('\n');
  return {file, 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n')),
          static_cast<int>(line == std::string_view::npos ? byte : byte - line - 1) + 1};
}

std::optional<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  if (std::filesystem::file_size(path, error) > kMaxFileBytes || error) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return std::nullopt;
  return text.str();
}

// Why read_file() gave nothing, with the file of a like name that is there.
std::string unreadable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(path, error)) {
    return "cannot read " + path + ": not a regular file, not readable, or over 16 MiB";
  }
  std::string near;
  for (const char* suffix : {".yaml", ".yml"}) {
    const fs::path other = fs::path(path).replace_extension(suffix);
    if (fs::is_regular_file(other, error)) near = other.string();
  }
  return "there is no file " + path + (near.empty() ? "" : "; did you mean " + near + "?");
}

// One `${…}` starting behind the `${`; moves `at` behind the `}`.
std::string expand_one(const Node& node, std::size_t& at, const Environment& environment,
                       Diagnostics& diagnostics) {
  const std::size_t close = node.text.find('}', at);
  if (close == std::string::npos) {
    diagnostics.add({node.location, Grade::error, "",
                     "\"${\" without a closing \"}\" (write $${ for a literal one)"});
    at = node.text.size();
    return {};
  }
  const std::string inner = node.text.substr(at, close - at);
  at = close + 1;
  const std::size_t split = inner.find(":-");
  const std::string name = inner.substr(0, split);
  if (const auto value = environment(name);
      value && (!value->empty() || split == std::string::npos)) {
    return *value;
  }
  if (split != std::string::npos) return inner.substr(split + 2);
  diagnostics.add(
      {node.location, Grade::error, "",
       "environment variable " + name + " is not set (give a default with ${" + name + ":-…})"});
  return {};
}

// Loads one file and what it includes into `root`, merging lists and refusing double keys.
class Includer {
 public:
  Includer(const Environment& environment, Diagnostics& diagnostics)
      : environment_(environment), diagnostics_(diagnostics) {}

  std::optional<Node> load(const std::string& path, const Location& from) {
    std::error_code error;
    const std::string real = std::filesystem::weakly_canonical(path, error).string();
    if (std::find(open_.begin(), open_.end(), real) != open_.end()) {
      std::string chain;
      for (const auto& file : open_) chain += file + " → ";
      diagnostics_.add({from, Grade::error, "include", "include cycle: " + chain + real});
      return std::nullopt;
    }
    const auto text = read_file(path);
    if (!text) {
      diagnostics_.add({from, Grade::error, "", unreadable(path)});
      return std::nullopt;
    }
    auto root = parse_yaml(*text, path, diagnostics_);
    if (!root) return std::nullopt;
    substitute(*root, environment_, diagnostics_);
    open_.push_back(real);
    merge_includes(*root, path);
    open_.pop_back();
    return root;
  }

  void merge_includes(Node& root, const std::string& path) {
    const auto at = std::find_if(root.entries.begin(), root.entries.end(),
                                 [](const Entry& entry) { return entry.key == "include"; });
    if (at == root.entries.end()) return;
    const Node patterns = at->value;
    root.entries.erase(at);
    std::vector<const Node*> list;
    if (patterns.kind == Node::Kind::scalar) list.push_back(&patterns);
    for (const Node& item : patterns.items) list.push_back(&item);
    for (const Node* pattern : list) include(root, *pattern, path);
  }

 private:
  void include(Node& root, const Node& pattern, const std::string& path) {
    std::filesystem::path full = pattern.text;
    if (full.is_relative()) full = std::filesystem::path(path).parent_path() / full;
    glob_t found{};
    const int status = glob(full.c_str(), 0, nullptr, &found);
    std::vector<std::string> files;
    for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i)
      files.emplace_back(found.gl_pathv[i]);
    globfree(&found);
    if (files.empty()) {
      const bool wild = pattern.text.find_first_of("*?[") != std::string::npos;
      diagnostics_.add({pattern.location, wild ? Grade::warning : Grade::error, "include",
                        "no file matches \"" + full.string() + "\""});
    }
    for (const auto& file : files) {
      if (auto part = load(file, pattern.location)) merge(root, std::move(*part));
    }
  }

  void merge(Node& root, Node part) {
    for (Entry& entry : part.entries) {
      const auto same = std::find_if(root.entries.begin(), root.entries.end(),
                                     [&](const Entry& other) { return other.key == entry.key; });
      if (same == root.entries.end()) {
        root.entries.push_back(std::move(entry));
      } else if (same->value.kind == Node::Kind::list && entry.value.kind == Node::Kind::list) {
        std::move(entry.value.items.begin(), entry.value.items.end(),
                  std::back_inserter(same->value.items));
      } else if (same->value.kind == Node::Kind::map && entry.value.kind == Node::Kind::map) {
        merge(same->value, std::move(entry.value));
      } else {
        diagnostics_.add({entry.key_location, Grade::error, entry.key,
                          "\"" + entry.key + "\" is already given at " + same->key_location.file +
                              ":" + std::to_string(same->key_location.line)});
      }
    }
  }

  const Environment& environment_;
  Diagnostics& diagnostics_;
  std::vector<std::string> open_;
};

}  // namespace

const Entry* Node::find(std::string_view key) const {
  constexpr std::size_t kBig = 64;
  if (entries.size() > kBig) {
    if (!places || places->covered > entries.size()) places = std::make_shared<Places>();
    if (places->covered < entries.size() && places.use_count() > 1) {
      places = std::make_shared<Places>(*places);
    }
    for (; places->covered < entries.size(); ++places->covered) {
      places->of.emplace(entries[places->covered].key, places->covered);
    }
    const auto found = places->of.find(key);
    if (found == places->of.end()) return nullptr;
    if (entries[found->second].key == key) return &entries[found->second];
  }
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

std::optional<Node> parse_yaml(std::string_view text, const std::string& name,
                               Diagnostics& diagnostics) {
  if (const auto byte = core::first_invalid_utf8(text)) {
    diagnostics.add({location_at(name, text, *byte), Grade::error, "",
                     "not UTF-8: save the file in this encoding"});
    return std::nullopt;
  }
  try {
    const auto documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      diagnostics.add(
          {{name, 0, 0}, Grade::error, "", "more than one YAML document in the file (\"---\")"});
      return std::nullopt;
    }
    Node root;
    root.kind = Node::Kind::map;
    root.location = {name, 1, 1};
    if (documents.empty() || documents.front().IsNull()) return root;
    Converter converter{name, diagnostics, std::make_shared<const std::string>(text)};
    root = converter.convert(documents.front(), 0);
    if (converter.refused) return std::nullopt;
    if (root.kind != Node::Kind::map) {
      diagnostics.add({root.location, Grade::error, "",
                       "expected a map of sections, found " + describe_kind(root)});
      return std::nullopt;
    }
    return root;
  } catch (const YAML::Exception& error) {
    const YamlFault fault =
        explain_yaml(text, {name, error.mark.line + 1, error.mark.column + 1}, error.msg);
    diagnostics.add({fault.location, Grade::error, "", "not valid YAML: " + fault.message});
    return std::nullopt;
  }
}

void substitute(Node& node, const Environment& environment, Diagnostics& diagnostics) {
  for (Node& item : node.items) substitute(item, environment, diagnostics);
  for (Entry& entry : node.entries) substitute(entry.value, environment, diagnostics);
  if (node.kind != Node::Kind::scalar || node.text.find("${") == std::string::npos) return;
  std::string out;
  std::size_t at = 0;
  while (at < node.text.size()) {
    if (node.text.compare(at, 3, "$${") == 0) {
      out += "${";
      at += 3;
    } else if (node.text.compare(at, 2, "${") == 0) {
      at += 2;
      out += expand_one(node, at, environment, diagnostics);
    } else {
      out += node.text[at++];
    }
  }
  node.text = out;
  node.substituted = true;
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

Document::Document(std::unique_ptr<Tree> tree) : tree_(std::move(tree)) {}
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

std::optional<Document> Document::load(const std::string& path, const Environment& environment,
                                       Diagnostics& diagnostics) {
  Includer includer(environment, diagnostics);
  auto root = includer.load(path, Location{path, 0, 0});
  if (!root) return std::nullopt;
  return Document(std::make_unique<Tree>(Tree{std::move(*root)}));
}

std::optional<Document> Document::parse(std::string_view text, const std::string& name,
                                        const Environment& environment, Diagnostics& diagnostics) {
  auto root = parse_yaml(text, name, diagnostics);
  if (!root) return std::nullopt;
  substitute(*root, environment, diagnostics);
  Includer(environment, diagnostics).merge_includes(*root, name);
  return Document(std::make_unique<Tree>(Tree{std::move(*root)}));
}

}  // namespace tocsin::config
