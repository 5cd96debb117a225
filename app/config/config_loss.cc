#include "app/config/config_loss.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace tocsin::app {
namespace {

using Losses = std::vector<config::Diagnostic>;

void add(Losses& out, const std::string& file, std::string key, std::string message) {
  out.push_back({{file, 1, 1},
                 config::Grade::error,
                 std::move(key),
                 std::move(message),
                 /*unknown_key=*/false});
}

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void count_rules(const config::Reader& root, ConfigContent& out) {
  for (;; ++out.rules) {
    const std::string item = "rules[" + std::to_string(out.rules) + "]";
    if (!root.value(item)) return;
    const auto file = out.files.find(root.location(item).file);
    if (file != out.files.end()) ++file->second.rules;
  }
}

bool says_something(const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t first = text.find_first_not_of(" \t\r", at);
    if (first < end && text[first] != '#') return true;
    at = end + 1;
  }
  return false;
}

bool ends_a_line(const std::string& text) { return !text.empty() && text.back() == '\n'; }

// In the middle of a line. A file of one line, as programs write JSON, has no line's end to miss.
bool cut_in_a_line(const std::string& before, const std::string& text) {
  if (text == before || text.empty() || ends_a_line(text)) return false;
  if (ends_a_line(before)) return true;
  return text.size() < before.size() && before.starts_with(text) && before[text.size()] != '\n';
}

void look_at_files(const ConfigContent& before, const ConfigContent& fresh, Losses& out) {
  for (const auto& [path, was] : before.files) {
    const auto found = fresh.files.find(path);
    if (found == fresh.files.end()) continue;  // not included any more
    const ConfigFile& is = found->second;
    if (says_something(was.text) && !says_something(is.text)) {
      add(out, path, "", "the file is empty, and was not before");
    } else if (cut_in_a_line(was.text, is.text)) {
      add(out, path, "",
          "the file is cut off in the middle of its last line; if it is whole, end that line");
    } else if (was.rules > 0 && is.rules == 0 && fresh.files.size() > 1 &&
               fresh.rules < before.rules) {
      add(out, path, "rules",
          "the file held " + std::to_string(was.rules) +
              " rules and now holds none; if that is intended, take it out of `include` first");
    }
  }
}

void look_at_section(const ConfigContent& before, const ConfigContent& fresh,
                     const std::string& file, const std::string& key, const std::string& meant,
                     Losses& out) {
  if (!before.written.contains(key) || fresh.written.contains(key)) return;
  add(out, file, key, "the section `" + key + "` is gone; if that is intended, " + meant);
}

}  // namespace

ConfigContent read_content(const std::vector<std::string>& files,
                           const config::Environment& environment) {
  ConfigContent out;
  for (const std::string& file : files) out.files[file].text = text_of(file);
  config::Diagnostics problems;
  if (files.empty()) return out;
  const auto document = config::Document::load(files.front(), environment, problems);
  for (const config::Diagnostic& item : problems.items()) {
    if (item.path == "include") out.unmatched.insert(item.message);
  }
  if (!document) return out;
  document->read(problems, [&](config::Reader& root) { count_rules(root, out); });
  for (const char* key : {"transport", "route", "receivers", "rules", "rule_groups"}) {
    const auto value = document->value(key);
    if (value && !value->is_null()) out.written.insert(key);
  }
  return out;
}

bool cut_at_a_line(const std::string& before, const std::string& text) {
  return text.size() < before.size() && ends_a_line(text) && before.starts_with(text);
}

std::vector<config::Diagnostic> find_losses(const ConfigContent& started,
                                            const ConfigContent& before, const ConfigContent& fresh,
                                            const std::string& file) {
  Losses out;
  look_at_files(before, fresh, out);
  for (const char* key : {"rules", "rule_groups"}) {
    look_at_section(before, fresh, file, key, std::string("write `") + key + ": []`", out);
  }
  for (const char* key : {"transport", "route", "receivers"}) {
    look_at_section(started, fresh, file, key, "restart with it", out);
  }
  const bool fewer = std::any_of(before.files.begin(), before.files.end(),
                                 [&](const auto& one) { return !fresh.files.contains(one.first); });
  for (const std::string& pattern : fresh.unmatched) {
    if (!fewer || before.unmatched.contains(pattern)) continue;
    add(out, file, "include",
        pattern + ", and files did; if that is intended, take the pattern out");
  }
  return out;
}

}  // namespace tocsin::app
