// Door of config: one YAML file (and what it includes) → checked structs, with every error at its
// file, line and column. One declaration per part parses, validates, documents and makes the
// schema.
//
// A part writes
//
//   struct Config { double ratio = 10; Duration every = 1s; };
//   void read(config::Reader& in, Config& cfg) {
//     in.optional("ratio", cfg.ratio, config::greater_than(1.0), "newest norm over the median");
//     in.optional("every", cfg.every, config::positive(), "time between samples");
//   }
//
// and is read in two modes through the same function: *parsing* (fills the struct from YAML,
// reports unknown keys with the nearest known one) and *describing* (records name, type, default,
// range and help of each key, for JSON Schema and the docs tables).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/issue.h"
#include "core/result.h"
#include "core/time.h"
#include "core/value.h"

namespace tocsin::config {

struct Location {
  std::string file;
  int line = 0;    // from 1; 0 = unknown
  int column = 0;  // from 1
};

/// error: surely wrong, nothing starts. warning: most likely not what was meant; `check --strict`
/// refuses it. note: right only if something outside this file makes it so.
enum class Grade { note, warning, error };
std::string_view to_string(Grade grade) noexcept;

struct Diagnostic {
  Location location;
  Grade grade = Grade::error;
  std::string path;     // "receivers.oncall.webhook.url"
  std::string message;  // says what was expected and, where there is one, the nearest valid name
  bool unknown_key = false;  // `path` ends in a key that nobody asked for
};

/// "file:line:column: error: message (at path)".
std::string to_text(const Diagnostic& diagnostic);

/// Collects every problem of a configuration; owned by whoever loads it.
class Diagnostics {
 public:
  void add(Diagnostic diagnostic) { items_.push_back(std::move(diagnostic)); }
  [[nodiscard]] const std::vector<Diagnostic>& items() const noexcept { return items_; }
  [[nodiscard]] std::vector<Diagnostic>& items() noexcept { return items_; }
  [[nodiscard]] bool has_errors() const noexcept;
  /// By file (`first` before the files it includes), line and column.
  void sort(std::string_view first);

 private:
  std::vector<Diagnostic> items_;
};

/// A credential. Prints as <redacted>; opened only by the adapter that sends it. A `*_file` secret
/// is read again at each reveal() whose file changed, so that rotation needs no reload.
class Secret {
 public:
  Secret() = default;
  static Secret from_value(std::string value);
  static Secret from_file(std::string path);

  [[nodiscard]] bool set() const noexcept { return !value_.empty() || !path_.empty(); }
  /// The credential, trailing newline of a file stripped. not_found / invalid_argument (empty).
  [[nodiscard]] core::Result<std::string> reveal() const;

 private:
  std::string value_;
  std::string path_;
};

/// Size in bytes, written as 64MiB, 512KiB, 900KB or a plain number.
struct Bytes {
  std::uint64_t count = 0;
  friend auto operator<=>(const Bytes&, const Bytes&) = default;
};

/// A range check with its words: ok(value) and what the error and the docs table say.
template <typename T>
struct Check {
  std::function<bool(const T&)> ok;
  std::string expected;           // "> 1", "1 … 100", "one of a, b"
  std::optional<double> minimum;  // for the schema
  std::optional<double> maximum;
  bool exclusive_minimum = false;
  std::vector<std::string> choices;
};

template <typename T>
Check<T> greater_than(T limit);
template <typename T>
Check<T> at_least(T limit);
template <typename T>
Check<T> between(T low, T high);
/// Above `low`, and at most `high`.
Check<double> above(double low, double high);
template <>
Check<core::Duration> at_least(core::Duration limit);
template <>
Check<core::Duration> between(core::Duration low, core::Duration high);
Check<core::Duration> positive();
Check<std::string> one_of(std::vector<std::string> choices);
Check<std::string> not_empty();
/// The same of a key that may be left out.
template <typename T>
Check<std::optional<T>> if_given(Check<T> check) {
  const auto ok = [inner = std::move(check.ok)](const std::optional<T>& value) {
    return !value || inner(*value);
  };
  return {ok, check.expected, check.minimum, check.maximum, check.exclusive_minimum, {}};
}

/// One key as declared: for JSON Schema and the docs tables.
struct KeyDoc;

class Reader;
/// What a map holds when the key it depends on has one of these values.
struct Shape {
  std::vector<std::string> values;
  std::function<void(Reader&)> read;
};

/// A map of the YAML document being read, or of a part being described. Not copyable; lives only
/// inside the read function it is passed to. Types: bool, int64, uint64, int, uint32, double,
/// string, Duration, Bytes, vector<string>, map<string,string> (as Value), Secret (see secret()).
class Reader {
 public:
  struct Impl;
  explicit Reader(Impl& impl) : impl_(&impl) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  template <typename T>
  void required(std::string_view key, T& out, std::type_identity_t<Check<T>> check,
                std::string_view help) {
    read_key(key, out, &check, help, true);
  }
  template <typename T>
  void required(std::string_view key, T& out, std::string_view help) {
    read_key<T>(key, out, nullptr, help, true);
  }
  template <typename T>
  void optional(std::string_view key, T& out, std::type_identity_t<Check<T>> check,
                std::string_view help) {
    read_key(key, out, &check, help, false);
  }
  template <typename T>
  void optional(std::string_view key, T& out, std::string_view help) {
    read_key<T>(key, out, nullptr, help, false);
  }

  /// `key` or `key_file`, at most one of them; `needed`: one of them.
  void secret(std::string_view key, Secret& out, std::string_view help, bool needed = false);

