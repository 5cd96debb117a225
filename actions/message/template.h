// Templates of messages: Mustache without anything that leaves its data. Internal to actions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/value.h"

namespace tocsin::actions {

/// What becomes of a value when it is filled in: by where the text goes.
enum class Escape {
  none,  // plain text
  html,  // also inside a quoted attribute
  json,  // inside a string
};

/// {{name}}, {{#name}}…{{/name}}, {{^name}}…{{/name}}, {{!comment}}; a name may be a path
/// (labels.job). No partials, no unescaped values, no other delimiters, no functions: values are
/// never read as a template, and nothing but the view is looked at. Immutable, thread-safe.
class Template {
 public:
  static constexpr std::size_t kMaxText = 64 * 1024;
  static constexpr std::size_t kMaxDepth = 16;  // sections inside sections
  static constexpr std::size_t kMaxOutput = 1024 * 1024;
  static constexpr std::size_t kMaxSteps =
      200'000;  // of one render(): names looked up, entries gone through

  /// invalid_argument says what is wrong with the text, and at which byte.
  static core::Result<Template> parse(std::string text, Escape escape);
  /// `view`: a map. A name that it does not have is empty. invalid_argument: over a limit.
  [[nodiscard]] core::Result<std::string> render(const core::Value& view) const;
  /// The names it uses, in their order, repeated ones too.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

 private:
  Template(std::string text, Escape escape) : text_(std::move(text)), escape_(escape) {}
  std::string text_;
  Escape escape_;
  std::vector<std::string> names_;
};

/// The text inside the quotes of a JSON string.
std::string json_escape(std::string_view text);

}  // namespace tocsin::actions
