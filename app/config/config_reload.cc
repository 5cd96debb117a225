#include "app/config/config_reload.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "core/identity.h"

namespace tocsin::app {
namespace {

// Of a file that is not there: an editor or a mount replaces it. Of one that has lost its end:
// somebody copies it in place.
constexpr int kGoneLooks = 5;
constexpr int kCutLooks = 10;

using Routes = std::vector<std::pair<std::string, std::vector<std::string>>>;

Routes routes_of(const rules::RulesConfig& rules) {
  Routes out;
  for (const auto& one : rule_actions(rules)) out.emplace_back(one.rule, one.receivers);
  std::sort(out.begin(), out.end());
  return out;
}

// Everything that a rule is: what makes it another rule, and what is only said of it.
std::string text_of(const rules::RuleSettings& rule) {
  std::string out = rule.name + "\n" + rule.type + "\n" + rule.version + "\n" + rule.params_hash +
                    "\n" + std::string(core::to_string(rule.severity)) + "\n" + rule.runbook_url +
                    (rule.shadow ? "\nshadow" : "");
  for (const auto& parameter : rule.parameters) {
    out += "\n" + parameter.name + "=" + core::to_json(parameter.value);
  }
  return out;
}

std::vector<std::string> hosted_of(const rules::RulesConfig& rules) {
  std::vector<std::string> out;
  for (const auto& rule : rules.rules) {
    if (rule.hosted) out.push_back(text_of(rule));
  }
  return out;
}

// Small enough to be exact as a number.
double hash_of(const std::vector<rules::RuleSettings>& rules) {
  std::string text;
  for (const auto& rule : rules) text += text_of(rule) + "\n\n";
  return static_cast<double>(core::name_hash(text) >> 16);
}

const rules::RuleSettings* named(const std::vector<rules::RuleSettings>& rules,
                                 const std::string& name) {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const auto& one) { return one.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string place_of(const config::Diagnostic& item) {
  return item.location.file + ":" + std::to_string(item.location.line) + ":" +
         std::to_string(item.location.column);
}

std::string contents_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// What an included file gave is all that shows of it: one that is there and gives nothing any more is
// one that has lost everything, as long as nobody has changed what is included.
void find_emptied(const ConfigContent& before, const std::string& first, ConfigContent& fresh) {
  const auto main = before.files.find(first);
  const auto now = fresh.files.find(first);
  if (main == before.files.end() || now == fresh.files.end()) return;
  const bool same_includes = main->second.text == now->second.text;
  for (const auto& [path, was] : before.files) {
    std::error_code ignored;
    if (fresh.files.contains(path) || !std::filesystem::is_regular_file(path, ignored)) continue;
    std::string text = contents_of(path);
    if (same_includes || text.empty()) fresh.files[path].text = std::move(text);
  }
}

}  // namespace

ConfigReload::ConfigReload(const AppConfig& running, ReloadPorts ports)
    : ports_(std::move(ports)),
      started_sections_(running.sections),
      started_routes_(routes_of(running.rules)),
      started_hosted_(hosted_of(running.rules)),
      rules_(running.rules.rules),
      files_(running.files),
      started_content_(read_content(files_, config::process_environment())),
      content_(started_content_),
      read_(signature()),
      seen_(read_),
      successful_(ports_.telemetry->gauge("tocsin_config_last_reload_successful",
                                          "1: the configuration that was read last is in effect")),
      success_time_(ports_.telemetry->gauge(
          "tocsin_config_last_reload_success_timestamp_seconds",
          "when a configuration was last read and found right, at the start or later")),
      restart_needed_(ports_.telemetry->gauge(
          "tocsin_config_restart_needed",
          "1: the file has changes outside of `rules` that only a restart brings into effect")),
      rules_hash_(ports_.telemetry->gauge(
          "tocsin_config_rules_hash", "of the rules in effect: equal where they are the same")) {
  successful_.set(1);
  success_time_.set(static_cast<double>(core::nanoseconds(ports_.clock->now())) / 1e9);
  restart_needed_.set(0);
  rules_hash_.set(hash_of(rules_));
}

// Of the files themselves, behind links (a ConfigMap is swapped by a link), of the folders of
// included ones, to which others may come, and of the files of rules in Python. One that cannot be
// read is a `?`.
std::string ConfigReload::signature() const {
  std::string out;
  std::set<std::string> paths(files_.begin(), files_.end());
  for (std::size_t i = 1; i < files_.size(); ++i) {
    paths.insert(std::filesystem::path(files_[i]).parent_path().string() + "/.");
  }
  for (const auto& rule : rules_) {
    if (rule.hosted) paths.insert(rule.hosted->source);
  }
  for (const std::string& path : paths) {
    struct stat found {};
    if (stat(path.c_str(), &found) != 0 || access(path.c_str(), R_OK) != 0) {
      out += "? ";
      continue;
    }
    for (const auto number :
         {static_cast<std::int64_t>(found.st_dev), static_cast<std::int64_t>(found.st_ino),
          static_cast<std::int64_t>(found.st_size), static_cast<std::int64_t>(found.st_mtim.tv_sec),
          static_cast<std::int64_t>(found.st_mtim.tv_nsec)}) {
      out += std::to_string(number) + " ";
    }
  }
  return out;
}

void ConfigReload::look() {
  std::string now = signature();
  still_ = now == seen_ ? still_ + 1 : 0;
  seen_ = now;
  if (now == read_) return;
  const bool gone = now.find('?') != std::string::npos;
  const int wait = gone ? kGoneLooks : is_cut_short() ? kCutLooks : 1;
  if (still_ >= wait) reload();
}

bool ConfigReload::is_cut_short() const {
  return std::any_of(content_.files.begin(), content_.files.end(), [](const auto& one) {
    return cut_at_a_line(one.second.text, contents_of(one.first));
  });
}

void ConfigReload::reload() {
  seen_ = read_ = signature();
  config::Diagnostics diagnostics;
  AppConfig fresh = ports_.load(diagnostics);
  if (diagnostics.has_errors()) return reject(diagnostics);
  ConfigContent content = read_content(fresh.files, config::process_environment());
  find_emptied(content_, files_.front(), content);
  for (auto& loss : find_losses(started_content_, content_, content, files_.front())) {
    diagnostics.add(std::move(loss));
  }
  if (diagnostics.has_errors()) return reject(diagnostics);
  for (const config::Diagnostic& item : diagnostics.items()) {
    if (item.grade != config::Grade::warning) continue;
    ports_.log->warn("configuration_doubtful",
                     {{"at", place_of(item)}, {"key", item.path}, {"problem", item.message}});
  }
  content_ = std::move(content);
  take(std::move(fresh));
}

void ConfigReload::tell(const std::string& trouble) {
  if (trouble == trouble_) return;
  trouble_ = trouble;
  if (ports_.tell) ports_.tell(trouble);
}

void ConfigReload::reject(const config::Diagnostics& diagnostics) {
  successful_.set(0);
  std::int64_t errors = 0;
  std::string first;
  for (const config::Diagnostic& item : diagnostics.items()) {
    if (item.grade != config::Grade::error) continue;
    if (++errors == 1) first = place_of(item) + ": " + item.message;
    ports_.log->error("configuration_error",
                      {{"at", place_of(item)}, {"key", item.path}, {"problem", item.message}});
  }
  ports_.log->error("configuration_not_reloaded",
                    {{"file", files_.front()}, {"errors", errors}, {"kept", "the one before"}});
  tell(first + (errors > 1 ? " (and " + std::to_string(errors - 1) + " more)" : ""));
}

void ConfigReload::take(AppConfig fresh) {
  std::vector<std::string> added;
  std::vector<std::string> changed;
  std::vector<std::string> removed;
  // Those in Python wait for a restart, which name_restarts() says.
  for (const auto& rule : fresh.rules.rules) {
    if (rule.hosted) continue;
    const rules::RuleSettings* before = named(rules_, rule.name);
    if (before == nullptr) {
      added.push_back(rule.name);
    } else if (text_of(*before) != text_of(rule)) {
      changed.push_back(rule.name);
    }
  }
  for (const auto& rule : rules_) {
    if (rule.hosted) continue;
    if (named(fresh.rules.rules, rule.name) == nullptr) removed.push_back(rule.name);
  }
  rules_ = fresh.rules.rules;
  files_ = fresh.files;
  seen_ = read_ = signature();
  tell({});
  // Also where no rule seems other: what is said of one (a sentence, a label) may be.
  ports_.adopt(fresh.rules);
  successful_.set(1);
  success_time_.set(static_cast<double>(core::nanoseconds(ports_.clock->now())) / 1e9);
  rules_hash_.set(hash_of(rules_));
  ports_.log->info("configuration_reloaded", {{"file", files_.front()},
                                              {"rules", static_cast<std::int64_t>(rules_.size())},
                                              {"added", joined(added)},
                                              {"changed", joined(changed)},
                                              {"removed", joined(removed)}});
  name_restarts(fresh);
}

// Never silently ignored.
void ConfigReload::name_restarts(const AppConfig& fresh) {
  std::set<std::string> names;
  for (const auto& [name, text] : started_sections_) names.insert(name);
  for (const auto& [name, text] : fresh.sections) names.insert(name);
  std::vector<std::string> changed;
  for (const std::string& name : names) {
    const auto before = started_sections_.find(name);
    const auto now = fresh.sections.find(name);
    const bool same = before != started_sections_.end() && now != fresh.sections.end() &&
                      before->second == now->second;
    if (!same) changed.push_back(name);
  }
  if (routes_of(fresh.rules) != started_routes_) changed.emplace_back("rules[].actions");
  if (hosted_of(fresh.rules) != started_hosted_) changed.emplace_back("rules in Python");
  restart_needed_.set(changed.empty() ? 0 : 1);
  if (changed.empty()) return;
  ports_.log->warn(
      "configuration_needs_restart",
      {{"sections", joined(changed)}, {"in_effect", "as they were when this process was started"}});
}

}  // namespace tocsin::app
