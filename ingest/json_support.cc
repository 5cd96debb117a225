#include "ingest/json_support.h"

#include <array>
#include <cmath>
#include <utility>

namespace tocsin::ingest {
namespace {

constexpr double kWholeLimit = 9007199254740992.0;  // 2^53: every whole double below is exact

}  // namespace

core::Result<Json> parse_json(std::string_view text, std::size_t max_bytes) {
  if (const auto bounded = core::check_json_bounds(text, max_bytes); !bounded) {
    return bounded.error();
  }
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    // The library's own prefix "[json.exception.parse_error.101] " tells the reader nothing.
    const std::string_view words = e.what();
    const std::size_t start = words.find("] ");
    return core::invalid_argument(
        "not JSON: " + std::string(start == words.npos ? words : words.substr(start + 2)));
  }
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json number_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::optional<double> number_from(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

Json value_json(const core::Value& value) {
  struct Writer {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool flag) const { return flag; }
    Json operator()(std::int64_t number) const { return number; }
    Json operator()(double number) const { return number_json(number); }
    Json operator()(const std::string& text) const { return text; }
    Json operator()(const core::ValueList& list) const {
      Json out = Json::array();
      for (const core::Value& item : list) out.push_back(value_json(item));
      return out;
    }
    Json operator()(const core::ValueMap& map) const {
      Json out = Json::object();
      for (const auto& [key, item] : map) out[key] = value_json(item);
      return out;
    }
  };
  return std::visit(Writer{}, value.storage());
}

core::Value value_from(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return static_cast<double>(number);
      }
      return static_cast<std::int64_t>(number);
    }
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string: {
      if (const auto number = number_from(json)) return *number;
      return json.get<std::string>();
    }
    case Json::value_t::array: {
      core::ValueList list;
      for (const Json& item : json) list.push_back(value_from(item));
      return list;
    }
    case Json::value_t::object: {
      core::ValueMap map;
      for (const auto& [key, item] : json.items()) map.emplace_back(key, value_from(item));
      return map;
    }
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return {};
}

Json labels_json(const core::Labels& labels) {
  Json out = Json::object();
  for (const auto& [name, value] : labels.entries()) out[name] = value;
  return out;
}

Json time_json(core::WallTime time) { return core::to_rfc3339(time); }

Json time_or_null(core::WallTime time) {
  return time == core::WallTime{} ? Json(nullptr) : time_json(time);
}

Fields::Fields(const Json& object, std::string path, std::string& error)
    : object_(&object), path_(std::move(path)), error_(&error) {
  if (!object.is_object() && error_->empty()) {
    *error_ = path_.empty() ? "expected a JSON object" : path_ + " expected an object";
  }
}

const Json* Fields::find(std::string_view name) const {
  if (!object_->is_object()) return nullptr;
  const auto found = object_->find(name);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

void Fields::wrong(std::string_view name, std::string_view expected) const {
  if (error_->empty()) {
    *error_ = path_ + std::string(name) + ": expected " + std::string(expected);
  }
}

void Fields::missing(std::string_view name) const {
  if (error_->empty()) *error_ = path_ + std::string(name) + " is missing";
}

void Fields::text(std::string_view name, std::string& out) const {
  const Json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_string()) return wrong(name, "a text");
  out = found->get_ref<const std::string&>();
}

void Fields::boolean(std::string_view name, bool& out) const {
  const Json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_boolean()) return wrong(name, "true or false");
  out = found->get<bool>();
}

void Fields::number(std::string_view name, double& out) const {
  const Json* found = find(name);
  if (found == nullptr) return;
  const auto number = number_from(*found);
  if (!number) return wrong(name, R"(a number, "NaN", "Infinity" or "-Infinity")");
  out = *number;
}

void Fields::time(std::string_view name, core::WallTime& out) const {
  std::optional<core::WallTime> found;
  time(name, found);
  if (found) out = *found;
}

void Fields::time(std::string_view name, std::optional<core::WallTime>& out) const {
  const Json* found = find(name);
  if (found == nullptr) return;
  const auto parsed =
      found->is_string() ? core::parse_rfc3339(found->get_ref<const std::string&>()) : std::nullopt;
  if (!parsed) return wrong(name, "an RFC 3339 time such as 2026-01-02T03:04:05.678Z");
  out = *parsed;
}

void Fields::labels(std::string_view name, core::Labels& out) const {
  const Json* found = find(name);
  if (found == nullptr) return;
  if (!found->is_object()) return wrong(name, "an object of texts");
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) return wrong(name, "an object of texts");
    out.set(key, value.get_ref<const std::string&>());
  }
}

void Fields::value(std::string_view name, core::Value& out) const {
  if (const Json* found = find(name)) out = value_from(*found);
}

void Fields::uid(std::string_view name, core::RunUid& out) const {
  std::string text;
  this->text(name, text);
  if (text.empty()) return;
  const auto uid = core::parse_run_uid(text);
  if (!uid) return wrong(name, "a UUID");
  out = *uid;
}

std::optional<std::int64_t> Fields::whole(std::string_view name, std::int64_t least,
                                          std::int64_t most) const {
  const Json* found = find(name);
  if (found == nullptr) return std::nullopt;
  std::int64_t number = 0;
  bool good = false;
  if (found->is_number_unsigned()) {
    const auto raw = found->get<std::uint64_t>();
    good = raw <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    number = static_cast<std::int64_t>(raw);
  } else if (found->is_number_integer()) {
    number = found->get<std::int64_t>();
    good = true;
  } else if (found->is_number_float()) {  // 12.0: some languages write whole numbers so
    const double raw = found->get<double>();
    good = std::fabs(raw) <= kWholeLimit && std::trunc(raw) == raw;
    if (good) number = static_cast<std::int64_t>(raw);
  }
  if (!good || number < least || number > most) {
    wrong(name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    return std::nullopt;
  }
  return number;
}

}  // namespace tocsin::ingest
