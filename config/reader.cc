// The verbs of Reader: parsing and describing through one declaration.
#include <algorithm>
#include <limits>

#include "config/hints.h"
#include "config/tree.h"
#include "config/values.h"
#include "core/text.h"

namespace tocsin::config {
namespace {

std::string with_suggestion(std::string message, std::string_view wanted,
                            const std::vector<std::string>& known) {
  if (const std::string near = core::nearest(wanted, known); !near.empty()) {
    message += "; did you mean \"" + near + "\"?";
  } else if (!known.empty()) {
    message += "; known: ";
    for (std::size_t i = 0; i < known.size(); ++i) message += (i == 0 ? "" : ", ") + known[i];
  }
  return message;
}

// Reads one map below `parent`; reports what nobody asked for.
void read_map(const Reader::Impl& parent, const Node& node, std::string path,
              const std::function<void(Reader&)>& read) {
  Reader::Impl impl;
  impl.node = &node;
  impl.diagnostics = parent.diagnostics;
  impl.path = std::move(path);
  Reader reader(impl);
  read(reader);
  impl.report_unknown_keys();
}

template <typename T>
struct Given {
  using Value = T;
};
template <typename T>
struct Given<std::optional<T>> {
  using Value = T;
};
template <typename T>
using ValueOf = typename Given<T>::Value;

// What fits into the type, where that is less than what JSON has.
template <typename T>
void limit_by_type(SchemaNode& node) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (std::is_unsigned_v<T> && !node.minimum) node.minimum = 0;
    if (sizeof(T) == 8) return;
    if (!node.minimum) node.minimum = static_cast<double>(std::numeric_limits<T>::min());
    if (!node.maximum) node.maximum = static_cast<double>(std::numeric_limits<T>::max());
  } else if constexpr (std::is_same_v<T, Bytes>) {
    node.minimum = 0;
  }
}

template <typename T>
std::string suggestion(const T&, const Check<T>&) {
  return {};
}
std::string suggestion(const std::string& value, const Check<std::string>& check) {
  const std::string near = core::nearest(value, check.choices);
  return near.empty() ? "" : "; did you mean \"" + near + "\"?";
}

}  // namespace

const Entry* Reader::Impl::take(std::string_view key) {
  if (!asked.contains(key)) known.push_back(*asked.emplace(key).first);
  if (node == nullptr) return nullptr;
  return node->find(key);
}

