#include "core/fields/json_in.h"

#include <algorithm>

namespace tocsin::core {
namespace {

using Kind = JsonTape::Kind;

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
    json_any_text(*tape_, index, texts.emplace_back(key, "").second);
  });
}

}  // namespace tocsin::core
