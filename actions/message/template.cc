#include "actions/message/template.h"

#include <array>
#include <cstdio>
#include <kainjow/mustache.hpp>
#include <optional>
#include <stdexcept>

#include "core/html_text.h"

namespace tocsin::actions {
namespace {

namespace mustache = kainjow::mustache;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool is_name(std::string_view text) {
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  bool dot = true;  // also before the first character
  for (const char c : text) {
    if (!part(c) && (c != '.' || dot)) return false;
    dot = c == '.';
  }
  return !dot;
}

core::Error problem(std::size_t at, const std::string& what) {
  return core::invalid_argument("at byte " + std::to_string(at) + ": " + what);
}

// Follows the sections of a template while its tags are read from the left.
class Sections {
 public:
  std::optional<core::Error> open(std::string_view name, std::size_t at) {
    open_.emplace_back(name);
    if (open_.size() <= Template::kMaxDepth) return std::nullopt;
    return problem(at, "more than " + std::to_string(Template::kMaxDepth) + " nested sections");
  }
  std::optional<core::Error> close(std::string_view name, std::size_t at) {
    if (!open_.empty() && open_.back() == name) return open_.pop_back(), std::nullopt;
    return problem(at, "{{/" + std::string(name) + "}} closes no open section");
  }
  [[nodiscard]] const std::vector<std::string>& left() const { return open_; }

 private:
  std::vector<std::string> open_;
};

// Looks names up and goes through lists as Mustache does, in no more steps than allowed.
class BoundedContext final : public mustache::context<std::string> {
 public:
  explicit BoundedContext(const mustache::data* view) : context(view) {}
  const mustache::data* get(const std::string& name) const override {
    step();
    return context::get(name);
  }
  void push(const mustache::data* data) override {
    step();
    context::push(data);
  }

 private:
  void step() const {
    if (++steps_ > Template::kMaxSteps) throw std::length_error("too many steps");
  }
  mutable std::size_t steps_ = 0;
};

struct BoundedText {
  std::string text;
  BoundedText& operator<<(const std::string& more) {
    if (text.size() + more.size() > Template::kMaxOutput) throw std::length_error("too long");
    text += more;
    return *this;
  }
};

// What is empty or null is absent: a section about it is left out.
mustache::data data_of(const core::Value& value) {
  const auto& storage = value.storage();
  if (const auto* flag = std::get_if<bool>(&storage)) return *flag;
  if (const auto* text = std::get_if<std::string>(&storage)) {
    if (text->empty()) return false;
    return *text;
  }
  if (const auto* list = std::get_if<core::ValueList>(&storage)) {
    mustache::data out(mustache::data::type::list);
    for (const auto& item : *list) out.push_back(data_of(item));
    return out;
  }
  if (const auto* map = std::get_if<core::ValueMap>(&storage)) {
    mustache::data out;
    for (const auto& [name, item] : *map) out[name] = data_of(item);
    return out;
  }
  if (value.is_null()) return false;
  return core::to_json(value);
}

}  // namespace

core::Result<Template> Template::parse(std::string text, Escape escape) {
  if (text.size() > kMaxText) return core::invalid_argument("longer than 64 KiB");
  Template out(std::move(text), escape);
  const std::string_view all = out.text_;
  Sections sections;
  for (std::size_t at = all.find("{{"); at != std::string_view::npos;) {
    const std::size_t end = all.find("}}", at + 2);
    if (end == std::string_view::npos) return problem(at, "{{ without }}");
    std::string_view name = trimmed(all.substr(at + 2, end - at - 2));
    const char kind = name.empty() ? ' ' : name.front();
    if (kind == '#' || kind == '^' || kind == '/') name = trimmed(name.substr(1));
    if (kind != '!') {
      if (!is_name(name)) {
        return problem(at, "only {{name}}, {{#name}}, {{^name}}, {{/name}} and {{!comment}}");
      }
      std::optional<core::Error> wrong;
      if (kind == '#' || kind == '^') wrong = sections.open(name, at);
      if (kind == '/') wrong = sections.close(name, at);
      if (wrong) return *wrong;
      if (kind != '/') out.names_.emplace_back(name);
    }
    at = all.find("{{", end + 2);
  }
  if (!sections.left().empty()) {
    return core::invalid_argument("{{#" + sections.left().back() + "}} is never closed");
  }
  if (const mustache::mustache read(out.text_); !read.is_valid()) {
    return core::invalid_argument(read.error_message());
  }
  return out;
}

core::Result<std::string> Template::render(const core::Value& view) const {
  // Read anew each time: filling in keeps its place in what was read, and threads share us.
  mustache::mustache read(text_);
  switch (escape_) {
    case Escape::none:
      read.set_custom_escape([](const std::string& text) { return text; });
      break;
    case Escape::html:
      read.set_custom_escape([](const std::string& text) { return core::html_escaped(text); });
      break;
    case Escape::json:
      read.set_custom_escape(json_escape);
      break;
  }
  const mustache::data data = data_of(view);
  BoundedContext context(&data);
  BoundedText out;
  try {
    read.render(context, out);
  } catch (const std::length_error& error) {
    return core::Error{core::Code::invalid_argument, std::string("the message: ") + error.what()};
  }
  return std::move(out.text);
}

std::string json_escape(std::string_view text) {
  const std::string quoted = core::to_json(core::Value{std::string(text)});
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace tocsin::actions
