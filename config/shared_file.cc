#include "config/config.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace tocsin::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kInclude = "include";
constexpr std::size_t kMostBytes = 16U << 20;

/// Lines [first, last) of a top-level key, from 0.
struct Block {
  std::string key;
  std::size_t first = 0;
  std::size_t last = 0;
};

std::vector<std::string_view> whole_lines(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    out.push_back(text.substr(0, end + 1));
    text.remove_prefix(end + 1);
  }
  return out;
}

bool of_a_key(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
}

// "key" for a line `key: …` that begins in the first column; empty else.
std::string top_level_key(std::string_view line) {
  if (line.starts_with("? ")) return "?";  // YAML's long form of a key: nobody's here
  const bool quoted = line.starts_with('"') || line.starts_with('\'');
  const char quote = quoted ? line.front() : '\0';
  if (quoted) line.remove_prefix(1);
  const auto end = std::find_if_not(line.begin(), line.end(), of_a_key);
  const std::string key(line.begin(), end);
  line.remove_prefix(key.size());
  if (quoted) {
    if (!line.starts_with(quote)) return {};
    line.remove_prefix(1);
  }
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(':')) return {};
  const bool ends = line.size() == 1 || std::isspace(static_cast<unsigned char>(line[1])) != 0;
  return ends ? key : std::string();
}

std::vector<Block> blocks_of(const std::vector<std::string_view>& lines) {
  std::vector<Block> out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string key = top_level_key(lines[i]);
    if (key.empty()) continue;
    if (!out.empty()) out.back().last = i;
    out.push_back({std::move(key), i, lines.size()});
  }
  return out;
}

/// A text and its sections.
class Outline {
 public:
  explicit Outline(std::string text) : text_(std::move(text)) {
    std::string_view rest = text_;
    if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
    lines_ = whole_lines(rest);
    blocks_ = blocks_of(lines_);
  }
  Outline(const Outline&) = delete;
  Outline& operator=(const Outline&) = delete;

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  /// Section of a line, from 1; empty: none.
  [[nodiscard]] std::string section_at(int line) const {
    for (const Block& block : blocks_) {
      const auto at = static_cast<std::size_t>(std::max(line, 1) - 1);
      if (at >= block.first && at < block.last) return block.key;
    }
    return {};
  }
  /// Empty lines where none of `kept` stands: places stay what they were.
  [[nodiscard]] std::string only(const std::vector<Block>& kept) const {
    std::string out;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const bool inside = std::any_of(kept.begin(), kept.end(), [&](const Block& block) {
        return i >= block.first && i < block.last;
      });
      // Where another document of the file begins, or one ends.
      const bool mark = lines_[i].starts_with("---") || lines_[i].starts_with("...");
      out += inside && !mark ? std::string(lines_[i]) : std::string("\n");
    }
    return out;
  }

 private:
  const std::string text_;
  std::vector<std::string_view> lines_;
  std::vector<Block> blocks_;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string out;
  out.resize(kMostBytes);
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return out;
}

/// Whose a problem is: of the program's own sections, or of others.
class Sections {
 public:
  Sections(std::string path, const std::function<void(Reader&)>& read) : path_(std::move(path)) {
    for (const KeyDoc& one : describe(read)) {
      std::string key = one.path.substr(0, one.path.find_first_of(".["));
      if (!is_own(key)) own_.push_back(std::move(key));
    }
  }

  [[nodiscard]] bool is_own(std::string_view key) const {
    return key == kInclude || std::find(own_.begin(), own_.end(), key) != own_.end();
  }
  bool is_own(const Diagnostic& problem) {
    const std::string key = problem.path.substr(0, problem.path.find_first_of(".["));
    if (problem.unknown_key && key == problem.path) return false;  // another program's section
    if (is_own(std::string_view(key))) return true;
    // An included file that cannot be read at all: nobody knows what it held.
    if (problem.location.file != path_ && problem.message.starts_with("not ")) return true;
    // Of what is found before sections are read (variables, keys given twice) the place tells whose it is.
    const std::string section = outline(problem.location.file).section_at(problem.location.line);
    return section.empty() ? problem.location.line == 0 : is_own(std::string_view(section));
  }
  const Outline& outline(const std::string& file) {
    auto& known = outlines_[file];
    if (known == nullptr) known = std::make_unique<Outline>(text_of(file));
    return *known;
  }

 private:
  const std::string path_;
  std::vector<std::string> own_;
  std::map<std::string, std::unique_ptr<Outline>> outlines_;
};

constexpr std::string_view kHides = "a text above is not closed, and hides this section";

// The YAML library takes the end of the file for the end of a quoted text.
void note_hidden(const Document& document, const Outline& outline, const std::string& path,
                 const Sections& sections, Diagnostics& found) {
  for (const Block& block : outline.blocks()) {
    if (!sections.is_own(std::string_view(block.key)) || block.key == kInclude) continue;
    if (document.value(block.key)) continue;
    found.add(
        {{path, static_cast<int>(block.first) + 1, 1}, Grade::error, "", std::string(kHides)});
    return;
  }
}

bool is_hidden(const Diagnostics& found) {
  return std::any_of(found.items().begin(), found.items().end(),
                     [](const Diagnostic& one) { return one.message == kHides; });
}

void add_own(const Diagnostics& found, Sections& sections, Diagnostics& problems) {
  for (Diagnostic one : found.items()) {
    if (!sections.is_own(one)) continue;
    if (one.path.empty()) {
      one.path = sections.outline(one.location.file).section_at(one.location.line);
    }
    problems.add(std::move(one));
  }
}

// The file, or one that it includes, is no YAML: what is left of it when the others' sections are taken away.
void read_what_is_left(const std::string& path, const Environment& environment,
                       const std::function<void(Reader&)>& read, Sections& sections,
                       const Diagnostics& whole, Diagnostics& problems) {
  const Outline& outline = sections.outline(path);
  std::vector<Block> ours;
  for (const Block& block : outline.blocks()) {
    if (sections.is_own(std::string_view(block.key))) ours.push_back(block);
  }
  const auto take = [&](const std::vector<Block>& blocks) {
    Diagnostics found;
    const auto document = Document::parse(outline.only(blocks), path, environment, found);
    if (document) document->read(found, read);
    for (Diagnostic one : found.items()) {
      if (!document && one.path.empty() && blocks.size() == 1) one.path = blocks.front().key;
      if (document || blocks.size() == 1) problems.add(std::move(one));
    }
    return document.has_value();
  };
  if (outline.blocks().empty()) {  // a list, a text: there are no sections
    for (const Diagnostic& one : whole.items()) problems.add(one);
    return;
  }
  if (!take(ours)) {
    for (const Block& block : ours) (void)take({block});
    return;
  }
  for (Diagnostic one : whole.items()) {
    if (one.grade != Grade::error) continue;
    one.grade = Grade::warning;
    one.path.clear();
    problems.add(std::move(one));
  }
}

}  // namespace

void read_own_sections(const std::string& path, const Environment& environment,
                       const std::function<void(Reader&)>& read, Diagnostics& problems) {
  Sections sections(path, read);
  Diagnostics found;
  const auto document = Document::load(path, environment, found);
  if (document) note_hidden(*document, sections.outline(path), path, sections, found);
  if (!document || is_hidden(found)) {
    return read_what_is_left(path, environment, read, sections, found, problems);
  }
  document->read(found, read);
  add_own(found, sections, problems);
}

}  // namespace tocsin::config
