#include "app/cli/config_show.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <iostream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "app/config/app_config.h"
#include "app/config/config_path.h"
#include "app/process/exit_code.h"
#include "config/config.h"
#include "core/json.h"
#include "core/text_table.h"
#include "core/visible_text.h"

namespace tocsin::app {
namespace {

constexpr const char* kMasked = "<redacted>";

/// One value: where it stands, as a path of the document and as the page of its part has it.
struct ShownKey {
  std::string path;      // receivers.people.webhook[0].url
  std::string declared;  // receivers.<name>.webhook.url
  core::Value value;
  std::string origin;  // "tocsin.yaml:3", "default"
};

// Of what users name themselves: properties of librdkafka, headers, parameters of requests.
bool names_credential(std::string path) {
  for (char& c : path) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  static constexpr std::array<std::string_view, 11> kWords{
      "password", "secret", "token", "credential", "key",     "jaas",
      "oauth",    "pem",    "auth",  "cert",       "headers."};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return path.find(word) != std::string::npos; });
}

bool is_empty(const core::Value& value) {
  const auto* map = core::as<core::ValueMap>(value);
  const auto* list = core::as<core::ValueList>(value);
  return (map != nullptr && map->empty()) || (list != nullptr && list->empty());
}

/// What is declared of keys.
class DeclaredKeys {
 public:
  DeclaredKeys() {
    const auto declare = [](config::Reader& root) {
      AppConfig config;
      read(root, config);
    };
    for (config::KeyDoc& one : config::describe(declare)) {
      const std::string section = section_of(one.path);
      if (std::find(sections_.begin(), sections_.end(), section) == sections_.end())
        sections_.push_back(section);
      if (one.type == "secret") with_secrets_.insert(section);
      types_.emplace(one.path, one.type);
      keys_.push_back(std::move(one));
    }
  }

  /// Of the file, in the order of the page.
  [[nodiscard]] const std::vector<std::string>& sections() const { return sections_; }
  [[nodiscard]] const std::vector<config::KeyDoc>& keys() const { return keys_; }
  /// May people see it? In sections with credentials only what is known to be none.
  [[nodiscard]] bool is_open(const ShownKey& key) const {
    if (!with_secrets_.contains(section_of(key.declared)) || is_empty(key.value)) return true;
    const std::string name = key.declared.substr(key.declared.rfind('.') + 1);
    if (name.ends_with("_file")) return true;  // a path
    // A map or a list of what the user likes stands under the key that is declared.
    std::string at = key.declared;
    while (!types_.contains(at)) {
      const std::size_t dot = at.rfind('.');
      if (dot == std::string::npos) return false;
      at.resize(dot);
    }
    const std::string& type = types_.at(at);
    if (type == "secret") return false;
    if (at == key.declared) return type != "map";
    const bool free = type == "any" || type == "text map" || type == "texts" || type == "list";
    return free && !names_credential(key.declared.substr(at.rfind('.') + 1));
  }

 private:
  static std::string section_of(const std::string& path) {
    return path.substr(0, path.find_first_of(".["));
  }

  std::vector<std::string> sections_;
  std::set<std::string> with_secrets_{"transport"};  // properties of librdkafka are not declared
  std::map<std::string, std::string, std::less<>> types_;
  std::vector<config::KeyDoc> keys_;
};

// Leaves of a value, in their order; an empty map or list is one.
void add_leaves(const core::Value& value, const std::string& path, const std::string& declared,
                std::vector<ShownKey>& out) {
  const auto* map = core::as<core::ValueMap>(value);
  const auto* list = core::as<core::ValueList>(value);
  if (map != nullptr && !map->empty()) {
    for (const auto& entry : *map) {
      const std::string name = declared == "receivers" ? "<name>" : entry.first;
      add_leaves(entry.second, path + "." + entry.first, declared + "." + name, out);
    }
    return;
  }
  const bool of_maps =
      list != nullptr && std::any_of(list->begin(), list->end(), [](const auto& one) {
        return core::as<core::ValueMap>(one) != nullptr;
      });
  if (!of_maps) {
    out.push_back({path, declared, value, {}});
    return;
  }
  // Actions of a receiver may stand in lists, which their page does not show.
  const bool of_actions = declared.starts_with("receivers.<name>") &&
                          std::count(declared.begin(), declared.end(), '.') <= 2;
  for (std::size_t i = 0; i < list->size(); ++i) {
    add_leaves((*list)[i], path + "[" + std::to_string(i) + "]",
               declared + (of_actions ? "" : "[]"), out);
  }
}

