#include "routing/tree/read_matchers.h"

#include "core/value.h"
#include "routing/tree/matchers.h"

namespace tocsin::routing {
namespace {

using core::Value;

/// A text or a list of texts; reports anything else.
std::vector<std::string> texts_of(const config::Reader& in, std::string_view key,
                                  const Value& value) {
  if (const auto* text = core::as<std::string>(value)) return {*text};
  std::vector<std::string> out;
  const auto* list = core::as<core::ValueList>(value);
  if (list == nullptr) {
    in.error(key, "expected a matcher such as severity=\"error\", or a list of them");
    return out;
  }
  for (const Value& item : *list) {
    if (const auto* text = core::as<std::string>(item)) {
      out.push_back(*text);
    } else {
      in.error(std::string(key) + "[" + std::to_string(out.size()) + "]",
               "expected a matcher such as severity=\"error\" (put it in single quotes)");
      return {};
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> read_matchers(config::Reader& in, std::string_view key,
                                       std::string_view help) {
  Value value;
  in.any(key, value, help);
  if (in.describing() || !in.has(key)) return {};
  std::vector<std::string> texts = texts_of(in, key, value);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto parsed = Matchers::parse(texts[i]);
    if (parsed) continue;
    const std::string item = std::string(key) + "[" + std::to_string(i) + "]";
    in.error(in.value(item) ? item : key, parsed.error().message);
  }
  return texts;
}

}  // namespace tocsin::routing