  /// A nested map; `read` is called when it is present, and when describing. True if present.
  bool section(std::string_view key, std::string_view help,
               const std::function<void(Reader&)>& read);
  /// A list of maps; an item that is a bare text is passed as {"": text} if `bare_key` names the
  /// key it stands for.
  void list(std::string_view key, std::string_view help, const std::function<void(Reader&)>& read,
            std::string_view bare_key = {});
  /// A map whose keys the user chooses.
  void map(std::string_view key, std::string_view help,
           const std::function<void(const std::string& name, Reader&)>& read);
  /// Any YAML subtree as a Value (for pass-through such as librdkafka properties). `schema`: JSON
  /// Schema of what the caller accepts, for editors; empty: everything.
  void any(std::string_view key, core::Value& out, std::string_view help,
           std::string_view schema = {});
  /// Describing only: which values a declared key may have, where the caller checks them itself.
  void choices(std::string_view key, std::vector<std::string> values);
  /// Describing only: each item of the list at this path may hold such a list again, under the
  /// list's own key ("route.routes": a tree that was described one level deep).
  void recurs(std::string_view path);
  /// Describing only: what `key` holds depends on the value of `by`.
  void depends(std::string_view key, std::string_view by, const std::vector<Shape>& shapes);
  /// Describing only: every key of `read` may stand here behind each of `prefixes`, which are spellings of
  /// one name; tables show the first. `help`: what is said of a key; empty: tables leave it out.
  void prefixed(const std::vector<std::string>& prefixes, const std::function<void(Reader&)>& read,
                const std::function<std::string(const std::string& key)>& help);
  /// Describing only: `keys` are known beside the key `mark` alone, and others for which the same is said;
  /// beside it exactly one of each of `needs` must stand.
  void only_beside(std::string_view mark, std::vector<std::string> keys,
                   std::vector<std::vector<std::string>> needs = {});
  /// Exactly one of these keys must be present (checked when parsing; noted in the schema).
  void exactly_one_of(std::initializer_list<std::string_view> keys);

  [[nodiscard]] bool has(std::string_view key) const;
  /// True in the describing pass: defaults are meaningful, values are not.
  [[nodiscard]] bool describing() const noexcept;
  /// Where `key` (or the map itself) stands. Here and below `key` may also be a path as diagnostics
  /// name it: "routes[0].matchers[1]".
  [[nodiscard]] Location location(std::string_view key = {}) const;
  /// What stands there, variables replaced; nullopt: nothing.
  [[nodiscard]] std::optional<core::Value> value(std::string_view key) const;
  /// Reports a problem found by the caller (cross-references, parse errors inside a text).
  void error(std::string_view key, std::string message) const;
  /// The same at one character of a text: `offset` counts its bytes as they were read, from 0.
  void error_at(std::string_view key, std::size_t offset, std::string message) const;
  void warning(std::string_view key, std::string message) const;
  void note(std::string_view key, std::string message) const;
  /// Effective values so far, in declaration order, with origin default|user: params_hash and
  /// evidence.
  [[nodiscard]] std::vector<core::Parameter> effective() const;

 private:
  template <typename T>
  void read_key(std::string_view key, T& out, const Check<T>* check, std::string_view help,
                bool needed);
  Impl* impl_;
};

using Environment = std::function<std::optional<std::string>(const std::string& name)>;
/// The process environment.
Environment process_environment();

/// A loaded file with its includes, before any room has read its section.
class Document {
 public:
  /// Reads, parses, checks duplicate keys, resolves `include`, `${VAR}`, `${VAR:-default}`, `$${`.
  /// Problems go to `diagnostics`; nullopt only when nothing could be read at all.
  static std::optional<Document> load(const std::string& path, const Environment& environment,
                                      Diagnostics& diagnostics);
  static std::optional<Document> parse(std::string_view text, const std::string& name,
                                       const Environment& environment, Diagnostics& diagnostics);

  /// Runs `read` over the root map, then reports every key that it did not ask for.
  void read(Diagnostics& diagnostics, const std::function<void(Reader&)>& read) const;
  /// What stands at a path such as "rules[0].use", variables replaced; nullopt: nothing.
  [[nodiscard]] std::optional<core::Value> value(std::string_view path) const;

  Document(Document&&) noexcept;
  Document& operator=(Document&&) noexcept;
  ~Document();

 private:
  struct Tree;
  explicit Document(std::unique_ptr<Tree> tree);
  std::unique_ptr<Tree> tree_;
};

/// JSON Schema (draft-07) of what `read` declares.
std::string schema(std::string_view title, const std::function<void(Reader&)>& read);

struct KeyDoc {
  std::string path;      // "http.tls.ca_file"
  std::string type;      // "duration", "integer", …
  std::string fallback;  // default as text; empty for required
  std::string range;
  std::string help;
  bool required = false;
};
/// One row per key, depth first: the table of a part's docs page.
std::vector<KeyDoc> describe(const std::function<void(Reader&)>& read);
/// The rows as a Markdown table.
std::string to_markdown(const std::vector<KeyDoc>& keys);

/// Reads a configuration file that several programs share, for the sections of one: whatever stands in the others,
/// YAML that cannot be read included, takes nothing away. Runs `read` over its own sections. Problems of these are errors, each of which leaves the default. A place without
/// a path where the file is no YAML, outside of them, is a warning; other problems there are nobody's here.
void read_own_sections(const std::string& path, const Environment& environment,
                       const std::function<void(Reader&)>& read, Diagnostics& problems);

}  // namespace tocsin::config