std::string Reader::Impl::path_of(std::string_view key) const {
  if (key.empty()) return path;
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

void Reader::Impl::report(const Location& location, Grade grade, std::string_view key,
                          std::string message) const {
  if (diagnostics != nullptr) diagnostics->add({location, grade, path_of(key), std::move(message)});
}

void Reader::Impl::report_unknown_keys() const {
  for (const Entry& entry : node->entries) {
    if (!asked.contains(entry.key)) {
      diagnostics->add({entry.key_location, Grade::error, path_of(entry.key),
                        with_suggestion("unknown key \"" + entry.key + "\"", entry.key, known),
                        true});
    }
  }
}

template <typename T>
void Reader::read_key(std::string_view key, T& out, const Check<T>* check, std::string_view help,
                      bool needed) {
  if (impl_->schema != nullptr) {
    SchemaNode& node = impl_->schema->property(key);
    node.type = TypeName<T>::name;
    node.help = help;
    node.required = needed;
    if (!needed) node.fallback = as_value(out);
    if (check != nullptr) {
      node.range = check->expected;
      node.minimum = check->minimum;
      node.maximum = check->maximum;
      node.exclusive_minimum = check->exclusive_minimum;
      node.choices = check->choices;
    }
    limit_by_type<ValueOf<T>>(node);
  }
  const Entry* entry = impl_->take(key);
  const bool given = entry != nullptr && entry->value.kind != Node::Kind::null;
  if (given) {
    T value{};
    if (!parse_value(entry->value, value)) {
      impl_->report(entry->value.location, Grade::error, key,
                    std::string(key) + ": expected " + TypeName<T>::expected + ", found " +
                        describe_kind(entry->value) + unit_hint(entry->value, T{}, help));
      return;
    }
    if (check != nullptr && !check->ok(value)) {
      impl_->report(entry->value.location, Grade::error, key,
                    std::string(key) + " must be " + check->expected + ", found " +
                        describe_kind(entry->value) + suggestion(value, *check));
      return;
    }
    out = std::move(value);
  } else if (needed && impl_->node != nullptr) {
    impl_->report(location(), Grade::error, key,
                  "missing key \"" + std::string(key) + "\": expected " + TypeName<T>::expected);
  }
  impl_->effective.push_back({std::string(key), as_value(out), given ? "user" : "default"});
}

void Reader::secret(std::string_view key, Secret& out, std::string_view help, bool needed) {
  const std::string file_key = std::string(key) + "_file";
  if (impl_->schema != nullptr) {
    for (const auto& [name, words] : {std::pair{std::string(key), std::string(help)},
                                      {file_key, std::string(help) + " (read from this file)"}}) {
      SchemaNode& node = impl_->schema->property(name);
      node.type = "secret";
      node.help = words;
    }
    if (needed) impl_->schema->exactly_one_of.push_back({std::string(key), file_key});
  }
  const Entry* plain = impl_->take(key);
  const Entry* file = impl_->take(file_key);
  if (plain != nullptr && file != nullptr) {
    impl_->report(file->key_location, Grade::error, file_key,
                  "give \"" + std::string(key) + "\" or \"" + file_key + "\", not both");
    return;
  }
  const Entry* entry = plain != nullptr ? plain : file;
  if (entry == nullptr) {
    if (needed && impl_->node != nullptr) {
      impl_->report(location(), Grade::error, key,
                    "missing key \"" + std::string(key) + "\" or \"" + file_key + "\"");
    }
    return;
  }
  if (entry->value.kind != Node::Kind::scalar || entry->value.text.empty()) {
    impl_->report(entry->value.location, Grade::error, entry->key,
                  entry->key + ": expected non-empty text");
    return;
  }
  out = plain != nullptr ? Secret::from_value(entry->value.text)
                         : Secret::from_file(entry->value.text);
  if (const std::string danger = exposure(entry->value, file != nullptr); !danger.empty()) {
    impl_->report(entry->value.location, Grade::warning, entry->key, danger);
  }
}

bool Reader::section(std::string_view key, std::string_view help,
                     const std::function<void(Reader&)>& read) {
  if (impl_->schema != nullptr) {
    SchemaNode& node = impl_->schema->property(key);
    node.type = "object";
    node.help = help;
    describe_map(node, read);
  }
  const Entry* entry = impl_->take(key);
  if (entry == nullptr) return false;
  static const Node kEmpty{Node::Kind::map, {}, false, false, {}, {}, {}, {}};
  if (entry->value.kind == Node::Kind::null) {
    read_map(*impl_, kEmpty, impl_->path_of(key), read);
    return true;
  }
  if (entry->value.kind != Node::Kind::map) {
    impl_->report(entry->value.location, Grade::error, key,
                  std::string(key) + ": expected a map, found " + describe_kind(entry->value));
    return false;
  }
  read_map(*impl_, entry->value, impl_->path_of(key), read);
  return true;
}

void Reader::list(std::string_view key, std::string_view help,
                  const std::function<void(Reader&)>& read, std::string_view bare_key) {
  if (impl_->schema != nullptr) {
    SchemaNode& node = impl_->schema->property(key);
    node.type = "array";
    node.help = help;
    node.bare_key = bare_key;
    if (node.item.empty()) node.item.emplace_back().type = "object";
    describe_map(node.item.front(), read);
  }
  const Entry* entry = impl_->take(key);
  if (entry == nullptr || entry->value.kind == Node::Kind::null) return;
  if (entry->value.kind != Node::Kind::list) {
    impl_->report(entry->value.location, Grade::error, key,
                  std::string(key) + ": expected a list, found " + describe_kind(entry->value));
    return;
  }
  for (std::size_t i = 0; i < entry->value.items.size(); ++i) {
    const Node& item = entry->value.items[i];
    const std::string path = impl_->path_of(key) + "[" + std::to_string(i) + "]";
    if (item.kind == Node::Kind::map) {
      read_map(*impl_, item, path, read);
    } else if (item.kind == Node::Kind::scalar && !bare_key.empty()) {
      Node wrapped;
      wrapped.kind = Node::Kind::map;
      wrapped.location = item.location;
      wrapped.entries.push_back({std::string(bare_key), item.location, item});
      read_map(*impl_, wrapped, path, read);
    } else {
      impl_->diagnostics->add(
          {item.location, Grade::error, path, "expected a map, found " + describe_kind(item)});
    }
  }
}

void Reader::map(std::string_view key, std::string_view help,
                 const std::function<void(const std::string&, Reader&)>& read) {
  if (impl_->schema != nullptr) {
    SchemaNode& node = impl_->schema->property(key);
    node.type = "map";
    node.help = help;
    if (node.item.empty()) node.item.emplace_back().type = "object";
    describe_map(node.item.front(), [&](Reader& reader) { read("<name>", reader); });
  }
  const Entry* entry = impl_->take(key);
  if (entry == nullptr || entry->value.kind == Node::Kind::null) return;
  if (entry->value.kind != Node::Kind::map) {
    impl_->report(entry->value.location, Grade::error, key,
                  std::string(key) + ": expected a map, found " + describe_kind(entry->value));
    return;
  }
  for (const Entry& item : entry->value.entries) {
    const std::string path = impl_->path_of(key) + "." + item.key;
    if (item.value.kind == Node::Kind::map) {
      read_map(*impl_, item.value, path, [&](Reader& reader) { read(item.key, reader); });
    } else if (item.value.kind == Node::Kind::list) {
      // A list of maps under a user's name: the same name several times.
      for (const Node& part : item.value.items) {
        if (part.kind == Node::Kind::map) {
          read_map(*impl_, part, path, [&](Reader& reader) { read(item.key, reader); });
        } else {
          impl_->diagnostics->add(
              {part.location, Grade::error, path, "expected a map, found " + describe_kind(part)});
        }
      }
    } else {
      impl_->diagnostics->add(
          {item.value.location, Grade::error, path,
           item.key + ": expected a map or a list of maps, found " + describe_kind(item.value)});
    }
  }
}

void Reader::exactly_one_of(std::initializer_list<std::string_view> keys) {
  std::vector<std::string> names(keys.begin(), keys.end());
  if (impl_->schema != nullptr) impl_->schema->exactly_one_of.push_back(names);
  if (impl_->node == nullptr) return;
  std::vector<const Entry*> present;
  for (const auto& name : names) {
    if (const Entry* entry = impl_->take(name)) present.push_back(entry);
  }
  if (present.size() == 1) return;
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
  impl_->report(present.empty() ? location() : present[1]->key_location, Grade::error, "",
                "give exactly one of " + list);
}

std::vector<core::Parameter> Reader::effective() const { return impl_->effective; }

void Document::read(Diagnostics& diagnostics, const std::function<void(Reader&)>& read) const {
  Reader::Impl impl;
  impl.node = &tree_->root;
  impl.diagnostics = &diagnostics;
  Reader reader(impl);
  read(reader);
  impl.report_unknown_keys();
}

#define TOCSIN_READABLE(T)                                                                   \
  template void Reader::read_key<T>(std::string_view, T&, const Check<T>*, std::string_view, \
                                    bool);                                                   \
  template void Reader::read_key<std::optional<T>>(std::string_view, std::optional<T>&,      \
                                                   const Check<std::optional<T>>*,           \
                                                   std::string_view, bool);
TOCSIN_READABLE(bool)
TOCSIN_READABLE(int)
TOCSIN_READABLE(std::int64_t)
TOCSIN_READABLE(std::uint32_t)
TOCSIN_READABLE(std::uint64_t)
TOCSIN_READABLE(double)
TOCSIN_READABLE(std::string)
TOCSIN_READABLE(core::Duration)
TOCSIN_READABLE(Bytes)
TOCSIN_READABLE(std::vector<std::string>)
#undef TOCSIN_READABLE
template void Reader::read_key<std::map<std::string, std::string>>(
    std::string_view, std::map<std::string, std::string>&,
    const Check<std::map<std::string, std::string>>*, std::string_view, bool);

}  // namespace tocsin::config
