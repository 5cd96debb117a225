// The archive that tells what a message holds: a tree of fields, from which pages and JSON Schemas
// are made.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/fields/archive.h"
#include "core/labels.h"

namespace tocsin::core {

struct FieldDoc {
  enum class Type { boolean, integer, number, text, time, uuid, object, list, texts, any };
  std::string name;
  std::string meaning;
  Type type = Type::any;
  bool required = false;
  bool nullable = false;
  bool natural = false;                 // integer: not below 0
  std::vector<std::string_view> words;  // text: one of these; empty: any
  std::vector<FieldDoc> members;        // object: its fields; list, texts: one, what each item is
  bool open = false;                    // object: has further texts
};

class Describe {
 public:
  static constexpr bool kReading = false;
  static constexpr bool kWriting = false;
  static constexpr bool kMessage = false;

  explicit Describe(std::vector<FieldDoc>& out) : out_(out) {}

  template <typename T>
  void field(std::string_view name, const T& value, std::string_view meaning = {},
             How how = How::plain) {
    if (has(how, How::message)) return;
    FieldDoc& doc = add(name, meaning);
    doc.required = has(how, How::required);
    doc.nullable = has(how, How::null_if_empty);
    describe(doc, value);
  }
  template <typename Members>
  void object(std::string_view name, std::string_view meaning, Members&& members) {
    FieldDoc& doc = add(name, meaning);
    doc.type = FieldDoc::Type::object;
    Describe in(doc.members);
    members(in);
    doc.open = in.open_;
  }
  template <typename T, typename Members>
  void list(std::string_view name, const std::vector<T>& /*items*/, std::string_view meaning,
            Members&& members) {
    FieldDoc& doc = add(name, meaning);
    doc.type = FieldDoc::Type::list;
    FieldDoc& item = doc.members.emplace_back();
    item.type = FieldDoc::Type::object;
    Describe in(item.members);
    const T blank{};
    members(in, blank);
  }
  template <typename T, typename V>
  void named(std::string_view name, const std::vector<T>& /*items*/, std::string_view meaning,
             std::string T::* /*item_name*/, V T::* /*item_value*/) {
    FieldDoc& doc = add(name, meaning);
    doc.type = FieldDoc::Type::texts;
    describe(doc.members.emplace_back(), T{});
  }
  void rest(const archive::Texts& /*texts*/, std::initializer_list<std::string_view> /*known*/) {
    open_ = true;
  }

 private:
  FieldDoc& add(std::string_view name, std::string_view meaning) {
    FieldDoc& doc = out_.emplace_back();
    doc.name = name;
    doc.meaning = meaning;
    return doc;
  }

  template <typename T>
  void describe(FieldDoc& doc, const T& value) {
    using Type = FieldDoc::Type;
    if constexpr (archive::kOptional<T>) {
      doc.nullable = true;
      describe(doc, typename T::value_type{});
    } else if constexpr (std::is_same_v<T, bool>) {
      doc.type = Type::boolean;
    } else if constexpr (std::is_floating_point_v<T>) {
      doc.type = Type::number;
    } else if constexpr (std::is_integral_v<T>) {
      doc.type = Type::integer;
      doc.natural = std::is_unsigned_v<T>;
    } else if constexpr (std::is_enum_v<T>) {
      doc.type = Type::text;
      doc.nullable = doc.nullable || to_string(T{}).empty();
      for (const T word : Words<T>::kAll) doc.words.push_back(to_string(word));
    } else if constexpr (std::is_same_v<T, WallTime>) {
      doc.type = Type::time;
      doc.nullable = true;
    } else if constexpr (std::is_same_v<T, RunUid>) {
      doc.type = Type::uuid;
    } else if constexpr (std::is_same_v<T, std::string> || archive::kAnyText<T>) {
      doc.type = Type::text;
    } else if constexpr (std::is_same_v<T, Value>) {
      doc.type = Type::any;
    } else if constexpr (std::is_same_v<T, ValueMap>) {
      doc.type = Type::texts;
      doc.members.emplace_back();
    } else if constexpr (std::is_same_v<T, Labels> || std::is_same_v<T, archive::Texts>) {
      doc.type = Type::texts;
      doc.members.emplace_back().type = Type::text;
    } else if constexpr (archive::kList<T>) {
      doc.type = Type::list;
      describe(doc.members.emplace_back(), typename T::value_type{});
    } else if constexpr (archive::kAllOr<T>) {
      describe(doc, value.list);
      doc.words.emplace_back("all");
    } else if constexpr (archive::kMap<T>) {
      doc.type = Type::texts;
      describe(doc.members.emplace_back(), typename T::mapped_type{});
    } else {
      doc.type = Type::object;
      Describe in(doc.members);
      fields(in, value);
    }
  }

  std::vector<FieldDoc>& out_;
  bool open_ = false;
};

/// The fields of a message, in the order in which they are written.
template <typename T>
std::vector<FieldDoc> describe_fields() {
  std::vector<FieldDoc> out;
  Describe archive(out);
  const T message{};
  fields(archive, message);
  return out;
}

/// The keywords of JSON Schema for an object with these fields. Further ones are allowed: readers
/// pass them over.
ValueMap json_schema(const std::vector<FieldDoc>& fields);
/// A table of the fields for a page: path, type, meaning.
std::string field_table(const std::vector<FieldDoc>& fields);

}  // namespace tocsin::core
