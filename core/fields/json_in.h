// The archive that reads a message from JSON. Total on any text: an absent or null field leaves its
// target alone, an unknown one is passed over, a wrong one is remembered with its path (the first
// only) and leaves its target alone too.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fields/archive.h"
#include "core/fields/json_tape.h"
#include "core/fields/json_value.h"
#include "core/labels.h"

namespace tocsin::core {

/// One object of a tape, or one list that stands for a row.
class JsonIn {
 public:
  static constexpr bool kReading = true;
  static constexpr bool kWriting = false;
  static constexpr bool kMessage = false;

  /// The object at `index`; `tape` and `error` outlive this. `name` is put before the paths.
  JsonIn(const JsonTape& tape, std::uint32_t index, std::string& error, std::string_view name = {});

  [[nodiscard]] bool ok() const noexcept { return error_->empty(); }
  /// Present and not null.
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != 0; }
  /// Its place in the tape; 0: absent or null.
  [[nodiscard]] std::uint32_t find(std::string_view name) const;
  void wrong(std::string_view name, std::string_view expected) const;
  void missing(std::string_view name) const;

  template <typename T>
  void field(std::string_view name, T&& value, std::string_view /*meaning*/ = {},
             How how = How::plain) {
    const std::uint32_t index = find(name);
    if (index != 0) {
      take(index, name, value);
    } else if (core::has(how, How::required)) {
      missing(name);
    }
    if constexpr (std::is_same_v<std::remove_cvref_t<T>, std::string>) {
      if (core::has(how, How::required) && value.empty()) missing(name);
    }
  }
  /// An object whose fields `members(archive)` names.
  template <typename Members>
  void object(std::string_view name, std::string_view /*meaning*/, Members&& members) {
    if (const std::uint32_t index = find(name)) inside(index, name, "", members);
  }
  /// A list of objects; `members(archive, item)` names the fields of one.
  template <typename T, typename Members>
  void list(std::string_view name, std::vector<T>& items, std::string_view /*meaning*/,
            Members&& members) {
    each(find(name), name, [&](std::uint32_t index) {
      inside(index, name, "[]", [&](JsonIn& in) { members(in, items.emplace_back()); });
    });
  }
  /// An object whose keys are the items' names; an item that is no object is its value alone.
  template <typename T, typename Value>
  void named(std::string_view name, std::vector<T>& items, std::string_view /*meaning*/,
             std::string T::*item_name, Value T::*item_value) {
    object(name, {}, [&](JsonIn& all) {
      all.tape_->each_entry(all.index_, [&](std::string_view key, std::uint32_t index) {
        T& item = items.emplace_back();
        item.*item_name = std::string(key);
        if (tape_->at(index).kind == JsonTape::Kind::object) {
          all.inside(index, key, "", [&](JsonIn& in) { fields(in, item); });
        } else {
          all.take(index, key, item.*item_value);
        }
      });
    });
  }
  /// The entries of this object that are not among `known`.
  void rest(archive::Texts& texts, std::initializer_list<std::string_view> known) const;

  /// A list of lists, one row(archive, item) each: how state records hold many small entries.
  template <typename Items>
  void rows(std::string_view name, Items& items) {
    rows_at(find(name), name, items);
  }
  // Inside a row:
  template <typename T>
  void item(T&& value) {
    if (const std::uint32_t index = next_item()) take(index, "", value);
  }
  template <typename Items>
  void items(Items& items) {
    if (const std::uint32_t index = next_item()) rows_at(index, "", items);
  }

 private:
  using Index = std::uint32_t;  // 0: no such thing (the root is nobody's field)

  JsonIn(const JsonIn& parent, Index index, std::string_view name, std::string_view suffix)
      : tape_(parent.tape_),
        index_(index),
        next_(index + 1),
        error_(parent.error_),
        parent_(&parent),
        name_(name),
        suffix_(suffix) {}

  [[nodiscard]] Index next_item();
  [[nodiscard]] std::string path() const;

  template <typename Visit>
  void inside(Index index, std::string_view name, std::string_view suffix, Visit&& visit) {
    if (tape_->at(index).kind != JsonTape::Kind::object) {
      return wrong(name, suffix.empty() ? "an object" : "a list of objects");
    }
    JsonIn in(*this, index, name, suffix);
    visit(in);
  }
  template <typename Visit>
  void each(Index index, std::string_view name, Visit&& visit) {
    if (index == 0) return;
    if (tape_->at(index).kind != JsonTape::Kind::list) return wrong(name, "a list");
    tape_->each_item(index, visit);
  }
  template <typename Items>
  void rows_at(Index index, std::string_view name, Items& items) {
    each(index, name, [&](Index item) {
      if (tape_->at(item).kind != JsonTape::Kind::list) return wrong(name, "a list of lists");
      JsonIn in(*this, item, name, "[]");
      if constexpr (archive::kMap<Items>) {
        auto entry = archive::blank<typename Items::key_type, typename Items::mapped_type>();
        row(in, entry);
        items.insert(std::move(entry));
      } else if constexpr (archive::kPair<typename Items::value_type>) {
        using Entry = typename Items::value_type;
        auto entry = archive::blank<typename Entry::first_type, typename Entry::second_type>();
        row(in, entry);
        items.push_back(std::move(entry));
      } else {
        row(in, items.emplace_back());
      }
    });
  }

