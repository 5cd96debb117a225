// Fingerprint of how a structure is written: the same io() that writes and reads it is walked over
// an empty one, and every type and size on the way is hashed. A field that is added, removed, moved
// or retyped gives another fingerprint, so that a forgotten version number is an error and not
// garbage. It cannot see inside plain structs that are copied as a whole beyond their name and
// size.
#pragma once

#include <string>
#include <typeinfo>

#include "core/identity.h"
#include "rules/contract/archive.h"

namespace tocsin::rules {

/// An archive that neither reads nor writes.
class LayoutArchive {
 public:
  static constexpr bool kReading = false;
  static constexpr bool kLayout = true;
  template <typename T>
  void leaf() {
    text_ += typeid(T).name();
    text_ += std::to_string(sizeof(T)) + ";";
  }
  void open(char kind) { text_ += kind; }
  void raw(const void*, std::size_t size) { text_ += "#" + std::to_string(size) + ";"; }
  template <typename T>
  void flat(const T*, std::size_t count) {
    raw(nullptr, count * sizeof(T));
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

template <typename T>
std::uint64_t layout_of() {
  LayoutArchive archive;
  T empty{};
  io(archive, empty);
  return core::name_hash(archive.text());
}

}  // namespace tocsin::rules
