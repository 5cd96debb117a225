#include "rules/hosted/read.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/text.h"
#include "rules/hosted/hosted_rule.h"

namespace tocsin::rules::hosted {
namespace {

using core::ValueMap;

struct Keys {
  std::string type{kPython};
  std::string source;
  std::string class_name;
  std::vector<std::string> collections_to_save;
  std::vector<std::string> raw;
  core::Value with;
  core::Duration timeout = std::chrono::seconds(10);
  core::Duration start_timeout = std::chrono::seconds(60);
  config::Bytes memory{std::uint64_t{2} << 30};
  std::uint32_t history = 200;
};

// Relative to the file that names it.
std::string absolute(const std::string& source, const std::string& config_file) {
  std::filesystem::path path(source);
  if (path.is_relative()) path = std::filesystem::path(config_file).parent_path() / path;
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored);
  return (ignored ? path : whole).lexically_normal().string();
}

std::optional<std::string> content_of(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Names like a function of Python may have them.
bool is_identifier(const std::string& text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void read_options(config::Reader& in, Keys& keys, Common& common, Selection& selection) {
  Defaults defaults;
  defaults.everything = true;
  read_common(in, defaults, common, selection);
  in.optional("history", keys.history, config::between(std::uint32_t{1}, 100'000U),
              "saved steps behind the newest that the rule can look at");
  in.optional("timeout", keys.timeout, config::positive(),
              "longest time for one step; then the process is ended and the step has the outcome "
              "error");
  in.optional("start_timeout", keys.start_timeout, config::positive(),
              "longest time until the file is imported");
  in.optional("memory", keys.memory, "address space that the rule's process may have");
}

bool read_with(config::Reader& item, const core::Value& with, ValueMap& out) {
  if (with.is_null()) return true;
  const auto* map = core::as<ValueMap>(with);
  if (map == nullptr) {
    item.error("with", "expected a map: the arguments of the rule's constructor");
    return false;
  }
  for (const auto& [name, value] : *map) {
    if (is_identifier(name)) continue;
    item.error("with." + name, "\"" + name + "\" cannot be the name of an argument");
    return false;
  }
  out = *map;
  return true;
}

void read_needs(const Keys& keys, Program& program) {
  const auto& named =
      keys.collections_to_save.empty() ? program.common.collection_names : keys.collections_to_save;
  for (const std::string& name : named) program.needs.push_back({name});
  for (const std::string& name : keys.raw) program.needs.push_back({name, {"raw"}});
}

// What decides the answers, beside the file: its content is the rule's version.
std::string hash_of(const Keys& keys, const std::vector<core::Parameter>& parameters) {
  ValueMap map{{"class", keys.class_name}};
  for (const core::Parameter& one : parameters) {
    if (one.origin == "user") map.emplace_back(one.name, one.value);
  }
  return core::params_hash(core::to_json(map, true));
}

}  // namespace

void read(config::Reader& item, RuleSettings& settings) {
  Keys keys;
  auto program = std::make_shared<HostedProgram>();
  item.optional("type", keys.type, config::one_of({std::string(kPython), "native"}),
                "of a rule in a file of your own: python (source) or native (library)");
  item.optional(
      "source", keys.source,
      "file of a rule of your own in Python, relative to this one (docs/rules/python.md)");
  item.optional("class", keys.class_name, "the class in it; default: the only one that is a rule");
  item.optional("collections_to_save", keys.collections_to_save,
                "collections that the hook is asked to capture; default: "
                "options.collection_names");
  item.optional("raw", keys.raw,
                "collections whose elements the rule looks at: the hook is asked to send them "
                "(docs/raw-tensors.md)");
  std::vector<core::Parameter> options;
  item.section("options", "what a rule in Python is given, and its limits",
               [&](config::Reader& in) {
                 read_options(in, keys, program->common, program->selection);
                 options = in.effective();
               });
  if (item.describing()) return;  // `with` is declared for the built-in ones
  item.any("with", keys.with, "arguments of the rule's constructor");
  if (keys.type != kPython) return item.error("type", "a rule with `source` is of type python");
  if (keys.source.empty()) return item.error("source", "source must be the name of a file");
  if (!keys.class_name.empty() && !is_identifier(keys.class_name)) {
    return item.error("class", "\"" + keys.class_name + "\" cannot be the name of a class");
  }
  if (!item.has("options")) program->selection.add_all();
  auto rule = std::make_shared<HostedRule>();
  if (!read_with(item, keys.with, rule->parameters)) return;
  rule->source = absolute(keys.source, item.location("source").file);
  const std::optional<std::string> content = content_of(rule->source);
  if (!content) return item.error("source", rule->source + " cannot be read");
  // Text of another encoding cannot be handed on.
  if (!core::first_invalid_utf8(*content)) rule->content = *content;
  rule->class_name = keys.class_name;
  rule->timeout = keys.timeout;
  rule->start_timeout = keys.start_timeout;
  rule->memory = keys.memory.count;
  if (settings.name.empty()) {
    settings.name = !keys.class_name.empty() ? keys.class_name
                                             : std::filesystem::path(rule->source).stem().string();
  }
  rule->name = settings.name;
  read_needs(keys, *program);
  for (const auto& [name, value] : rule->parameters) {
    settings.parameters.push_back({name, value, "user"});
  }
  for (core::Parameter& one : options) {
    if (one.origin == "user") settings.parameters.push_back(std::move(one));
  }
  settings.type = kPython;
  settings.version = core::hex(core::sha256(*content)).substr(0, 12);
  settings.params_hash = hash_of(keys, settings.parameters);
  if (program->common.severity && !settings.severity_set) {
    settings.severity = core::severity_from(*program->common.severity).value_or(settings.severity);
    settings.severity_set = true;
  }
  program->config = {rule, keys.history};
  settings.program = program;
  settings.hosted = rule;
}

}  // namespace tocsin::rules::hosted