  void wrong_word(std::string_view name, const std::vector<std::string_view>& words) const;

  template <typename E>
  void word(Index index, std::string_view name, E& out) {
    std::string said;
    take(index, name, said);
    if (said.empty()) return;
    for (const E value : Words<E>::kAll) {
      if (to_string(value) == said) {
        out = value;
        return;
      }
    }
    std::vector<std::string_view> words;
    words.reserve(std::size(Words<E>::kAll));
    for (const E value : Words<E>::kAll) words.push_back(to_string(value));
    wrong_word(name, words);
  }

  template <typename T>
  void integer(Index index, std::string_view name, T& out) const {
    constexpr auto kLeast = static_cast<std::int64_t>(std::numeric_limits<T>::min());
    constexpr std::int64_t kMost = sizeof(T) == 8
                                       ? std::numeric_limits<std::int64_t>::max()
                                       : static_cast<std::int64_t>(std::numeric_limits<T>::max());
    const auto found = json_whole(*tape_, index);
    if (found && *found >= kLeast && *found <= kMost) {
      out = static_cast<T>(*found);
    } else {
      wrong(name, "a whole number from " + std::to_string(kLeast) + " to " + std::to_string(kMost));
    }
  }

  /// The value at `index` into `out`, whatever that is.
  template <typename T>
  void take(Index index, std::string_view name, T& out) {
    if constexpr (archive::kOptional<T>) {
      typename T::value_type found{};
      take(index, name, found);
      if (ok()) out = std::move(found);
    } else if constexpr (requires { json_value(*tape_, index, out); }) {
      const std::string_view expected = json_value(*tape_, index, out);
      if (!expected.empty()) wrong(name, expected);
    } else if constexpr (std::is_integral_v<T>) {
      integer(index, name, out);
    } else if constexpr (std::is_enum_v<T>) {
      word(index, name, out);
    } else if constexpr (std::is_same_v<T, Value>) {
      out = tape_->value(index, true);
    } else {
      take_other(index, name, out);
    }
  }
  template <typename T>
  void take_other(Index index, std::string_view name, T& out) {
    if constexpr (archive::kAnyText<std::remove_const_t<T>>) {
      json_any_text(*tape_, index, out.text);
    } else if constexpr (archive::kNumber<std::remove_const_t<T>>) {
      std::int64_t number = 0;
      integer(index, name, number);
      if (number < 0 || number > static_cast<std::int64_t>(out.last)) {
        return wrong(name, "a number that stands for something");
      }
      out.value = static_cast<std::remove_cvref_t<decltype(out.value)>>(number);
    } else if constexpr (archive::kNanoseconds<std::remove_const_t<T>>) {
      std::int64_t number = 0;
      integer(index, name, number);
      out.time = wall_time(number);
    } else if constexpr (archive::kAllOr<std::remove_const_t<T>>) {
      const JsonTape::Node& node = tape_->at(index);
      const bool all = node.kind == JsonTape::Kind::text && tape_->text(node) == "all";
      if (!all) take(index, name, out.list);
    } else if constexpr (archive::kList<T>) {
      each(index, name, [&](Index item) {
        if constexpr (std::is_class_v<typename T::value_type> &&
                      !std::is_same_v<typename T::value_type, std::string>) {
          inside(item, name, "[]", [&](JsonIn& in) { fields(in, out.emplace_back()); });
        } else {
          typename T::value_type found{};
          take(item, name, found);
          out.push_back(std::move(found));
        }
      });
    } else if constexpr (archive::kMap<T>) {
      inside(index, name, "", [&](JsonIn& in) {
        tape_->each_entry(index, [&](std::string_view key, Index value) {
          in.take(value, key, out[std::string(key)]);
        });
      });
    } else {
      inside(index, name, "", [&](JsonIn& in) { fields(in, out); });
    }
  }

  const JsonTape* tape_;
  Index index_;
  mutable Index next_;  // where the next field is looked for first: they mostly come in order
  std::string* error_;
  const JsonIn* parent_ = nullptr;
  std::string_view name_;
  std::string_view suffix_;
};

/// `message` as the text says it, or what is wrong with it and where (invalid_argument).
template <typename T>
Status read_json(std::string_view text, std::size_t max_bytes, T& message) {
  const Result<JsonTape> tape = JsonTape::parse(text, max_bytes);
  if (!tape) return tape.error();
  std::string error;
  JsonIn in(*tape, 0, error);
  if (in.ok()) fields(in, message);
  if (!error.empty()) return invalid_argument(std::move(error));
  return core::ok();
}

}  // namespace tocsin::core