// Of the key, or of what it stands in: names of librdkafka's properties have dots of their own.
std::string origin_of(const config::Reader& root, std::string path) {
  while (!root.value(path) && path.find_first_of(".[") != std::string::npos)
    path.resize(path.find_last_of(".["));
  const config::Location location = root.location(path);
  return location.file + (location.line > 0 ? ":" + std::to_string(location.line) : "");
}

// Of sections that stand once: what a list or a receiver leaves out, its page says.
void add_defaults(const DeclaredKeys& declared, std::vector<ShownKey>& out) {
  std::set<std::string> given;
  for (const ShownKey& one : out) given.insert(one.declared);
  const auto is_given = [&](const std::string& path) {
    const auto next = given.lower_bound(path);
    return next != given.end() &&
           (*next == path || next->starts_with(path + ".") || next->starts_with(path + "["));
  };
  for (const config::KeyDoc& key : declared.keys()) {
    const bool once =
        key.path.find("[]") == std::string::npos && key.path.find('<') == std::string::npos;
    const bool has_default =
        !key.required && key.type != "secret" && !key.fallback.empty() && key.fallback != "–";
    // A journal is what there is without a cluster.
    const bool is_other = key.path.starts_with("transport.journal") && is_given("transport.kafka");
    if (once && has_default && !is_other && !is_given(key.path))
      out.push_back({key.path, key.path, key.fallback, "default"});
  }
}

std::string value_text(const core::Value& value) {
  const auto* text = core::as<std::string>(value);
  return core::visible(text != nullptr ? *text : core::to_json(value), 500);
}

void print_keys(const std::vector<ShownKey>& keys, bool json) {
  if (json) {
    core::ValueMap out;
    for (const ShownKey& one : keys) {
      out.emplace_back(one.path, core::ValueMap{{"value", one.value}, {"origin", one.origin}});
    }
    std::cout << core::to_json(core::Value(std::move(out))) << "\n";
    return;
  }
  std::vector<core::TableRow> rows;
  rows.reserve(keys.size());
  for (const ShownKey& one : keys)
    rows.push_back({core::visible(one.path, 200), one.origin, value_text(one.value)});
  std::cout << core::text_table(rows);
}

}  // namespace

int config_show(const ConfigShowOptions& options) {
  const std::string file = config_path(options.config_file);
  config::Diagnostics diagnostics;
  const auto document = config::Document::load(file, config::process_environment(), diagnostics);
  const DeclaredKeys declared;
  std::vector<ShownKey> keys;
  if (document) {
    for (const std::string& section : declared.sections()) {
      if (const auto value = document->value(section)) add_leaves(*value, section, section, keys);
    }
    document->read(diagnostics, [&](config::Reader& root) {
      AppConfig config;
      read(root, config);
      for (ShownKey& one : keys) one.origin = origin_of(root, one.path);
    });
  }
  if (!document || diagnostics.has_errors()) {
    diagnostics.sort(file);
    for (const auto& item : diagnostics.items()) {
      if (item.grade == config::Grade::error) std::cerr << config::to_text(item) << "\n";
    }
    return kConfiguration;
  }
  for (ShownKey& one : keys) {
    if (!declared.is_open(one)) one.value = std::string(kMasked);
  }
  if (options.effective) add_defaults(declared, keys);
  print_keys(keys, options.json);
  return kOk;
}

}  // namespace tocsin::app
