#include "app/config/transport_sections.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "app/config/app_config.h"

namespace tocsin::app {
namespace {

constexpr std::array<std::string_view, 4> kOurs{"transport", "topics", "cluster", "evidence"};

bool is_ours(std::string_view key) {
  return std::find(kOurs.begin(), kOurs.end(), key) != kOurs.end();
}

/// From where a section's value begins to where the next one does.
struct Extent {
  config::Location begin;
  config::Location end;  // line 0: the end of the file
};

bool before(const config::Location& a, const config::Location& b) {
  return std::pair(a.line, a.column) < std::pair(b.line, b.column);
}

bool holds(const Extent& extent, const config::Location& place) {
  return place.file == extent.begin.file && !before(place, extent.begin) &&
         (extent.end.line == 0 || before(place, extent.end));
}

/// Which of a file's errors concern our sections.
class OurErrors {
 public:
  explicit OurErrors(const config::Reader& root) {
    const auto whole = root.value("");
    const auto* map = whole ? core::as<core::ValueMap>(*whole) : nullptr;
    if (map == nullptr) return;
    for (const auto& [key, value] : *map) {
      keys_.push_back(key);
      if (is_ours(key)) extents_.push_back({root.location(key), {}});
    }
    for (Extent& extent : extents_) {
      for (const std::string& key : keys_) {
        const config::Location at = root.location(key);
        const bool follows = at.file == extent.begin.file && before(extent.begin, at);
        if (follows && (extent.end.line == 0 || before(at, extent.end))) extent.end = at;
      }
    }
  }

  [[nodiscard]] bool has(const config::Diagnostic& item) const {
    const std::string_view section =
        std::string_view(item.path).substr(0, item.path.find_first_of(".["));
    if (is_ours(section)) return !item.unknown_key || section.size() < item.path.size();
    const bool elsewhere =
        section == "include" || std::find(keys_.begin(), keys_.end(), section) != keys_.end();
    return !item.unknown_key && !elsewhere &&
           std::any_of(extents_.begin(), extents_.end(),
                       [&](const Extent& extent) { return holds(extent, item.location); });
  }

 private:
  std::vector<std::string> keys_;
  std::vector<Extent> extents_;
};

/// The text with every line blank that belongs to another section: places stay what they are.
std::string our_lines(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  bool keep = false;
  for (std::string line; std::getline(in, line);) {
    std::string_view key = line;
    if (key.starts_with("\xEF\xBB\xBF")) key.remove_prefix(3);
    const bool begins = !key.empty() && std::string_view(" \t#-]}\r").find(key[0]) == key.npos;
    if (begins) {
      key = key.substr(0, key.find(':'));
      while (!key.empty() && std::string_view("\"' ").find(key.back()) != key.npos)
        key.remove_suffix(1);
      while (!key.empty() && std::string_view("\"'").find(key.front()) != key.npos)
        key.remove_prefix(1);
      keep = is_ours(key) || key == "include";
    }
    if (keep) out += line;
    out += '\n';
  }
  return out;
}

std::string whole_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Reads our sections; the first error that concerns them, if there is one.
std::optional<config::Diagnostic> read_ours(const config::Document& document,
                                            config::Diagnostics& problems, AppConfig& out) {
  std::optional<OurErrors> ours;
  document.read(problems, [&](config::Reader& root) {
    ours.emplace(root);
    root.section("transport", "", [&](config::Reader& in) { ingest::read(in, out.transport); });
    root.section("topics", "", [&](config::Reader& in) { ingest::read(in, out.topics); });
    root.optional("cluster", out.cluster, "");
    root.section("evidence", "", [&](config::Reader& in) { read(in, out.evidence); });
  });
  // A mistyped key is the reason of what is missing.
  const config::Diagnostic* found = nullptr;
  for (const auto& item : problems.items()) {
    if (item.grade != config::Grade::error || !ours || !ours->has(item)) continue;
    if (found == nullptr || (item.unknown_key && !found->unknown_key)) found = &item;
  }
  return found == nullptr ? std::nullopt : std::optional(*found);
}

core::Error refused(const std::string& file, const std::string& why) {
  return core::invalid_argument(why + "; see: tocsin check " + file +
                                ", or name the place with --from");
}

std::size_t count_errors(const config::Diagnostics& diagnostics) {
  return static_cast<std::size_t>(
      std::count_if(diagnostics.items().begin(), diagnostics.items().end(),
                    [](const auto& item) { return item.grade == config::Grade::error; }));
}

}  // namespace

core::Result<TransportSections> read_transport_sections(const std::string& file,
                                                        const config::Environment& environment) {
  config::Diagnostics whole;
  const AppConfig good = load_config(file, environment, whole);
  if (!whole.has_errors()) {
    return TransportSections{{good.transport, good.topics, good.cluster, good.evidence.dir}, 0};
  }
  config::Diagnostics problems;
  auto document = config::Document::load(file, environment, problems);
  if (!document) {
    config::Diagnostics of_lines;
    const std::string text = whole_text(file);
    if (text.empty()) return refused(file, config::to_text(problems.items().front()));
    document = config::Document::parse(our_lines(text), file, environment, of_lines);
    if (!document) return refused(file, config::to_text(problems.items().front()));
    problems = std::move(of_lines);
  }
  AppConfig ours;
  if (const auto wrong = read_ours(*document, problems, ours)) {
    return refused(file, config::to_text(*wrong));
  }
  if (!document->value("transport")) {
    return refused(file, file + " has errors, and no `transport:` that can be read");
  }
  return TransportSections{{ours.transport, ours.topics, ours.cluster, ours.evidence.dir},
                           count_errors(whole)};
}

}  // namespace tocsin::app
