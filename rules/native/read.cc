#include "rules/native/read.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/text.h"
#include "rules/native/native_rule.h"

namespace tocsin::rules::native {
namespace {

// What is given over what the library has as defaults; false: told.
bool take_parameters(config::Reader& item, const core::Value& with, core::ValueMap& parameters,
                     std::vector<core::Parameter>& effective) {
  static const core::ValueMap kNone;
  const auto* given = with.is_null() ? &kNone : core::as<core::ValueMap>(with);
  if (given == nullptr) {
    item.error("with", "expected a map: the parameters of the library's rule");
    return false;
  }
  std::vector<std::string> known;
  for (const auto& [name, value] : parameters) known.push_back(name);
  for (const auto& [name, value] : *given) {
    const auto at = std::find(known.begin(), known.end(), name);
    if (at == known.end()) {
      const std::string near = core::nearest(name, known);
      item.error("with." + name, "unknown parameter \"" + name + "\"" +
                                     (near.empty() ? "" : "; did you mean " + near + "?"));
      return false;
    }
    core::Value& value_of = parameters[static_cast<std::size_t>(at - known.begin())].second;
    const auto number = [](const core::Value& one) {
      return core::as<double>(one) != nullptr || core::as<std::int64_t>(one) != nullptr;
    };
    const bool fits = value_of.storage().index() == value.storage().index() ||
                      (number(value_of) && number(value)) || value_of.is_null();
    if (!fits) {
      item.error("with." + name, "expected a value like " + core::to_json(value_of));
      return false;
    }
    value_of = value;
  }
  for (const auto& [name, value] : parameters) {
    const bool by_user = core::find(*given, name) != nullptr;
    effective.push_back({name, value, by_user ? "user" : "default"});
  }
  return true;
}

}  // namespace

void read(config::Reader& item, bool allowed, RuleSettings& settings) {
  std::string path;
  item.optional("library", path,
                "absolute path of a shared object with a rule; needs plugins.native "
                "(docs/rules/native.md)");
  if (item.describing()) return;  // the other keys are declared for rules in Python
  std::string type = "native";
  item.optional("type", type, config::one_of({"native"}), "");
  core::Value with;
  item.any("with", with, "");
  if (!allowed) {
    item.error("library",
               "libraries are not loaded unless the configuration says `plugins: {native: true}`");
    item.section("options", "", [](config::Reader& in) {
      Common common;
      Selection selection;
      read_common(in, {}, common, selection);
    });
    return;
  }
  auto program = std::make_shared<NativeProgram>();
  Description description;
  const auto library = load_library(path);
  if (library) {
    auto described = describe(**library);
    if (!described) return item.error("library", described.error().message);
    description = std::move(*described);
  } else {
    item.error("library", library.error().message);
  }
  Defaults defaults;
  defaults.roles = description.roles;
  defaults.everything = description.roles.empty();
  std::vector<core::Parameter> options;
  const bool given = item.section("options", "", [&](config::Reader& in) {
    read_common(in, defaults, program->common, program->selection);
    options = in.effective();
  });
  if (!library) return;
  if (!given) {
    if (defaults.everything) program->selection.add_all();
    for (const core::Role role : defaults.roles) program->selection.add_role(role);
  }
  core::ValueMap parameters = description.parameters;
  if (!take_parameters(item, with, parameters, settings.parameters)) return;
  core::ValueMap hashed = parameters;
  for (core::Parameter& one : options) {
    if (one.origin != "user") continue;
    hashed.emplace_back(one.name, one.value);
    settings.parameters.push_back(std::move(one));
  }
  for (const std::string& name : description.needs) program->needs.push_back({name});
  settings.type = description.name;
  settings.version = description.version;
  settings.params_hash = core::params_hash(core::to_json(hashed, true));
  if (settings.name.empty()) settings.name = description.name;
  if (program->common.severity && !settings.severity_set) {
    settings.severity = core::severity_from(*program->common.severity).value_or(settings.severity);
    settings.severity_set = true;
  }
  if (auto opened = program->open(*library, std::move(description), parameters); !opened) {
    return item.error("with", opened.error().message);
  }
  settings.program = program;
}

}  // namespace tocsin::rules::native
