#include "core/fields/json_value.h"

#include <cmath>

#include "core/fields/json_text.h"

namespace tocsin::core {
namespace {

using Kind = JsonTape::Kind;

constexpr double kWholeLimit = 9007199254740992.0;  // 2^53: every whole double below is exact

}  // namespace

std::string_view json_value(const JsonTape& tape, std::uint32_t index, std::string& out) {
  if (tape.at(index).kind != Kind::text) return "a text";
  out = tape.text(tape.at(index));
  return {};
}

std::string_view json_value(const JsonTape& tape, std::uint32_t index, bool& out) {
  if (tape.at(index).kind != Kind::boolean) return "true or false";
  out = tape.at(index).integer != 0;
  return {};
}

std::string_view json_value(const JsonTape& tape, std::uint32_t index, double& out) {
  const JsonTape::Node& node = tape.at(index);
  switch (node.kind) {
    case Kind::integer:
      out = static_cast<double>(node.integer);
      return {};
    case Kind::natural:
      out = static_cast<double>(node.natural);
      return {};
    case Kind::number:
      out = node.number;
      return {};
    case Kind::text:
      if (const auto number = special_number(tape.text(node))) {
        out = *number;
        return {};
      }
      break;
    default:
      break;
  }
  return R"(a number, "NaN", "Infinity" or "-Infinity")";
}

std::string_view json_value(const JsonTape& tape, std::uint32_t index, WallTime& out) {
  const JsonTape::Node& node = tape.at(index);
  const auto time = node.kind == Kind::text ? parse_rfc3339(tape.text(node)) : std::nullopt;
  if (!time) return "an RFC 3339 time such as 2026-01-02T03:04:05.678Z";
  out = *time;
  return {};
}

std::string_view json_value(const JsonTape& tape, std::uint32_t index, RunUid& out) {
  const JsonTape::Node& node = tape.at(index);
  if (node.kind != Kind::text) return "a text";
  if (tape.text(node).empty()) return {};
  const auto uid = parse_run_uid(tape.text(node));
  if (!uid) return "a UUID";
  out = *uid;
  return {};
}

std::string_view json_value(const JsonTape& tape, std::uint32_t index, Labels& out) {
  bool well = tape.at(index).kind == Kind::object;
  if (well) {
    tape.each_entry(index, [&](std::string_view key, std::uint32_t value) {
      const JsonTape::Node& node = tape.at(value);
      well = well && node.kind == Kind::text;
      if (node.kind == Kind::text) out.set(key, tape.text(node));
    });
  }
  return well ? std::string_view() : "an object of texts";
}

std::string_view json_value(const JsonTape& tape, std::uint32_t index, ValueMap& out) {
  const Value value = tape.value(index, true);
  const auto* found = as<ValueMap>(value);
  if (found == nullptr) return "an object";
  out = *found;
  return {};
}

std::string_view json_value(const JsonTape& tape, std::uint32_t index, archive::Texts& out) {
  if (tape.at(index).kind != Kind::object) return "an object of texts";
  tape.each_entry(index, [&](std::string_view key, std::uint32_t value) {
    json_any_text(tape, value, out.emplace_back(key, "").second);
  });
  return {};
}

void json_any_text(const JsonTape& tape, std::uint32_t index, std::string& out) {
  if (tape.at(index).kind == Kind::text) {
    out = tape.text(tape.at(index));
    return;
  }
  out.clear();
  JsonText(out).value(tape.value(index, false));
}

std::optional<std::int64_t> json_whole(const JsonTape& tape, std::uint32_t index) {
  const JsonTape::Node& node = tape.at(index);
  if (node.kind == Kind::integer) return node.integer;
  if (node.kind != Kind::number) return std::nullopt;
  // 12.0: some languages write whole numbers so.
  const bool whole =
      std::fabs(node.number) <= kWholeLimit && std::trunc(node.number) == node.number;
  return whole ? std::optional(static_cast<std::int64_t>(node.number)) : std::nullopt;
}

}  // namespace tocsin::core
