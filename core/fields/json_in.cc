#include "core/fields/json_in.h"

#include <algorithm>
#include <cmath>

#include "core/fields/json_text.h"

namespace tocsin::core {
namespace {

using Kind = JsonTape::Kind;

constexpr double kWholeLimit = 9007199254740992.0;  // 2^53: every whole double below is exact

}  // namespace

JsonIn::JsonIn(const JsonTape& tape, std::uint32_t index, std::string& error, std::string_view name)
    : tape_(&tape), index_(index), next_(index + 1), error_(&error), name_(name) {
  if (tape.at(index).kind != Kind::object && error.empty()) {
    error = name.empty() ? "expected a JSON object" : std::string(name) + ": expected an object";
  }
}

JsonIn::Index JsonIn::find(std::string_view name) const {
  const JsonTape::Node& self = tape_->at(index_);
  if (self.kind != Kind::object) return 0;
  const auto look = [&](Index from, Index end) -> Index {
    for (Index at = from; at < end; at = tape_->at(at + 1).after) {
      const JsonTape::Node& key = tape_->at(at);
      if (key.kind == Kind::text && tape_->text(key) == name) return at + 1;
    }
    return 0;
  };
  Index found = look(next_, self.after);
  if (found == 0) found = look(index_ + 1, next_);
  if (found == 0) return 0;
  next_ = tape_->at(found).after;
  return tape_->at(found).kind == Kind::null ? 0 : found;
}

JsonIn::Index JsonIn::next_item() {
  if (next_ >= tape_->at(index_).after) {
    wrong("", "a list with more items");
    return 0;
  }
  const Index item = next_;
  next_ = tape_->at(item).after;
  return item;
}

std::string JsonIn::path() const {
  std::string out = parent_ != nullptr ? parent_->path() : "";
  if (name_.empty()) return out;
  return out.append(name_).append(suffix_).append(".");
}

void JsonIn::wrong(std::string_view name, std::string_view expected) const {
  if (!ok()) return;
  std::string where = path().append(name);
  if (name.empty() && !where.empty()) where.pop_back();
  *error_ = where.append(": expected ").append(expected);
}

void JsonIn::missing(std::string_view name) const {
  if (ok()) *error_ = path().append(name).append(" is missing");
}

void JsonIn::wrong_word(std::string_view name, const std::vector<std::string_view>& words) const {
  std::string all;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i != 0) all += i + 1 == words.size() ? " or " : ", ";
    all += words[i];
  }
  wrong(name, all);
}

void JsonIn::rest(archive::Texts& texts, std::initializer_list<std::string_view> known) const {
  tape_->each_entry(index_, [&](std::string_view key, Index index) {
    if (std::find(known.begin(), known.end(), key) != known.end()) return;
    any_text(index, texts.emplace_back(key, "").second);
  });
}

void JsonIn::text(Index index, std::string_view name, std::string& out) const {
  if (tape_->at(index).kind != Kind::text) return wrong(name, "a text");
  out = tape_->text(tape_->at(index));
}

void JsonIn::any_text(Index index, std::string& out) const {
  if (tape_->at(index).kind == Kind::text) {
    out = tape_->text(tape_->at(index));
    return;
  }
  out.clear();
  JsonText(out).value(tape_->value(index, false));
}

void JsonIn::boolean(Index index, std::string_view name, bool& out) const {
  if (tape_->at(index).kind != Kind::boolean) return wrong(name, "true or false");
  out = tape_->at(index).integer != 0;
}

void JsonIn::number(Index index, std::string_view name, double& out) const {
  const JsonTape::Node& node = tape_->at(index);
  switch (node.kind) {
    case Kind::integer:
      out = static_cast<double>(node.integer);
      return;
    case Kind::natural:
      out = static_cast<double>(node.natural);
      return;
    case Kind::number:
      out = node.number;
      return;
    case Kind::text:
      if (const auto number = special_number(tape_->text(node))) {
        out = *number;
        return;
      }
      break;
    default:
      break;
  }
  wrong(name, R"(a number, "NaN", "Infinity" or "-Infinity")");
}

void JsonIn::time(Index index, std::string_view name, WallTime& out) const {
  const JsonTape::Node& node = tape_->at(index);
  const auto time = node.kind == Kind::text ? parse_rfc3339(tape_->text(node)) : std::nullopt;
  if (!time) return wrong(name, "an RFC 3339 time such as 2026-01-02T03:04:05.678Z");
  out = *time;
}

void JsonIn::uid(Index index, std::string_view name, RunUid& out) const {
  std::string text;
  this->text(index, name, text);
  if (text.empty()) return;
  const auto uid = parse_run_uid(text);
  if (!uid) return wrong(name, "a UUID");
  out = *uid;
}

void JsonIn::labels(Index index, std::string_view name, Labels& out) const {
  if (tape_->at(index).kind != Kind::object) return wrong(name, "an object of texts");
  tape_->each_entry(index, [&](std::string_view key, Index value) {
    const JsonTape::Node& node = tape_->at(value);
    if (node.kind != Kind::text) return wrong(name, "an object of texts");
    out.set(key, tape_->text(node));
  });
}

void JsonIn::map(Index index, std::string_view name, ValueMap& out) const {
  Value value = tape_->value(index, true);
  const auto* found = as<ValueMap>(value);
  if (found == nullptr) return wrong(name, "an object");
  out = *found;
}

void JsonIn::texts(Index index, std::string_view name, archive::Texts& out) const {
  if (tape_->at(index).kind != Kind::object) return wrong(name, "an object of texts");
  tape_->each_entry(index, [&](std::string_view key, Index value) {
    any_text(value, out.emplace_back(key, "").second);
  });
}

bool JsonIn::is_all(Index index) const {
  return tape_->at(index).kind == Kind::text && tape_->text(tape_->at(index)) == "all";
}

std::optional<std::int64_t> JsonIn::whole(Index index, std::string_view name, std::int64_t least,
                                          std::int64_t most) const {
  const JsonTape::Node& node = tape_->at(index);
  std::optional<std::int64_t> number;
  if (node.kind == Kind::integer) number = node.integer;
  if (node.kind == Kind::number) {  // 12.0: some languages write whole numbers so
    const bool whole =
        std::fabs(node.number) <= kWholeLimit && std::trunc(node.number) == node.number;
    if (whole) number = static_cast<std::int64_t>(node.number);
  }
  if (number && *number >= least && *number <= most) return number;
  wrong(name, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return std::nullopt;
}

}  // namespace tocsin::core
