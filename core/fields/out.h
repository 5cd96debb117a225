// The archive that writes a message: as JSON text or as a core::Value (the sink), as a record or as
// a message (the form; see How).
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
#include "core/fields/json_text.h"
#include "core/fields/value_sink.h"
#include "core/labels.h"

namespace tocsin::core {

enum class Form { record, message };

template <typename Sink, Form kForm>
class Out {
 public:
  static constexpr bool kReading = false;
  static constexpr bool kWriting = true;
  static constexpr bool kMessage = kForm == Form::message;

  explicit Out(Sink& sink) : sink_(sink) {}

  template <typename T>
  void field(std::string_view name, const T& value, std::string_view /*meaning*/ = {},
             How how = How::plain) {
    if (has(how, kMessage ? How::record : How::message)) return;
    if (has(how, How::omit_if_empty) && is_empty(value)) return;
    sink_.name(name);
    if (!kMessage && has(how, How::null_if_empty) && is_empty(value)) return sink_.null();
    write(value);
  }
  template <typename Members>
  void object(std::string_view name, std::string_view /*meaning*/, Members&& members) {
    sink_.name(name);
    sink_.open_object();
    members(*this);
    sink_.close_object();
  }
  template <typename T, typename Members>
  void list(std::string_view name, const std::vector<T>& items, std::string_view /*meaning*/,
            Members&& members) {
    sink_.name(name);
    sink_.open_list();
    for (const T& item : items) {
      sink_.open_object();
      members(*this, item);
      sink_.close_object();
    }
    sink_.close_list();
  }
  template <typename T, typename V>
  void named(std::string_view name, const std::vector<T>& items, std::string_view /*meaning*/,
             std::string T::*item_name, V T::* /*item_value*/) {
    sink_.name(name);
    sink_.open_object();
    for (const T& item : items) {
      sink_.key(item.*item_name);
      write(item);
    }
    sink_.close_object();
  }
  /// Of a name that comes twice, or that is `known`, the first counts.
  void rest(const archive::Texts& texts, std::initializer_list<std::string_view> known) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string& name = texts[i].first;
      bool first = true;
      for (const std::string_view other : known) first = first && other != name;
      for (std::size_t j = 0; j < i; ++j) first = first && texts[j].first != name;
      if (!first) continue;
      sink_.key(name);
      sink_.text(texts[i].second);
    }
  }

  template <typename Items>
  void rows(std::string_view name, const Items& items) {
    sink_.name(name);
    this->items(items);
  }
  template <typename T>
  void item(const T& value) {
    write(value);
  }
  template <typename Items>
  void items(const Items& items) {
    sink_.open_list();
    for (const auto& one : items) {
      sink_.open_list();
      row(*this, one);
      sink_.close_list();
    }
    sink_.close_list();
  }

  template <typename T>
  void write(const T& value) {
    if constexpr (archive::kOptional<T>) {
      value ? write(*value) : sink_.null();
    } else if constexpr (std::is_same_v<T, bool>) {
      sink_.boolean(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      sink_.number(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      sink_.natural(value);
    } else if constexpr (std::is_integral_v<T>) {
      sink_.integer(value);
    } else if constexpr (std::is_enum_v<T>) {
      const std::string_view word = to_string(value);
      word.empty() ? sink_.null() : sink_.text(word);
    } else if constexpr (std::is_same_v<T, WallTime>) {
      value == WallTime{} ? sink_.null() : sink_.time(value);
    } else if constexpr (std::is_same_v<T, RunUid>) {
      // People and programs outside take a nil UUID for a run.
      kMessage&& value.nil() ? sink_.null() : sink_.text(to_text(value));
    } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      sink_.text(value);
    } else if constexpr (std::is_same_v<T, Value> || std::is_same_v<T, ValueMap>) {
      sink_.value(value);
    } else {
      write_other(value);
    }
  }

 private:
  template <typename T>
  void write_other(const T& value) {
    if constexpr (std::is_same_v<T, Labels>) {
      write_texts(value.entries());
    } else if constexpr (std::is_same_v<T, archive::Texts>) {
      write_texts(value);
    } else if constexpr (archive::kAnyText<T>) {
      sink_.text(value.text);
    } else if constexpr (archive::kNumber<T>) {
      sink_.integer(static_cast<std::int64_t>(value.value));
    } else if constexpr (archive::kNanoseconds<T>) {
      write_nanoseconds(value.time);
    } else if constexpr (archive::kAllOr<T>) {
      value.list.empty() ? sink_.text("all") : write(value.list);
    } else if constexpr (archive::kList<T>) {
      sink_.open_list();
      for (const auto& item : value) write(item);
      sink_.close_list();
    } else if constexpr (archive::kMap<T>) {
      sink_.open_object();
      for (const auto& [key, item] : value) {
        sink_.key(key);
        write(item);
      }
      sink_.close_object();
    } else {
      sink_.open_object();
      fields(*this, value);
      sink_.close_object();
    }
  }
  void write_texts(const archive::Texts& texts) {
    sink_.open_object();
    for (const auto& [key, text] : texts) {
      sink_.key(key);
      sink_.text(text);
    }
    sink_.close_object();
  }
  void write_nanoseconds(WallTime time) { sink_.integer(nanoseconds(time)); }
  void write_nanoseconds(const std::optional<WallTime>& time) {
    time ? write_nanoseconds(*time) : sink_.null();
  }

  Sink& sink_;
};

/// The message as JSON text, a record of its own.
template <typename T>
std::string write_json(const T& message) {
  std::string out;
  JsonText sink(out);
  Out<JsonText, Form::record>(sink).write(message);
  return out;
}

/// What people and their programs are told of it, for bodies and templates.
template <typename T>
Value message_value(const T& message) {
  ValueSink sink;
  Out<ValueSink, Form::message>(sink).write(message);
  return sink.take();
}

}  // namespace tocsin::core
